//! Deferred events: their runs, created from what they matched when they were recorded.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::{
    App, Dispatched, EventId, Micros, RunId, StoreError, Timestamp, VersionId, WorkflowKey,
};

use super::emit::{
    Match, Recorded, new_run, packed, read_event_id, read_json, sixteen, started_with, unreadable,
};
use crate::error::Fault;
use crate::retention::place::being_deleted;
use crate::run::insert::insert;
use crate::sql;
use crate::writer::{Cx, Lane, Op};

/// Failed dispatches of one event before it is dead-lettered.
const DISPATCH_ATTEMPTS: u32 = 8;
/// No pass dispatches more events in one transaction.
const DISPATCH_MAX: u32 = 200;

pub(crate) struct DispatchDue {
    pub(crate) app: App,
    pub(crate) limit: u32,
}

impl Op for DispatchDue {
    type Out = Dispatched;
    type Err = StoreError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(
        &'a self,
        conn: &'a mut SqliteConnection,
        cx: Cx,
    ) -> Result<Dispatched, StoreError> {
        Ok(dispatch(conn, self, cx).await?)
    }
}

/// The events that are due, oldest first.
pub(crate) async fn due(
    conn: &mut SqliteConnection,
    app: &App,
    limit: u32,
    now: Timestamp,
) -> Result<Vec<(i64, EventId, u32)>, Fault> {
    let rows = sqlx::query(sql::EVENT_DUE)
        .bind(app.as_str())
        .bind(now.micros())
        .bind(limit)
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| Ok((row.try_get("no")?, read_event_id(row)?, row.try_get("attempts")?)))
        .collect()
}

async fn dispatch(
    conn: &mut SqliteConnection,
    asked: &DispatchDue,
    cx: Cx,
) -> Result<Dispatched, Fault> {
    let limit = asked.limit.min(DISPATCH_MAX);
    let mut due = due(conn, &asked.app, limit.saturating_add(1), cx.now).await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut dispatched = Dispatched { more: due.len() > limit, ..Dispatched::default() };
    due.truncate(limit);
    for (no, event, attempts) in due {
        if cx.is_long() && !dispatched.dispatched.is_empty() {
            dispatched.more = true;
            break;
        }
        sqlx::query("SAVEPOINT dispatch").execute(&mut *conn).await?;
        match create_runs(conn, no, cx.now).await {
            Ok(_) => dispatched.dispatched.push(event),
            Err(Fault(error)) => {
                // A file that cannot be written is not the event's fault: then these two fail as well.
                sqlx::query("ROLLBACK TO dispatch").execute(&mut *conn).await?;
                failed(conn, no, attempts.saturating_add(1), &error, cx.now).await?;
                dispatched.failed.push(event);
            }
        }
        sqlx::query("RELEASE dispatch").execute(&mut *conn).await?;
    }
    Ok(dispatched)
}

async fn failed(
    conn: &mut SqliteConnection,
    event: i64,
    attempts: u32,
    error: &StoreError,
    now: Timestamp,
) -> Result<(), Fault> {
    let is_last = attempts >= DISPATCH_ATTEMPTS;
    let source = std::error::Error::source(error).map(|source| format!(": {source}"));
    let said = format!("{error}{}", source.unwrap_or_default());
    sqlx::query(sql::EVENT_DISPATCH_FAILED)
        .bind(event)
        .bind(if is_last { "dead_lettered" } else { "retrying" })
        .bind(attempts)
        .bind((!is_last).then(|| now.plus(backoff(attempts)).micros()))
        .bind(is_last.then_some(now.micros()))
        .bind(surefoot_kernel_core::payload::text_for_storage(&said))
        .execute(conn)
        .await?;
    Ok(())
}

/// 1 s doubling to 300 s.
fn backoff(attempts: u32) -> Micros {
    let doublings = attempts.saturating_sub(1).min(9);
    Micros::from_secs((1_i64 << doublings).min(300))
}

/// A workflow that is gone, or going, fails the dispatch: the event is kept, and an operator sees why.
async fn check_there(
    conn: &mut SqliteConnection,
    recorded: Recorded<'_>,
    delivery: &SqliteRow,
) -> Result<(), Fault> {
    let workflow: &str = delivery.try_get("workflow")?;
    let refused = |said: String| Err(Fault(StoreError::Refused(said.into())));
    if !delivery.try_get::<bool, _>("is_there")? {
        return refused(format!("workflow `{workflow}` is gone"));
    }
    match being_deleted(conn, recorded.app, recorded.scope, Some(workflow)).await? {
        Some(place) => refused(format!("{place} is being deleted")),
        None => Ok(()),
    }
}

/// Creates the runs of a deferred event, each once, and says that they exist.
pub(crate) async fn create_runs(
    conn: &mut SqliteConnection,
    event: i64,
    now: Timestamp,
) -> Result<Vec<RunId>, Fault> {
    let row = sqlx::query(sql::EVENT_TO_DISPATCH).bind(event).fetch_one(&mut *conn).await?;
    let authorization = read_json(&row, "authorization")?;
    let trace = read_json(&row, "trace")?;
    let recorded = Recorded {
        event: read_event_id(&row)?,
        app: row.try_get("app")?,
        scope: row.try_get("scope")?,
        occurred_at: Timestamp::from_micros(row.try_get("occurred_at")?),
        data: row.try_get("data")?,
        context: row.try_get("context")?,
        authorization: authorization.as_ref(),
        trace: trace.as_ref(),
    };
    let deliveries = sqlx::query(sql::EVENT_DELIVERIES).bind(event).fetch_all(&mut *conn).await?;
    let mut runs = Vec::with_capacity(deliveries.len());
    for delivery in &deliveries {
        check_there(conn, recorded, delivery).await?;
        let matched = Match {
            run: RunId::from_bytes(sixteen(delivery, "run")?),
            workflow: WorkflowKey::from(delivery.try_get::<String, _>("workflow")?),
            version: VersionId::from_bytes(sixteen(delivery, "version")?),
            footprint: delivery.try_get("footprint")?,
            trigger: delivery.try_get("trigger_kind")?,
            authorization: read_json(delivery, "authorization")?,
        };
        runs.push(matched.run);
        let run = new_run(recorded, &matched, now);
        insert(conn, &run, started_with(recorded, &matched)).await?;
    }
    if runs.is_empty() {
        return Err(unreadable());
    }
    sqlx::query(sql::EVENT_DISPATCHED)
        .bind(event)
        .bind(packed(&runs))
        .bind(now.micros())
        .execute(conn)
        .await?;
    Ok(runs)
}
