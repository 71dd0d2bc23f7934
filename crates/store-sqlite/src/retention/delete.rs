//! Deleting a workflow or a scope: marked first, then deleted in parts, in an order that leaves nothing behind.

use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::retention::Force;
use surefoot_kernel_core::{
    Commit, Delete, Deleted, EffectState, OpenEffectRow, Place, RetentionError, RunId, StepKey,
    Timestamp, decide_row,
};

use super::place::names;
use super::tree::{AuditOf, fell_all};
use super::{clamp, held, held_by_effect, length, list};
use crate::error::Fault;
use crate::event::emit::{sixteen, unreadable};
use crate::run::read::runs_by_no;
use crate::run::wake::write_decided;
use crate::run::write::{About, audit_write};
use crate::sql;
use crate::writer::{Cx, Lane, Op};

/// How many of what holds a deletion up are listed.
const LISTED: u32 = 100;
/// Versions that go in one transaction: their plans may be large.
const VERSIONS: u32 = 50;

/// How far a deletion has come. Each phase leaves nothing for an earlier one to do, but a retry may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Cancel,
    Events,
    Runs,
    Rest,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Cancel, Self::Events, Self::Runs, Self::Rest];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Events => "events",
            Self::Runs => "runs",
            Self::Rest => "rest",
        }
    }
}

/// A deletion that has begun.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    delete: Delete,
    phase: Phase,
    cursor: i64,
}

async fn mark_of(conn: &mut SqliteConnection, place: &Place) -> Result<Option<Mark>, Fault> {
    let (app, scope, workflow) = names(place);
    let query = sqlx::query(sql::RETENTION_MARKED).bind(app).bind(scope).bind(workflow);
    let Some(row) = query.fetch_optional(conn).await? else { return Ok(None) };
    let phase: &str = row.try_get("phase")?;
    let phase = Phase::ALL.into_iter().find(|known| known.as_str() == phase);
    let force = if row.try_get("forced")? { Force::Unexplained } else { Force::No };
    let (actor, reason) = (row.try_get("actor")?, row.try_get("reason")?);
    Ok(Some(Mark {
        delete: Delete { place: place.clone(), force, actor, reason },
        phase: phase.ok_or_else(unreadable)?,
        cursor: row.try_get("cursor")?,
    }))
}

/// Marks a place as being deleted.
pub(crate) struct Begin(pub(crate) Delete);

impl Op for Begin {
    type Out = ();
    type Err = RetentionError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(
        &'a self,
        conn: &'a mut SqliteConnection,
        cx: Cx,
    ) -> Result<(), RetentionError> {
        let delete = &self.0;
        match mark_of(conn, &delete.place).await?.map(|mark| mark.delete.force) {
            None => check_deletable(conn, delete).await?,
            Some(Force::No) if delete.force == Force::Unexplained => {}
            Some(Force::No | Force::Unexplained) => return Ok(()),
        }
        Ok(mark(conn, delete, cx.now).await?)
    }
}

async fn check_deletable(
    conn: &mut SqliteConnection,
    delete: &Delete,
) -> Result<(), RetentionError> {
    let place = &delete.place;
    if !is_there(conn, place).await? {
        return Err(RetentionError::NotFound { what: place.to_string() });
    }
    if place.workflow.is_some() {
        let roots = roots(conn, sql::RETENTION_PLACE_SHARED, place).await?;
        if !roots.is_empty() {
            return Err(RetentionError::Shared { roots });
        }
    }
    let effects = unexplained(conn, place, delete.force).await?;
    if effects.is_empty() { Ok(()) } else { Err(RetentionError::Unexplained { effects }) }
}

async fn is_there(conn: &mut SqliteConnection, place: &Place) -> Result<bool, Fault> {
    let (app, scope, workflow) = names(place);
    let query = sqlx::query(sql::RETENTION_PLACE_EXISTS).bind(app).bind(scope).bind(workflow);
    Ok(query.fetch_one(conn).await?.try_get("is_there")?)
}

async fn roots(
    conn: &mut SqliteConnection,
    statement: &'static str,
    place: &Place,
) -> Result<Vec<RunId>, Fault> {
    let (app, scope, workflow) = names(place);
    let query = sqlx::query(statement).bind(app).bind(scope).bind(workflow).bind(LISTED);
    let rows = query.fetch_all(conn).await?;
    rows.iter().map(|row| sixteen(row, "root").map(RunId::from_bytes)).collect()
}

async fn unexplained(
    conn: &mut SqliteConnection,
    place: &Place,
    force: Force,
) -> Result<Vec<OpenEffectRow>, Fault> {
    let (app, scope, workflow) = names(place);
    let rows = sqlx::query(sql::RETENTION_PLACE_UNEXPLAINED)
        .bind(app)
        .bind(scope)
        .bind(workflow)
        .bind(held_by_effect(force)?)
        .bind(LISTED)
        .fetch_all(conn)
        .await?;
    let read = rows.iter().map(|row| {
        let state: &str = row.try_get("effect_state")?;
        let state = EffectState::ALL.iter().copied().find(|known| known.as_str() == state);
        Ok(OpenEffectRow {
            run: RunId::from_bytes(sixteen(row, "id")?),
            step: StepKey::from(row.try_get::<String, _>("effect_step")?),
            state: state.ok_or_else(unreadable)?,
        })
    });
    read.collect()
}

