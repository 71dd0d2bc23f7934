//! `serve-dry-runs`

use std::time::Duration;

use super::{Context, Printed};
use crate::Exit;
use crate::error::CliError;
use crate::interrupt::interrupted;

/// Arguments of `serve-dry-runs`.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeDryRunsArgs {
    /// Seconds that dry runs under way may go on after an interrupt.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    grace: u64,
    /// Stop as soon as no dry run is ready, instead of waiting for an interrupt.
    #[arg(long)]
    once: bool,
}

pub(crate) async fn run(cx: &Context<'_>, args: ServeDryRunsArgs) -> Result<Printed, CliError> {
    let (_, app, worker) = cx.operator_previewing().await?;
    let worker = worker.ok_or_else(|| {
        let text = "this program has no module built in for this store: an application ships this command with its own, \
                    or starts `Kernel::dry_run_worker`";
        CliError::Usage(text.to_owned())
    })?;
    let running = worker.start().await?;
    if args.once {
        running.drain().await?;
    } else {
        interrupted().await.map_err(CliError::Runtime)?;
        running.stop(Duration::from_secs(args.grace)).await;
    }
    Ok(Printed { text: format!("dry runs of {app} are no longer served\n"), exit: Exit::Done })
}
