//! `cancel`

use surefoot_kernel_core::RunState;
use surefoot_operator::{Cancel, Outcome};

use super::{Context, OneRun, Printed};
use crate::Exit;
use crate::args::Verb;
use crate::error::CliError;

/// Arguments of `cancel`.
#[derive(Debug, clap::Args)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    of: OneRun,
    /// The revision that you looked at; without it, the run is canceled wherever it stands.
    #[arg(long, value_name = "N")]
    revision: Option<u64>,
    #[command(flatten)]
    verb: Verb,
}

pub(crate) async fn run(cx: &Context<'_>, args: CancelArgs) -> Result<Printed, CliError> {
    let confirmation = args.verb.confirmation("cancel")?;
    let operator = cx.operator_for(args.of.run).await?;
    // Whoever said yes to what they were shown said it of that, and of nothing that came since.
    let shown = cx.confirm(&operator, ("cancel", confirmation), args.of.run).await?;
    let seen = args.revision.or(shown);
    let cancel = Cancel { run: args.of.run, seen, why: args.verb.reason };
    let done = operator.cancel(cancel).await?;
    // Whoever wanted it canceled and finds it canceled has what they wanted.
    let is_refused = done.outcome == Outcome::AlreadyEnded && done.run.state != RunState::Canceled;
    let exit = if is_refused { Exit::Finding } else { Exit::Done };
    Ok(cx.print_done(&done)?.exiting(exit))
}
