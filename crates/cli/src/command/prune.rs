//! `prune`

use surefoot_kernel_core::{Micros, RunState};
use surefoot_operator::{PrunePolicy, PrunedView};

use super::{Context, Printed};
use crate::args::Verb;
use crate::error::CliError;
use crate::page::to_stderr;
use crate::render::counted;

/// Arguments of `prune`.
#[derive(Debug, clap::Args)]
pub(crate) struct PruneArgs {
    /// Only what ended, was used or was written so long ago, like `90d`; `0s` is all of it up to now. Without `--scope`,
    /// in the whole application.
    #[arg(long, value_name = "SPAN")]
    older_than: Micros,
    /// Runs in these states, separated by commas: `succeeded`, `failed`, `canceled`. Whole trees only, and none with
    /// an effect that nobody can explain.
    #[arg(long = "state", value_name = "STATE", value_delimiter = ',')]
    states: Vec<RunState>,
    /// Signals that a run has used. A later wait on such a signal waits for a new one.
    #[arg(long)]
    signals: bool,
    /// The payloads of events that nobody listened to; their keys stay taken.
    #[arg(long)]
    unmatched: bool,
    /// Audit rows.
    #[arg(long)]
    audit: bool,
    #[command(flatten)]
    verb: Verb,
}

pub(crate) async fn run(cx: &Context<'_>, args: PruneArgs) -> Result<Printed, CliError> {
    let confirmation = args.verb.confirmation("prune")?;
    if let Some(state) = args.states.iter().find(|state| !state.is_terminal()) {
        return Err(CliError::Usage(format!("runs that are `{state}` have not ended: they stay")));
    }
    let operator = cx.operator().await?;
    let app = cx.app(&operator).await?;
    let place = cx.named_scope().map_or_else(|| app.to_string(), |scope| format!("{app}/{scope}"));
    let place =
        format!("{place}{}", if cx.named_scope().is_some() { "" } else { ", all scopes of it," });
    confirmation.obtain("prune", &format!("old rows of {place} are deleted for good"))?;
    let policy = PrunePolicy {
        app,
        scope: cx.named_scope(),
        older_than: args.older_than,
        states: args.states,
        spent_signals: args.signals,
        unmatched_events: args.unmatched,
        audit: args.audit,
        why: args.verb.reason,
    };
    let tell = |view: &PrunedView| to_stderr(&format!("{}\n", words(view)));
    let view = operator.prune(policy, tell).await?;
    cx.print(&view, |page| page.line(format!("pruned: {}", words(&view))))
}

fn words(view: &PrunedView) -> String {
    let (runs, signals) = (counted(view.runs, "run"), counted(view.signals, "signal"));
    let (payloads, audit) = (counted(view.events, "payload"), counted(view.audit, "audit row"));
    format!("{runs}, {signals}, {payloads}, {audit}")
}
