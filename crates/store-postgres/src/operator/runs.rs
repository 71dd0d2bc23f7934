//! Runs and their effects, for people.

use sqlx::{PgConnection, Row as _};
use uuid::Uuid;

use surefoot_kernel_core::{
    App, EffectRow, LoadRequest, Mode, RunDetail, RunFilter, RunId, RunRow, RunState, Scope,
    Timestamp,
};

use super::events::event_by_id;
use super::page::{Place, apps_of, page, read_cursor, rows_to_read};
use crate::child::read::{group_of, groups};
use crate::error::Fault;
use crate::keys::Key;
use crate::plan::list::{read_count, read_key, version};
use crate::run::load::{invocation, journal, whole_run};
use crate::run::read::run_by_id;
use crate::run::row::{json, read_run};
use crate::{budget, sql};

use surefoot_kernel_core::Page;

/// Runs, newest first. A row that cannot be read is left out of the list.
pub(crate) async fn list(
    conn: &mut PgConnection,
    filter: &RunFilter,
) -> Result<Page<RunRow>, Fault> {
    let cursor = read_cursor(filter.cursor.as_deref())?;
    let mut rows = Vec::new();
    for part in parts(conn, filter).await? {
        rows.extend(read_part(conn, filter, part, cursor).await?);
    }
    Ok(page(rows, filter.limit, |row: &RunRow| (row.run.origin.created_at, row.run.id)))
}

/// A part of a list that one index holds in order.
enum Part {
    Of(App),
    InState(App, RunState),
    /// Few among many, as a rule: they have an index of their own.
    DryRuns(App),
    ChildrenOf(RunId),
    /// What a rare tag leaves.
    Among(Vec<RunId>),
}

/// Events with one tag whose runs are taken one by one. Of a tag that more have, a page is soon found on the way through
/// all runs.
const TAGGED_MAX: u32 = 5_000;

/// Each part reads no more than a page; one statement over all of them would have to sort them all.
async fn parts(conn: &mut PgConnection, filter: &RunFilter) -> Result<Vec<Part>, Fault> {
    if let Some(parent) = filter.parent {
        return Ok(vec![Part::ChildrenOf(parent)]);
    }
    let apps = apps_of(conn, filter.app.as_ref()).await?;
    if let Some(tag) = &filter.tag
        && let Some(runs) = tagged(conn, &apps, tag).await?
    {
        return Ok(vec![Part::Among(runs)]);
    }
    if filter.mode == Some(Mode::DryRun) {
        return Ok(apps.into_iter().map(Part::DryRuns).collect());
    }
    if filter.states.is_empty() {
        return Ok(apps.into_iter().map(Part::Of).collect());
    }
    let mut states = filter.states.clone();
    states.sort_unstable();
    states.dedup();
    let of =
        |app: App| states.clone().into_iter().map(move |state| Part::InState(app.clone(), state));
    Ok(apps.into_iter().flat_map(of).collect())
}

/// The runs of all events with a tag, unless there are too many of them.
async fn tagged(
    conn: &mut PgConnection,
    apps: &[App],
    tag: &str,
) -> Result<Option<Vec<RunId>>, Fault> {
    let (mut runs, mut left) = (Vec::new(), TAGGED_MAX);
    for app in apps {
        let query = sqlx::query(sql::OPERATOR_TAGGED).bind(app.as_str());
        let rows =
            query.bind(json(&[tag])?).bind(i64::from(left) + 1).fetch_all(&mut *conn).await?;
        let Some(rest) = u32::try_from(rows.len()).ok().and_then(|found| left.checked_sub(found))
        else {
            return Ok(None);
        };
        left = rest;
        for row in &rows {
            let of_event: Vec<Uuid> = row.try_get("runs")?;
            runs.extend(of_event.into_iter().map(RunId::of_key));
        }
    }
    Ok(Some(runs))
}

