//! `retry`

use surefoot_operator::Retry;

use super::{Context, OneRun, Printed, Seen};
use crate::args::Verb;
use crate::error::CliError;

/// Arguments of `retry`.
#[derive(Debug, clap::Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    of: OneRun,
    #[command(flatten)]
    seen: Seen,
    #[command(flatten)]
    verb: Verb,
}

pub(crate) async fn run(cx: &Context<'_>, args: RetryArgs) -> Result<Printed, CliError> {
    let confirmation = args.verb.confirmation("retry")?;
    let operator = cx.operator().await?;
    cx.confirm(&operator, ("retry", confirmation), args.of.run).await?;
    let retry = Retry { run: args.of.run, seen: args.seen.revision, why: args.verb.reason };
    cx.print_done(&operator.retry(retry).await?)
}
