//! `delete`

use std::time::Duration;

use surefoot_kernel_core::{Micros, Place, RetentionError, WorkflowKey};
use surefoot_operator::{DeletePlace, DeletionView, OperatorError};

use super::{Context, Printed};
use crate::Exit;
use crate::args::Verb;
use crate::error::{CliError, Helped as _};
use crate::page::{Page, to_stderr};
use crate::render::counted;

/// Between two looks at runs that are on their way to their end.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Arguments of `delete`.
#[derive(Debug, clap::Args)]
pub(crate) struct DeleteArgs {
    /// The workflow's key; or `--whole-scope`.
    #[arg(value_name = "WORKFLOW", conflicts_with = "whole_scope")]
    workflow: Option<String>,
    /// The scope named by `--scope`, with all its workflows, runs, events and signals.
    #[arg(long)]
    whole_scope: bool,
    /// Delete it though nobody knows what became of effects of it.
    #[arg(long)]
    force: bool,
    /// How long to wait for runs that workers are still ending.
    #[arg(long, value_name = "SPAN", default_value = "30s")]
    wait: Micros,
    #[command(flatten)]
    verb: Verb,
}

pub(crate) async fn run(cx: &Context<'_>, args: DeleteArgs) -> Result<Printed, CliError> {
    let confirmation = args.verb.confirmation("delete")?;
    if args.workflow.is_none() && !args.whole_scope {
        let usage = "`delete` needs a WORKFLOW, or `--whole-scope` for all that the scope has";
        return Err(CliError::Usage(usage.to_owned()));
    }
    let scope = cx.scope()?;
    let operator = cx.operator().await?;
    let app = cx.app(&operator).await?;
    let place = Place { app, scope, workflow: args.workflow.map(WorkflowKey::from) };
    confirmation.obtain("delete", &format!("{place} is canceled and deleted for good"))?;
    let delete = DeletePlace { place: place.clone(), force: args.force, why: args.verb.reason };
    let mut waited = Duration::ZERO;
    let view = loop {
        let tell = |view: &DeletionView| to_stderr(&format!("{}\n", words(view)));
        let view = operator.delete(delete.clone(), tell).await.map_err(helped)?;
        let may_wait = view.ending > 0 && view.unexplained.is_empty();
        if !may_wait || waited >= Duration::from(args.wait) {
            break view;
        }
        tokio::time::sleep(LOOK_EVERY).await;
        waited += LOOK_EVERY;
    };
    let exit = if view.done { Exit::Done } else { Exit::Finding };
    Ok(cx.print(&view, |page| print(page, &place, &view))?.exiting(exit))
}

fn helped(error: OperatorError) -> CliError {
    if matches!(error, OperatorError::Retention(RetentionError::Unexplained { .. })) {
        return error.with_help("`--force` deletes it though nobody knows: only the reason stays");
    }
    if matches!(error, OperatorError::Retention(RetentionError::Shared { .. })) {
        return error.with_help("`--whole-scope` deletes both, with all that the scope has");
    }
    error.into()
}

fn print(page: &mut Page, place: &Place, view: &DeletionView) {
    if view.done {
        page.line(format!("deleted: {place} ({})", words(view)));
        return;
    }
    page.line(format!("being deleted, not done yet: {place} ({})", words(view)));
    for effect in &view.unexplained {
        let (run, step, state) = (effect.run, &effect.step, effect.state.as_str());
        page.line(format!("- nobody knows what became of {step} of run {run} ({state})"));
    }
    if !view.unexplained.is_empty() {
        page.line("  resolve them, or add `--force` to delete it though nobody knows");
    }
    if view.ending > 0 {
        page.line(format!("- still ending: {}", counted(view.ending, "run")));
    }
    page.line("nothing new starts there; the same command goes on");
}

fn words(view: &DeletionView) -> String {
    let (canceled, runs) = (counted(view.canceled, "run"), view.runs);
    let (events, signals) = (counted(view.events, "event"), counted(view.signals, "signal"));
    let workflows = counted(view.workflows, "workflow");
    format!("{canceled} canceled, {runs} deleted, {events}, {signals}, {workflows}")
}
