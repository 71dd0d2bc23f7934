//! Deleting a workflow or a scope: marked first, then deleted in parts, in an order that leaves nothing behind.

use sqlx::{PgConnection, Row};
use uuid::Uuid;

use surefoot_kernel_core::retention::{Force, holding, holding_by_effect};
use surefoot_kernel_core::{
    Commit, Delete, Deleted, EffectState, OpenEffectRow, Place, RetentionError, RunId, StepKey,
    Timestamp, decide_row,
};

use super::place::{close, names};
use super::tree::{AuditOf, fell_all};
use super::{affected, clamp, length};
use crate::error::{Fault, unreadable};
use crate::keys::Key;
use crate::plan::list::{read_count, read_key};
use crate::run::read::lock_free_runs;
use crate::run::wake::write_decided;
use crate::run::write::{About, audit_write};
use crate::sql;
use crate::writer::{Cx, Lane, Op};

/// How many of what holds a deletion up are listed.
const LISTED: i64 = 100;
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
    /// The last event that was looked at.
    cursor: Option<Uuid>,
}

async fn mark_of(
    conn: &mut PgConnection,
    statement: &'static str,
    place: &Place,
) -> Result<Option<Mark>, Fault> {
    let (app, scope, workflow) = names(place);
    let query = sqlx::query(statement).bind(app).bind(scope).bind(workflow);
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

    async fn run<'a>(&'a self, conn: &'a mut PgConnection, cx: Cx) -> Result<(), RetentionError> {
        let delete = &self.0;
        let (app, scope, _) = names(&delete.place);
        close(conn, app, scope).await?;
        match mark_of(conn, sql::RETENTION_MARKED, &delete.place)
            .await?
            .map(|mark| mark.delete.force)
        {
            None => check_deletable(conn, delete).await?,
            Some(Force::No) if delete.force == Force::Unexplained => {}
            Some(Force::No | Force::Unexplained) => return Ok(()),
        }
        Ok(mark(conn, delete, cx.now).await?)
    }
}

async fn check_deletable(conn: &mut PgConnection, delete: &Delete) -> Result<(), RetentionError> {
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

async fn is_there(conn: &mut PgConnection, place: &Place) -> Result<bool, Fault> {
    let (app, scope, workflow) = names(place);
    let query = sqlx::query(sql::RETENTION_PLACE_EXISTS).bind(app).bind(scope).bind(workflow);
    Ok(query.fetch_one(conn).await?.try_get("is_there")?)
}

async fn roots(
    conn: &mut PgConnection,
    statement: &'static str,
    place: &Place,
) -> Result<Vec<RunId>, Fault> {
    let (app, scope, workflow) = names(place);
    let query = sqlx::query(statement).bind(app).bind(scope).bind(workflow).bind(LISTED);
    let rows = query.fetch_all(conn).await?;
    rows.iter().map(|row| read_key(row, "root")).collect()
}

async fn unexplained(
    conn: &mut PgConnection,
    place: &Place,
    force: Force,
) -> Result<Vec<OpenEffectRow>, Fault> {
    let (app, scope, workflow) = names(place);
    let rows = sqlx::query(sql::RETENTION_PLACE_UNEXPLAINED)
        .bind(app)
        .bind(scope)
        .bind(workflow)
        .bind(holding_by_effect(force))
        .bind(LISTED)
        .fetch_all(conn)
        .await?;
    let read = rows.iter().map(|row| {
        let state: &str = row.try_get("effect_state")?;
        let state = EffectState::ALL.iter().copied().find(|known| known.as_str() == state);
        Ok(OpenEffectRow {
            run: read_key(row, "id")?,
            step: StepKey::from(row.try_get::<String, _>("effect_step")?),
            state: state.ok_or_else(unreadable)?,
        })
    });
    read.collect()
}

/// From here on nothing is published, emitted or dispatched in the place.
async fn mark(conn: &mut PgConnection, delete: &Delete, now: Timestamp) -> Result<(), Fault> {
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
    ids: Vec<Uuid>,
    roots: Vec<RunId>,
}

/// What the next part is; none is a place that is not being deleted.
pub(crate) async fn find(
    conn: &mut PgConnection,
    place: &Place,
    limit: u32,
) -> Result<Option<Part>, Fault> {
    let Some(mark) = mark_of(conn, sql::RETENTION_MARKED, place).await? else { return Ok(None) };
    let (app, scope, workflow) = names(place);
    let limit = i64::from(clamp(limit));
    let (mut ids, mut roots) = (Vec::new(), Vec::new());
    let rows = match mark.phase {
        Phase::Cancel => {
            let query = sqlx::query(sql::RETENTION_PLACE_UNCANCELED).bind(app).bind(scope);
            query.bind(workflow).bind(limit).fetch_all(conn).await?
        }
        Phase::Events => {
            let query = sqlx::query(sql::RETENTION_PLACE_EVENTS).bind(app).bind(scope);
            query
                .bind(workflow)
                .bind(mark.cursor.unwrap_or(Uuid::nil()))
                .bind(limit)
                .fetch_all(conn)
                .await?
        }
        Phase::Runs => {
            // What was begun is ended first.
            let query = sqlx::query(sql::RETENTION_PLACE_DOOMED).bind(app).bind(scope);
            let mut rows = query.bind(workflow).bind(limit).fetch_all(&mut *conn).await?;
            if rows.is_empty() {
                let query = sqlx::query(sql::RETENTION_PLACE_ROOTS).bind(app).bind(scope);
                let query = query.bind(workflow).bind(holding(mark.delete.force)).bind(limit);
                rows = query.fetch_all(conn).await?;
            }
            for row in &rows {
                roots.push(read_key(row, "id")?);
            }
            Vec::new()
        }
        Phase::Rest => Vec::new(),
    };
    for row in &rows {
        ids.push(row.try_get("id")?);
    }
    Ok(Some(Part { mark, ids, roots }))
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
        conn: &'a mut PgConnection,
        cx: Cx,
    ) -> Result<Deleted, RetentionError> {
        let part = &self.part;
        // Somebody else may have come further meanwhile: then this part is nothing to do any more.
        let mark = mark_of(conn, sql::RETENTION_MARKED_MINE, &part.mark.delete.place).await?;
        let is_same =
            |mark: &Mark| (mark.phase, mark.cursor) == (part.mark.phase, part.mark.cursor);
        let Some(mark) = mark.filter(is_same) else { return Ok(Deleted::default()) };
        match mark.phase {
            Phase::Cancel => Ok(cancel(conn, &mark, &part.ids, cx).await?),
            Phase::Events => Ok(drop_events(conn, &mark, &part.ids).await?),
            Phase::Runs => Ok(drop_trees(conn, &mark, &part.roots, self.limit, cx).await?),
            Phase::Rest => drop_rest(conn, &mark, self.limit, cx).await,
        }
    }
}