/// From here on nothing is published, emitted or dispatched in the place.
async fn mark(conn: &mut SqliteConnection, delete: &Delete, now: Timestamp) -> Result<(), Fault> {
    let (app, scope, workflow) = names(&delete.place);
    sqlx::query(sql::RETENTION_MARK)
        .bind(app)
        .bind(scope)
        .bind(workflow)
        .bind(delete.force == Force::Unexplained)
        .bind(&*delete.actor)
        .bind(&*delete.reason)
        .execute(&mut *conn)
        .await?;
    for statement in [sql::RETENTION_PLACE_RETIRE, sql::RETENTION_PLACE_ACTIVATIONS] {
        let query = sqlx::query(statement).bind(app).bind(scope).bind(workflow);
        query.execute(&mut *conn).await?;
    }
    audit_write(conn, About { app, scope }, &delete.audit_begun(), (None, None), now).await
}

/// The next part of a deletion, found without a lock.
#[derive(Debug)]
pub(crate) struct Part {
    mark: Mark,
    numbers: Vec<i64>,
    roots: Vec<RunId>,
}

/// What the next part is; none is a place that is not being deleted.
pub(crate) async fn find(
    conn: &mut SqliteConnection,
    place: &Place,
    limit: u32,
) -> Result<Option<Part>, Fault> {
    let Some(mark) = mark_of(conn, place).await? else { return Ok(None) };
    let (app, scope, workflow) = names(place);
    let limit = clamp(limit);
    let (mut numbers, mut roots) = (Vec::new(), Vec::new());
    let rows = match mark.phase {
        Phase::Cancel => {
            let query = sqlx::query(sql::RETENTION_PLACE_UNCANCELED).bind(app).bind(scope);
            query.bind(workflow).bind(limit).fetch_all(conn).await?
        }
        Phase::Events => {
            let query = sqlx::query(sql::RETENTION_PLACE_EVENTS).bind(app).bind(scope);
            query.bind(workflow).bind(mark.cursor).bind(limit).fetch_all(conn).await?
        }
        Phase::Runs => {
            // What was begun is ended first.
            let query = sqlx::query(sql::RETENTION_PLACE_DOOMED).bind(app).bind(scope);
            let mut rows = query.bind(workflow).bind(limit).fetch_all(&mut *conn).await?;
            if rows.is_empty() {
                let query = sqlx::query(sql::RETENTION_PLACE_ROOTS).bind(app).bind(scope);
                let query = query.bind(workflow).bind(held(mark.delete.force)?).bind(limit);
                rows = query.fetch_all(conn).await?;
            }
            for row in &rows {
                roots.push(RunId::from_bytes(sixteen(row, "id")?));
            }
            Vec::new()
        }
        Phase::Rest => Vec::new(),
    };
    for row in &rows {
        numbers.push(row.try_get("no")?);
    }
    Ok(Some(Part { mark, numbers, roots }))
}

/// Deletes a part.
pub(crate) struct Carry {
    pub(crate) part: Part,
    pub(crate) limit: u32,
}

impl Op for Carry {
    type Out = Deleted;
    type Err = RetentionError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(
        &'a self,
        conn: &'a mut SqliteConnection,
        cx: Cx,
    ) -> Result<Deleted, RetentionError> {
        let part = &self.part;
        // Somebody else may have come further meanwhile: then this part is nothing to do any more.
        let mark = mark_of(conn, &part.mark.delete.place).await?;
        let is_same =
            |mark: &Mark| (mark.phase, mark.cursor) == (part.mark.phase, part.mark.cursor);
        let Some(mark) = mark.filter(is_same) else { return Ok(Deleted::default()) };
        match mark.phase {
            Phase::Cancel => Ok(cancel(conn, &mark, &part.numbers, cx).await?),
            Phase::Events => Ok(drop_events(conn, &mark, &part.numbers).await?),
            Phase::Runs => Ok(drop_trees(conn, &mark, &part.roots, self.limit, cx).await?),
            Phase::Rest => drop_rest(conn, &mark, self.limit, cx).await,
        }
    }
}

async fn advance(
    conn: &mut SqliteConnection,
    mark: &Mark,
    to: Phase,
    cursor: i64,
) -> Result<(), Fault> {
    let (app, scope, workflow) = names(&mark.delete.place);
    sqlx::query(sql::RETENTION_ADVANCE)
        .bind(app)
        .bind(scope)
        .bind(workflow)
        .bind(to.as_str())
        .bind(cursor)
        .execute(conn)
        .await?;
    Ok(())
}