async fn read_part(
    conn: &mut PgConnection,
    filter: &RunFilter,
    part: Part,
    cursor: Option<Place<RunId>>,
) -> Result<Vec<RunRow>, Fault> {
    let query = match &part {
        Part::Of(app) => sqlx::query(sql::OPERATOR_RUNS).bind(app.as_str()).bind(None::<&str>),
        Part::DryRuns(app) => {
            sqlx::query(sql::OPERATOR_DRY_RUNS).bind(app.as_str()).bind(states_of(filter))
        }
        Part::InState(app, state) => {
            sqlx::query(sql::OPERATOR_RUNS_IN_STATE).bind(app.as_str()).bind(state.as_str())
        }
        Part::ChildrenOf(parent) => sqlx::query(sql::OPERATOR_CHILDREN)
            .bind(parent.key())
            .bind(filter.app.as_ref().map(App::as_str)),
        Part::Among(runs) => sqlx::query(sql::OPERATOR_RUNS_AMONG)
            .bind(runs.iter().map(|run| run.key()).collect::<Vec<Uuid>>())
            .bind(filter.app.as_ref().map(App::as_str)),
    };
    let (at, id) = cursor.unwrap_or((Timestamp::MAX, RunId::from_bytes([0xff; 16])));
    let query = query
        .bind(at.micros())
        .bind(id.key())
        .bind(filter.scope.as_ref().map(|scope| scope.as_str()))
        .bind(filter.workflow.as_ref().map(|workflow| workflow.as_str()))
        .bind(filter.mode.map(Mode::as_str))
        .bind(filter.since.map(Timestamp::micros))
        .bind(filter.event.map(Key::key))
        .bind(rows_to_read(filter.limit));
    let tag = filter.tag.as_ref().map(|tag| json(&[tag])).transpose()?;
    let query = match part {
        Part::Of(_) | Part::InState(..) | Part::DryRuns(_) => query.bind(filter.children).bind(tag),
        Part::ChildrenOf(_) => query.bind(states_of(filter)).bind(tag),
        Part::Among(_) => query.bind(states_of(filter)),
    };
    let rows = query.fetch_all(conn).await?;
    let mut read = Vec::with_capacity(rows.len());
    for row in &rows {
        match read_run(row) {
            Ok((_, run)) => {
                read.push(RunRow { run, version_revision: read_count(row, "version_revision")? });
            }
            Err(Fault(error)) => tracing::warn!(%error, "a run is left out of the list"),
        }
    }
    Ok(read)
}

/// The states that are wanted; none is all.
fn states_of(filter: &RunFilter) -> Option<Vec<&'static str>> {
    let states: Vec<&str> = filter.states.iter().map(|state| state.as_str()).collect();
    (!states.is_empty()).then_some(states)
}

pub(crate) async fn detail(
    conn: &mut PgConnection,
    id: RunId,
    now: Timestamp,
) -> Result<Option<RunDetail>, Fault> {
    let whole = LoadRequest { run: id, after: None };
    let Some(run) = whole_run(conn, whole).await? else { return Ok(None) };
    let journal = journal(conn, &run, 0).await?;
    let invocation = invocation(conn, &run).await?;
    let budget = budget::read(conn, run.origin.root).await?;
    let version = version(conn, run.origin.version).await?;
    let event = match run.origin.event {
        Some(event) => event_by_id(conn, event).await?,
        None => None,
    };
    let (version_revision, plan) =
        version.map(|version| (version.revision, version.plan)).unwrap_or_default();
    let (children, group) = (groups(conn, id).await?, group_of(conn, &run).await?);
    Ok(Some(RunDetail {
        run,
        version_revision,
        invocation,
        budget,
        journal,
        plan,
        event,
        children,
        group,
        now,
    }))
}

/// What nobody can explain yet and what lacks its output, oldest first; then what was given up.
pub(crate) async fn effects(
    conn: &mut PgConnection,
    (app, scope): (&App, Option<&Scope>),
    limit: u32,
    now: Timestamp,
) -> Result<Vec<EffectRow>, Fault> {
    let rows = sqlx::query(sql::OPERATOR_EFFECTS)
        .bind(app.as_str())
        .bind(i64::from(limit))
        .bind(scope.map(Scope::as_str))
        .fetch_all(&mut *conn)
        .await?;
    let mut effects = Vec::with_capacity(rows.len());
    for row in &rows {
        let id: RunId = read_key(row, "id")?;
        let Some((_, run)) = run_by_id(conn, id).await? else { continue };
        if let Some(effect) = run.effect() {
            effects.push(EffectRow {
                run: run.id,
                scope: run.origin.scope.clone(),
                workflow: run.origin.workflow.clone(),
                run_state: run.state(),
                revision: run.revision,
                effect: effect.clone(),
                now,
            });
        }
    }
    Ok(effects)
}
