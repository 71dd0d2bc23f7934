//! `abandon`

use surefoot_kernel_core::Rejection;
use surefoot_operator::{Abandon, OperatorError};

use super::{Context, OneRun, Printed, Seen};
use crate::args::Verb;
use crate::error::{CliError, Helped as _};

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
    let operator = cx.operator_for(args.of.run).await?;
    cx.confirm(&operator, ("abandon", confirmation), args.of.run).await?;
    let abandon = Abandon {
        run: args.of.run,
        seen: args.seen.revision,
        accept_unknown: args.accept_unknown,
        why: args.verb.reason,
    };
    let done = operator.abandon(abandon).await.map_err(|error| {
        if matches!(error, OperatorError::Refused(Rejection::EffectUnsettled { .. })) {
            let help = "`--accept-unknown` gives it up all the same: the effect stays listed";
            return error.with_help(help);
        }
        error.into()
    })?;
    cx.print_done(&done)
}
