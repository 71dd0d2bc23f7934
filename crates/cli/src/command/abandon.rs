//! `abandon`

use surefoot_operator::Abandon;

use super::{Context, OneRun, Printed, Seen};
use crate::args::Verb;
use crate::error::CliError;

/// Arguments of `abandon`.
#[derive(Debug, clap::Args)]
pub(crate) struct AbandonArgs {
    #[command(flatten)]
    of: OneRun,
    /// An effect that may have happened may stay unexplained; it stays listed.
    #[arg(long)]
    accept_unknown: bool,
    #[command(flatten)]
    seen: Seen,
    #[command(flatten)]
    verb: Verb,
}

pub(crate) async fn run(cx: &Context<'_>, args: AbandonArgs) -> Result<Printed, CliError> {
    let confirmation = args.verb.confirmation("abandon")?;
    let operator = cx.operator().await?;
    cx.confirm(&operator, ("abandon", confirmation), args.of.run).await?;
    let abandon = Abandon {
        run: args.of.run,
        seen: args.seen.revision,
        accept_unknown: args.accept_unknown,
        why: args.verb.reason,
    };
    cx.print_done(&operator.abandon(abandon).await?)
}