async fn cancel(
    conn: &mut SqliteConnection,
    mark: &Mark,
    runs: &[i64],
    cx: Cx,
) -> Result<Deleted, Fault> {
    if runs.is_empty() {
        advance(conn, mark, Phase::Events, mark.cursor).await?;
    }
    let mut decided = Vec::with_capacity(runs.len());
    for (head, run) in runs_by_no(conn, runs).await? {
        if let Ok(facts) = decide_row(&run, mark.delete.cancel(), cx.now)
            && !facts.is_empty()
        {
            decided.push((head, Commit::new(&run, &facts), None));
        }
    }
    write_decided(conn, &decided, cx.now).await?;
    Ok(Deleted { canceled: length(decided.len()), ..Deleted::default() })
}

async fn drop_events(
    conn: &mut SqliteConnection,
    mark: &Mark,
    events: &[i64],
) -> Result<Deleted, Fault> {
    let Some(last) = events.last() else {
        advance(conn, mark, Phase::Runs, mark.cursor).await?;
        return Ok(Deleted::default());
    };
    let numbers = list(events)?;
    for statement in [
        sql::RETENTION_DROP_DELIVERIES,
        sql::RETENTION_DROP_EVENT_PAYLOADS,
        sql::RETENTION_DROP_EVENTS,
    ] {
        sqlx::query(statement).bind(&*numbers).execute(&mut *conn).await?;
    }
    advance(conn, mark, Phase::Events, *last).await?;
    Ok(Deleted { events: length(events.len()), ..Deleted::default() })
}

async fn drop_trees(
    conn: &mut SqliteConnection,
    mark: &Mark,
    roots: &[RunId],
    limit: u32,
    cx: Cx,
) -> Result<Deleted, Fault> {
    let Delete { place, force, .. } = &mark.delete;
    let how = (*force, AuditOf::Bared);
    let (runs, _) = fell_all(conn, roots, how, clamp(limit), cx).await?;
    let mut done = Deleted { runs, ..Deleted::default() };
    if runs > 0 {
        return Ok(done);
    }
    done.unexplained = unexplained(conn, place, *force).await?;
    let (app, scope, workflow) = names(place);
    let query = sqlx::query(sql::RETENTION_PLACE_ENDING).bind(app).bind(scope).bind(workflow);
    let row = query.bind(held_by_effect(*force)?).fetch_one(&mut *conn).await?;
    done.ending = crate::plan::list::read_count(&row, "count")?;
    let is_held = !done.unexplained.is_empty() || done.ending > 0;
    // A run that an operator queued again meanwhile has to be canceled again.
    let next = if is_held { Phase::Cancel } else { Phase::Rest };
    advance(conn, mark, next, mark.cursor).await?;
    Ok(done)
}

async fn drop_rest(
    conn: &mut SqliteConnection,
    mark: &Mark,
    limit: u32,
    cx: Cx,
) -> Result<Deleted, RetentionError> {
    let place = &mark.delete.place;
    if place.workflow.is_some() {
        let roots = roots(conn, sql::RETENTION_PLACE_SHARED, place).await?;
        if !roots.is_empty() {
            return Err(RetentionError::Shared { roots });
        }
    }
    if !roots(conn, sql::RETENTION_PLACE_LEFT, place).await?.is_empty() {
        // Nothing new comes in, so none should be; versions never go before their runs: back to the beginning.
        advance(conn, mark, Phase::Cancel, mark.cursor).await?;
        return Ok(Deleted::default());
    }
    Ok(drop_workflows(conn, mark, limit, cx).await?)
}

async fn drop_workflows(
    conn: &mut SqliteConnection,
    mark: &Mark,
    limit: u32,
    cx: Cx,
) -> Result<Deleted, Fault> {
    let place = &mark.delete.place;
    let (app, scope, workflow) = names(place);
    let mut done = Deleted::default();
    if place.workflow.is_none() {
        let query = sqlx::query(sql::RETENTION_PLACE_SIGNALS).bind(app).bind(scope);
        let dropped = query.bind(clamp(limit)).execute(&mut *conn).await?.rows_affected();
        done.signals = length(usize::try_from(dropped).unwrap_or(usize::MAX));
        if done.signals > 0 {
            return Ok(done);
        }
    }
    // Of runs that were pruned before, too; a workflow's are known by its versions, which are still there.
    let query = sqlx::query(sql::RETENTION_PLACE_AUDIT).bind(app).bind(scope).bind(workflow);
    if query.bind(clamp(limit)).execute(&mut *conn).await?.rows_affected() > 0 {
        return Ok(done);
    }
    let versions = VERSIONS.min(clamp(limit));
    let query = sqlx::query(sql::RETENTION_PLACE_VERSIONS).bind(app).bind(scope).bind(workflow);
    if query.bind(versions).execute(&mut *conn).await?.rows_affected() > 0 {
        return Ok(done);
    }
    let query = sqlx::query(sql::RETENTION_PLACE_WORKFLOWS).bind(app).bind(scope).bind(workflow);
    let dropped = query.execute(&mut *conn).await?.rows_affected();
    done.workflows = length(usize::try_from(dropped).unwrap_or(usize::MAX));
    let query = sqlx::query(sql::RETENTION_UNMARK).bind(app).bind(scope).bind(workflow);
    query.execute(&mut *conn).await?;
    let audit = mark.delete.audit_ended();
    audit_write(conn, About { app, scope }, &audit, (None, None), cx.now).await?;
    done.done = true;
    Ok(done)
}
