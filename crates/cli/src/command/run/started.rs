//! Runs that events of a tree have started, as those of `emitEvent`: they are no part of it, and nothing works on them by
//! itself.

use std::collections::BTreeSet;

use surefoot_actions::event::event_id;
use surefoot_kernel_core::{
    App, EventId, EventStore as _, Fact, OperatorStore as _, RunDetail, RunFilter, RunId, RunRow,
};
use surefoot_operator::OperatorError;
use surefoot_store_sqlite::SqliteStore;

use super::needs::Place;
use super::unfinished::{Open, is_ready_made, not_over, open_of, text};
use crate::command::Context;
use crate::error::CliError;
use crate::page::to_stderr;

/// Events whose runs are created in one go.
const EVENTS_MAX: u32 = 100;
/// Runs that are read in one go.
const RUNS_MAX: u32 = 1_000;

/// Says which there are that are not over, and what works on each.
pub(super) async fn tell(
    cx: &Context<'_>,
    store: &SqliteStore,
    root: RunId,
) -> Result<Vec<Open>, CliError> {
    let Some(detail) = detail(store, root).await? else { return Ok(Vec::new()) };
    let origin = &detail.run.origin;
    let place = Place { app: origin.app.clone(), scope: origin.scope.clone() };
    dispatch(store, &place.app).await?;
    let since = Some(origin.created_at);
    let later = all(store, RunFilter { since, ..not_over(&place) }).await?;
    let others: Vec<RunRow> = later.into_iter().filter(|row| row.run.id != root).collect();
    let events: BTreeSet<EventId> = others.iter().filter_map(|row| row.run.origin.event).collect();
    let own = emitted(store, root, events).await?;
    let mut open = Vec::new();
    for row in &others {
        if row.run.origin.event.is_some_and(|event| own.contains(&event)) {
            open.push(open_of(cx, row, is_ready_made(store, row).await?));
        }
    }
    if !open.is_empty() {
        to_stderr(&text(cx, "started by an event, and nothing works on them by itself:", &open));
    }
    Ok(open)
}

/// Creates the runs of events that wait for a worker to do it: this command's has stopped.
async fn dispatch(store: &SqliteStore, app: &App) -> Result<(), CliError> {
    while store.event_dispatch(app, EVENTS_MAX).await.map_err(OperatorError::from)?.more {}
    Ok(())
}

/// Those of the events that steps of a tree have recorded. Nothing of it is read where there are none.
async fn emitted(
    store: &SqliteStore,
    root: RunId,
    mut events: BTreeSet<EventId>,
) -> Result<BTreeSet<EventId>, CliError> {
    let (mut own, mut open) = (BTreeSet::new(), vec![root]);
    while let Some(run) = open.pop().filter(|_| !events.is_empty()) {
        let Some(detail) = detail(store, run).await? else { continue };
        for fact in detail.journal.iter().flatten().flat_map(|entry| &entry.facts) {
            if let Fact::StepCompleted { step, .. } = fact {
                own.extend(events.take(&event_id(run, step)));
            }
        }
        let children = RunFilter { parent: Some(run), ..RunFilter::default() };
        open.extend(all(store, children).await?.into_iter().map(|row| row.run.id));
    }
    Ok(own)
}

async fn all(store: &SqliteStore, mut filter: RunFilter) -> Result<Vec<RunRow>, CliError> {
    filter.limit = RUNS_MAX;
    let mut rows = Vec::new();
    loop {
        let page = store.run_list(filter.clone()).await.map_err(OperatorError::from)?;
        rows.extend(page.rows);
        if page.next.is_none() {
            return Ok(rows);
        }
        filter.cursor = page.next;
    }
}

async fn detail(store: &SqliteStore, run: RunId) -> Result<Option<RunDetail>, CliError> {
    Ok(store.run_detail(run).await.map_err(OperatorError::from)?)
}
