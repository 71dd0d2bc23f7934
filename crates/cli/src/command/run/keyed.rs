//! `--key`: a run that is started once, however often its command is typed.

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{
    EventFilter, EventRow, OperatorStore as _, RunDetail, RunId, START_EVENT, WorkflowKey,
};
use surefoot_operator::OperatorError;
use surefoot_store_sqlite::SqliteStore;

use super::needs::Place;
use crate::command::Context;
use crate::error::CliError;

/// Events that are looked at in one go.
const LOOKED_MAX: u32 = 1_000;
/// Characters of a hash that tell two plans apart.
const SHOWN_CHARS: usize = 12;

/// A key as it was typed.
pub(super) fn key(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("a key is not blank: name what is done once, such as an order".to_owned());
    }
    Ok(text.to_owned())
}

/// The dedupe key of the event that starts the run. Keys of one workflow are no keys of another.
pub(super) fn of_event(workflow: &WorkflowKey, key: &str) -> String {
    format!("{workflow} {key}")
}

/// The event that was recorded under a dedupe key, if one was. A file of one machine has few enough to look through.
pub(super) async fn find(
    store: &SqliteStore,
    place: &Place,
    dedupe_key: &str,
) -> Result<Option<EventRow>, CliError> {
    let mut filter = EventFilter {
        app: Some(place.app.clone()),
        scope: Some(place.scope.clone()),
        kind: Some(START_EVENT.to_owned()),
        limit: LOOKED_MAX,
        ..EventFilter::default()
    };
    loop {
        let page = store.event_list(filter.clone()).await.map_err(OperatorError::from)?;
        let is_it = |row: &EventRow| row.dedupe_key.as_deref() == Some(dedupe_key);
        let found = page.rows.into_iter().find(is_it);
        if found.is_some() || page.next.is_none() {
            return Ok(found);
        }
        filter.cursor = page.next;
    }
}

/// Refuses to report the run of a key as that of another file.
pub(super) async fn check_file(
    cx: &Context<'_>,
    store: &SqliteStore,
    (key, run): (&str, RunId),
    plan: &Plan,
) -> Result<(), CliError> {
    let detail = store.run_detail(run).await.map_err(OperatorError::from)?;
    let Some(detail) = detail else { return Err(gone(key)) };
    let started: Option<Plan> = from_stored(&detail.plan).ok();
    match started {
        Some(started) if started.hashes.source == plan.hashes.source => Ok(()),
        started => Err(other_file(cx, key, &detail, (started.as_ref(), plan))),
    }
}

fn other_file(
    cx: &Context<'_>,
    key: &str,
    detail: &RunDetail,
    (started, given): (Option<&Plan>, &Plan),
) -> CliError {
    let run = detail.run.id;
    let (workflow, revision) = (&detail.run.origin.workflow, detail.version_revision);
    let resume = cx.typed(&format!("run --resume {run}"));
    let of = started.map_or_else(|| "unreadable".to_owned(), |plan| shown(&plan.hash()));
    let given = shown(&given.hash());
    CliError::Usage(format!(
        "the key `{key}` belongs to {run}, which was started from version {revision} of `{workflow}` (plan {of}), and this file is another \
         one (plan {given}); nothing was published or started: go on with that run by `{resume}`, or choose another key for this file"
    ))
}

fn shown(hash: &str) -> String {
    hash.chars().take(SHOWN_CHARS).collect()
}

pub(super) fn gone(key: &str) -> CliError {
    CliError::Usage(format!(
        "what was started under the key `{key}` is gone, and is not done again: choose another key"
    ))
}
