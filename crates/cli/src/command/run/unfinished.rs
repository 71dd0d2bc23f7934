//! Runs of earlier commands that are not over: nothing works on them by itself.

use serde::Serialize;
use surefoot_kernel_core::{
    Mode, OperatorStore as _, PlanStore as _, RunFilter, RunId, RunRow, RunState, WorkflowKey,
};
use surefoot_operator::OperatorError;
use surefoot_store_sqlite::SqliteStore;

use super::needs::Place;
use crate::builtin::MODULE;
use crate::command::Context;
use crate::error::CliError;
use crate::page::{clean, to_stderr};

/// How many are named to a person.
const NAMED_MAX: usize = 5;
/// How many are looked at.
const LOOKED_MAX: u32 = 100;

/// A run that waits for somebody.
#[derive(Debug, Serialize)]
pub(super) struct Open {
    run: RunId,
    workflow: WorkflowKey,
    state: RunState,
    /// What may be typed about it.
    command: String,
}

/// Says which there are beside this one, and how to go on with them.
pub(super) async fn tell(
    cx: &Context<'_>,
    store: &SqliteStore,
    place: &Place,
    own: RunId,
) -> Result<(), CliError> {
    let filter = RunFilter { limit: LOOKED_MAX, ..not_over(place) };
    let page = store.run_list(filter).await.map_err(OperatorError::from)?;
    let mut open = Vec::new();
    for row in page.rows.iter().filter(|row| row.run.id != own) {
        if is_ready_made(store, row).await? {
            open.push(open_of(cx, row, true));
        }
    }
    if !open.is_empty() {
        to_stderr(&text(cx, "not over yet, and left alone by this command:", &open));
    }
    Ok(())
}

/// Every run of a place that is not over.
pub(super) fn not_over(place: &Place) -> RunFilter {
    RunFilter {
        app: Some(place.app.clone()),
        scope: Some(place.scope.clone()),
        states: vec![
            RunState::Queued,
            RunState::Running,
            RunState::Waiting,
            RunState::NeedsAttention,
        ],
        mode: Some(Mode::Execute),
        ..RunFilter::default()
    }
}

pub(super) async fn is_ready_made(store: &SqliteStore, row: &RunRow) -> Result<bool, CliError> {
    let version = store.version_load(row.run.origin.version).await.map_err(OperatorError::from)?;
    Ok(version.is_some_and(|version| version.footprint.module == MODULE))
}

pub(super) fn open_of(cx: &Context<'_>, row: &RunRow, is_ready_made: bool) -> Open {
    let (run, state) = (row.run.id, row.run.state());
    // Another module's run is gone on with by a worker of its application.
    let can_go_on = is_ready_made && state != RunState::NeedsAttention;
    let verb = if can_go_on { "run --resume" } else { "explain" };
    let command = cx.typed(&format!("{verb} {run}"));
    Open { run, workflow: row.run.origin.workflow.clone(), state, command }
}

pub(super) fn text(cx: &Context<'_>, said: &str, open: &[Open]) -> String {
    let mut text = format!("{said}\n");
    for Open { workflow, state, command, .. } in open.iter().take(NAMED_MAX) {
        let workflow = clean(workflow.as_str());
        text.push_str(&format!("  {workflow}, {state}:  {command}\n"));
    }
    let more = open.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        text.push_str(&format!("  and {more} more:  {}\n", cx.typed("runs")));
    }
    text
}
