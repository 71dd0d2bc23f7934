//! Apps, sessions, numbers and the audit.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::{
    App, AppHealth, AuditRow, Code, EffectState, EventStatus, Mode, Place, RunId, RunState, Scope,
    SessionId, SessionRow, Standing, Timestamp, VersionId, WorkflowKey,
};

use crate::error::Fault;
use crate::event::emit::{sixteen, unreadable};
use crate::plan::list::read_count;
use crate::sql;

/// The apps that the store holds, sorted.
pub(crate) async fn apps(conn: &mut SqliteConnection) -> Result<Vec<App>, Fault> {
    let rows = sqlx::query(sql::OPERATOR_APPS).fetch_all(conn).await?;
    rows.iter().map(|row| Ok(App::from(row.try_get::<String, _>("app")?))).collect()
}

/// Worker sessions that have not ended, newest report first.
pub(crate) async fn sessions(
    conn: &mut SqliteConnection,
    app: &App,
    now: Timestamp,
) -> Result<Vec<SessionRow>, Fault> {
    let rows = sqlx::query(sql::OPERATOR_SESSIONS).bind(app.as_str()).fetch_all(conn).await?;
    rows.iter()
        .map(|row| {
            let offers: &str = row.try_get("offers")?;
            let mode: &str = row.try_get("mode")?;
            let mode = [Mode::Execute, Mode::DryRun].into_iter().find(|it| it.as_str() == mode);
            Ok(SessionRow {
                session: SessionId::from_bytes(sixteen(row, "id")?),
                name: row.try_get("name")?,
                mode: mode.ok_or_else(unreadable)?,
                offers: from_stored(offers).map_err(|_| unreadable())?,
                tree: opt_sixteen(row, "tree")?.map(RunId::from_bytes),
                slots: row.try_get("slots")?,
                busy: row.try_get("busy")?,
                stuck: row.try_get("stuck")?,
                seen_at: Timestamp::from_micros(row.try_get("seen_at")?),
                now,
            })
        })
        .collect()
}

pub(crate) async fn health(
    conn: &mut SqliteConnection,
    app: &App,
    now: Timestamp,
) -> Result<AppHealth, Fault> {
    let mut runs = Vec::with_capacity(RunState::ALL.len());
    for state in RunState::ALL {
        let query = sqlx::query(sql::OPERATOR_COUNT_RUNS).bind(app.as_str());
        let row = query.bind(state.as_str()).fetch_one(&mut *conn).await?;
        runs.push((*state, read_count(&row, "count")?));
    }
    let due_by_footprint = due(conn, app, Mode::Execute, now).await?;
    let dry_runs = due(conn, app, Mode::DryRun, now).await?;
    let exhausted = sqlx::query(sql::OPERATOR_EXHAUSTED).bind(app.as_str());
    let exhausted = exhausted.bind(Code::RETRY_EXHAUSTED.as_str()).fetch_one(&mut *conn).await?;
    let pending = sqlx::query(sql::OPERATOR_PENDING).bind(app.as_str());
    let pending = pending.fetch_one(&mut *conn).await?;
    let mut health = AppHealth {
        now,
        runs,
        oldest_due: due_by_footprint.iter().map(|(_, _, oldest)| *oldest).min(),
        due_by_footprint,
        dry_runs_due: dry_runs.iter().map(|(_, count, _)| count).sum(),
        exhausted: read_count(&exhausted, "count")?,
        events_pending: read_count(&pending, "count")?,
        oldest_pending_event: oldest(&pending)?,
        events_dead_lettered: count_events(conn, app, EventStatus::DeadLettered).await?,
        events_unmatched: count_events(conn, app, EventStatus::Unmatched).await?,
        ..AppHealth::default()
    };
    count_effects(conn, app, &mut health).await?;
    count_deletions(conn, app, &mut health).await?;
    Ok(health)
}

