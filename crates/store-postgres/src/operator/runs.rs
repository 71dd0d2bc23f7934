//! Runs and their effects, for people.

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};
use uuid::Uuid;

use surefoot_kernel_core::{
    App, EffectRow, LoadRequest, Mode, RunDetail, RunFilter, RunId, RunRow, RunState, Scope,
    Timestamp, WorkflowKey,
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
    if filter.fits_nothing() {
        return Ok(Page::empty());
    }
    let (mut rows, from) = (Vec::new(), (cursor, rows_to_read(filter.limit)));
    if let Some(parent) = filter.parent {
        rows = read_part(conn, filter, Part::ChildrenOf(parent), from).await?;
    } else if let Some(event) = filter.event {
        let runs = event_by_id(conn, event).await?.map(|event| event.runs).unwrap_or_default();
        rows = read_part(conn, filter, Part::Among(runs), from).await?;
    } else {
        for app in apps_of(conn, filter.app.as_ref()).await? {
            rows.extend(of_app(conn, filter, app, cursor).await?);
        }
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
    /// What an event started.
    Among(Vec<RunId>),
    /// By way of the events with the tag.
    Tagged(App),
    /// By way of the versions of the workflow, or of those of the scope.
    Placed(App),
}

/// Where a page begins, and at how many runs a part looks for it.
type From = (Option<Place<RunId>>, i64);

/// Runs of a workflow or a scope that are taken one by one. Of more, a page is soon found on the way through all runs.
const PLACED_MANY: i64 = 20_000;
/// Events with one tag whose runs are taken one by one.
const TAGGED_FEW: i64 = 2_000;
/// Of more, a page is looked for among so many of the newest runs first, where it soon is, unless they are old ones.
const LOOKED_THROUGH: i64 = 5_000;
/// Of a tag that more have, a page is soon found on the way through all runs.
const TAGGED_MANY: i64 = 10_000;

/// Of one app. Each part reads no more than a page; one statement over all of them would have to sort them all. What few
/// have is not looked for among all.
async fn of_app(
    conn: &mut PgConnection,
    filter: &RunFilter,
    app: App,
    cursor: Option<Place<RunId>>,
) -> Result<Vec<RunRow>, Fault> {
    let page = rows_to_read(filter.limit);
    if let Some(tag) = &filter.tag {
        return with_tag(conn, filter, (app, tag), cursor).await;
    }
    if filter.workflow.is_some() || filter.scope.is_some() {
        let count = sqlx::query(sql::OPERATOR_COUNT_PLACED)
            .bind(app.as_str())
            .bind(filter.scope.as_ref().map(Scope::as_str))
            .bind(filter.workflow.as_ref().map(WorkflowKey::as_str))
            .bind(PLACED_MANY + 1);
        let count: i64 = count.fetch_one(&mut *conn).await?.try_get("count")?;
        if count <= PLACED_MANY {
            return read_part(conn, filter, Part::Placed(app), (cursor, page)).await;
        }
    }
    Ok(walk(conn, filter, &app, (cursor, page)).await?.0)
}

async fn with_tag(
    conn: &mut PgConnection,
    filter: &RunFilter,
    (app, tag): (App, &str),
    cursor: Option<Place<RunId>>,
) -> Result<Vec<RunRow>, Fault> {
    let count = sqlx::query(sql::OPERATOR_COUNT_TAGGED).bind(app.as_str()).bind(json(&[tag])?);
    let count = count.bind(TAGGED_MANY + 1).fetch_one(&mut *conn).await?;
    let count: i64 = count.try_get("count")?;
    if count > TAGGED_FEW {
        let looked = if count > TAGGED_MANY { i64::MAX } else { LOOKED_THROUGH };
        let (rows, is_all) = walk(conn, filter, &app, (cursor, looked)).await?;
        if is_all || looked == i64::MAX {
            return Ok(rows);
        }
    }
    let page = rows_to_read(filter.limit);
    read_part(conn, filter, Part::Tagged(app), (cursor, page)).await
}

/// The newest runs in order, and whether each part has filled a page: then none that is newer is left out.
async fn walk(
    conn: &mut PgConnection,
    filter: &RunFilter,
    app: &App,
    from: From,
) -> Result<(Vec<RunRow>, bool), Fault> {
    let (mut rows, mut is_all) = (Vec::new(), true);
    for part in parts(filter, app) {
        let read = read_part(conn, filter, part, from).await?;
        is_all &= i64::try_from(read.len()).is_ok_and(|it| it >= rows_to_read(filter.limit));
        rows.extend(read);
    }
    Ok((rows, is_all))
}

fn parts(filter: &RunFilter, app: &App) -> Vec<Part> {
    if filter.mode == Some(Mode::DryRun) {
        return vec![Part::DryRuns(app.clone())];
    }
    if filter.states.is_empty() {
        return vec![Part::Of(app.clone())];
    }
    let mut states = filter.states.clone();
    states.sort_unstable();
    states.dedup();
    states.into_iter().map(|state| Part::InState(app.clone(), state)).collect()
}

async fn read_part(
    conn: &mut PgConnection,
    filter: &RunFilter,
    part: Part,
    (cursor, looked): From,
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
        Part::Tagged(app) => {
            sqlx::query(sql::OPERATOR_TAGGED).bind(app.as_str()).bind(states_of(filter))
        }
        Part::Placed(app) => {
            sqlx::query(sql::OPERATOR_PLACED).bind(app.as_str()).bind(states_of(filter))
        }
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
        Part::Of(_) | Part::InState(..) => query.bind(filter.children).bind(tag).bind(looked),
        Part::DryRuns(_) | Part::Tagged(_) => query.bind(filter.children).bind(tag),
        Part::Placed(_) => query.bind(filter.children),
        Part::ChildrenOf(_) | Part::Among(_) => query.bind(states_of(filter)).bind(tag),
    };
    let rows = query.fetch_all(conn).await?;
    read_rows(&rows)
}

fn read_rows(rows: &[PgRow]) -> Result<Vec<RunRow>, Fault> {
    let mut read = Vec::with_capacity(rows.len());
    for row in rows {
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
