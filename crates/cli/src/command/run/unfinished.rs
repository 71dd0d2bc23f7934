//! Runs of earlier commands that are not over: nothing works on them by itself.

use surefoot_kernel_core::{
    Mode, OperatorStore as _, PlanStore as _, RunFilter, RunId, RunRow, RunState,
};
use surefoot_operator::OperatorError;
use surefoot_store_sqlite::SqliteStore;

use super::needs::Place;
use crate::builtin::MODULE;
use crate::command::Context;
use crate::error::CliError;
use crate::page::{clean, to_stderr};

/// How many are named.
const NAMED_MAX: usize = 5;
/// How many are looked at.
const LOOKED_MAX: u32 = 100;

/// Says which there are beside this one, and how to go on with them.
pub(super) async fn tell(
    cx: &Context<'_>,
    store: &SqliteStore,
    place: &Place,
    own: RunId,
) -> Result<(), CliError> {
    let filter = RunFilter {
        app: Some(place.app.clone()),
        scope: Some(place.scope.clone()),
        states: vec![
            RunState::Queued,
            RunState::Running,
            RunState::Waiting,
            RunState::NeedsAttention,
        ],
        mode: Some(Mode::Execute),
        limit: LOOKED_MAX,
        ..RunFilter::default()
    };
    let page = store.run_list(filter).await.map_err(OperatorError::from)?;
    let mut open = Vec::new();
    for row in page.rows.into_iter().filter(|row| row.run.id != own) {
        let version = store.version_load(row.run.origin.version).await;
        let version = version.map_err(OperatorError::from)?;
        if version.is_some_and(|version| version.footprint.module == MODULE) {
            open.push(row);
        }
    }
    if !open.is_empty() {
        to_stderr(&text(cx, &open));
    }
    Ok(())
}

fn text(cx: &Context<'_>, open: &[RunRow]) -> String {
    let mut text = "not over yet, and left alone by this command:\n".to_owned();
    for row in open.iter().take(NAMED_MAX) {
        let run = &row.run;
        let next = match run.state() {
            RunState::NeedsAttention => cx.typed(&format!("explain {}", run.id)),
            RunState::Queued
            | RunState::Running
            | RunState::Waiting
            | RunState::Succeeded
            | RunState::Failed
            | RunState::Canceled => cx.typed(&format!("run --resume {}", run.id)),
        };
        let workflow = clean(run.origin.workflow.as_str());
        text.push_str(&format!("  {workflow}, {}:  {next}\n", run.state()));
    }
    let more = open.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        text.push_str(&format!("  and {more} more:  {}\n", cx.typed("runs")));
    }
    text
}