async fn advance(
    conn: &mut PgConnection,
    mark: &Mark,
    to: Phase,
    cursor: Option<Uuid>,
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
    conn: &mut PgConnection,
    mark: &Mark,
    runs: &[Uuid],
    cx: Cx,
) -> Result<Deleted, Fault> {
    if runs.is_empty() {
        advance(conn, mark, Phase::Events, mark.cursor).await?;
    }
    let ids: Vec<RunId> = runs.iter().copied().map(RunId::of_key).collect();
    let mut decided = Vec::with_capacity(runs.len());
    for (head, run) in lock_free_runs(conn, &ids).await? {
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
    conn: &mut PgConnection,
    mark: &Mark,
    events: &[Uuid],
) -> Result<Deleted, Fault> {
    let Some(last) = events.last() else {
        advance(conn, mark, Phase::Runs, mark.cursor).await?;
        return Ok(Deleted::default());
    };
    for statement in [
        sql::RETENTION_DROP_DELIVERIES,
        sql::RETENTION_DROP_EVENT_PAYLOADS,
        sql::RETENTION_DROP_EVENTS,
    ] {
        sqlx::query(statement).bind(events).execute(&mut *conn).await?;
    }
    advance(conn, mark, Phase::Events, Some(*last)).await?;
    Ok(Deleted { events: length(events.len()), ..Deleted::default() })
}

async fn drop_trees(
    conn: &mut PgConnection,
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
    let row = query.bind(holding_by_effect(*force)).fetch_one(&mut *conn).await?;
    done.ending = read_count(&row, "count")?;
    let is_held = !done.unexplained.is_empty() || done.ending > 0;
    // A run that an operator queued again meanwhile has to be canceled again.
    let next = if is_held { Phase::Cancel } else { Phase::Rest };
    advance(conn, mark, next, mark.cursor).await?;
    Ok(done)
}

async fn drop_rest(
    conn: &mut PgConnection,
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
    conn: &mut PgConnection,
    mark: &Mark,
    limit: u32,
    cx: Cx,
) -> Result<Deleted, Fault> {
    let place = &mark.delete.place;
    let (app, scope, workflow) = names(place);
    let mut done = Deleted::default();
    if place.workflow.is_none() {
        let query = sqlx::query(sql::RETENTION_PLACE_SIGNALS).bind(app).bind(scope);
        let dropped = query.bind(i64::from(clamp(limit))).execute(&mut *conn).await?;
        done.signals = affected(&dropped);
        if done.signals > 0 {
            return Ok(done);
        }
    }
    // Of runs that were pruned before, too; a workflow's are known by its versions, which are still there.
    let query = sqlx::query(sql::RETENTION_PLACE_AUDIT).bind(app).bind(scope).bind(workflow);
    if query.bind(i64::from(clamp(limit))).execute(&mut *conn).await?.rows_affected() > 0 {
        return Ok(done);
    }
    let versions = VERSIONS.min(clamp(limit));
    let query = sqlx::query(sql::RETENTION_PLACE_VERSIONS).bind(app).bind(scope).bind(workflow);
    if query.bind(i64::from(versions)).execute(&mut *conn).await?.rows_affected() > 0 {
        return Ok(done);
    }
    let query = sqlx::query(sql::RETENTION_PLACE_WORKFLOWS).bind(app).bind(scope).bind(workflow);
    done.workflows = affected(&query.execute(&mut *conn).await?);
    let query = sqlx::query(sql::RETENTION_UNMARK).bind(app).bind(scope).bind(workflow);
    query.execute(&mut *conn).await?;
    let audit = mark.delete.audit_ended();
    audit_write(conn, About { app, scope }, &audit, (None, None), cx.now).await?;
    done.done = true;
    Ok(done)
}