/// Deletions that have begun.
async fn count_deletions(
    conn: &mut SqliteConnection,
    app: &App,
    health: &mut AppHealth,
) -> Result<(), Fault> {
    let rows = sqlx::query(sql::OPERATOR_DELETING).bind(app.as_str()).fetch_all(&mut *conn).await?;
    for row in &rows {
        let workflow: String = row.try_get("workflow")?;
        health.deleting.push(Place {
            app: app.clone(),
            scope: Scope::from(row.try_get::<String, _>("scope")?),
            workflow: (!workflow.is_empty()).then(|| WorkflowKey::from(workflow)),
        });
    }
    let query = sqlx::query(sql::OPERATOR_HALF_DELETED).bind(app.as_str());
    health.trees_half_deleted = read_count(&query.fetch_one(conn).await?, "count")?;
    Ok(())
}

async fn count_effects(
    conn: &mut SqliteConnection,
    app: &App,
    health: &mut AppHealth,
) -> Result<(), Fault> {
    let rows = sqlx::query(sql::OPERATOR_UNSETTLED).bind(app.as_str()).fetch_all(conn).await?;
    for row in &rows {
        let (run, effect): (&str, &str) = (row.try_get("state")?, row.try_get("effect_state")?);
        let run = RunState::ALL.iter().find(|known| known.as_str() == run);
        let effect = EffectState::ALL.iter().find(|known| known.as_str() == effect);
        let (Some(run), Some(effect)) = (run, effect) else { return Err(unreadable()) };
        if let Some(standing) = Standing::of(*run, *effect) {
            health.count_effects(standing, read_count(row, "count")?, oldest(row)?);
        }
    }
    Ok(())
}

fn oldest(row: &SqliteRow) -> Result<Option<Timestamp>, Fault> {
    Ok(row.try_get::<Option<i64>, _>("oldest")?.map(Timestamp::from_micros))
}

async fn count_events(
    conn: &mut SqliteConnection,
    app: &App,
    status: EventStatus,
) -> Result<u64, Fault> {
    let query = sqlx::query(sql::OPERATOR_COUNT_EVENTS).bind(app.as_str());
    let row = query.bind(status.as_str()).fetch_one(conn).await?;
    read_count(&row, "count")
}

/// Audit rows, newest first.
pub(crate) async fn audit(
    conn: &mut SqliteConnection,
    (app, scope): (&App, Option<&Scope>),
    limit: u32,
) -> Result<Vec<AuditRow>, Fault> {
    let query = sqlx::query(sql::OPERATOR_AUDIT).bind(app.as_str()).bind(limit);
    let rows = query.bind(scope.map(Scope::as_str)).fetch_all(conn).await?;
    rows.iter()
        .map(|row| {
            Ok(AuditRow {
                scope: Scope::from(row.try_get::<String, _>("scope")?),
                at: Timestamp::from_micros(row.try_get("at")?),
                actor: row.try_get("actor")?,
                verb: row.try_get("verb")?,
                reason: row.try_get("reason")?,
                run: opt_sixteen(row, "run")?.map(RunId::from_bytes),
                version: opt_sixteen(row, "version")?.map(VersionId::from_bytes),
                details: row.try_get("details")?,
            })
        })
        .collect()
}

fn opt_sixteen(row: &SqliteRow, column: &str) -> Result<Option<[u8; 16]>, Fault> {
    let bytes: Option<&[u8]> = row.try_get(column)?;
    bytes.map(|bytes| bytes.try_into().map_err(|_| unreadable())).transpose()
}

/// Runs of a mode that are due, by footprint: number, oldest.
async fn due(
    conn: &mut SqliteConnection,
    app: &App,
    mode: Mode,
    now: Timestamp,
) -> Result<Vec<(String, u64, Timestamp)>, Fault> {
    let query = sqlx::query(sql::OPERATOR_DUE).bind(app.as_str()).bind(now.micros());
    let rows = query.bind(mode.as_str()).fetch_all(conn).await?;
    rows.iter()
        .map(|row| {
            let oldest = Timestamp::from_micros(row.try_get("oldest")?);
            Ok((row.try_get("footprint")?, read_count(row, "count")?, oldest))
        })
        .collect()
}
