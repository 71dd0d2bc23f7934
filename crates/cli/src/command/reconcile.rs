//! `reconcile`

use surefoot_operator::Reconcile;

use super::{Context, OneStep, Printed, Seen};
use crate::args::Verb;
use crate::error::CliError;

/// Arguments of `reconcile`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReconcileArgs {
    #[command(flatten)]
    of: OneStep,
    #[command(flatten)]
    seen: Seen,
    #[command(flatten)]
    verb: Verb,
}

pub(crate) async fn run(cx: &Context<'_>, args: ReconcileArgs) -> Result<Printed, CliError> {
    let confirmation = args.verb.confirmation("reconcile")?;
    let operator = cx.operator_for(args.of.run).await?;
    cx.confirm(&operator, ("reconcile", confirmation), args.of.run).await?;
    let reconcile = Reconcile {
        run: args.of.run,
        step: args.of.step,
        seen: args.seen.revision,
        why: args.verb.reason,
    };
    cx.print_done(&operator.reconcile(reconcile).await?)
}
