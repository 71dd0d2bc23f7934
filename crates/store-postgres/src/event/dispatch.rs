//! Deferred events: their runs, created from what they matched when they were recorded.

use std::collections::HashMap;

use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use surefoot_kernel_core::{
    App, Dispatched, EventId, Micros, Run, RunId, StoreError, Timestamp, TraceContext,
};

use super::catalog::Start;
use super::emit::new_run;
use crate::clock::StoreClock;
use crate::error::{Fault, unreadable};
use crate::keys::{Key, sorted_keys};
use crate::plan::list::{read_json, read_key, read_small, read_time};
use crate::retention::place::being_deleted;
use crate::run::insert::{StartedWith, insert_all};
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
        conn: &'a mut PgConnection,
        cx: Cx,
    ) -> Result<Dispatched, StoreError> {
        Ok(dispatch(conn, self, cx).await?)
    }
}

/// Whether an event is due.
pub(crate) async fn is_due(
    conn: &mut PgConnection,
    app: &App,
    clock: &StoreClock,
) -> Result<bool, Fault> {
    let query = sqlx::query(sql::EVENT_DUE).bind(app.as_str()).bind(clock.offset());
    Ok(query.fetch_optional(conn).await?.is_some())
}

async fn dispatch(
    conn: &mut PgConnection,
    asked: &DispatchDue,
    cx: Cx,
) -> Result<Dispatched, Fault> {
    let limit = asked.limit.min(DISPATCH_MAX);
    let mut due = sqlx::query(sql::EVENT_TAKE_DUE)
        .bind(asked.app.as_str())
        .bind(cx.now.micros())
        .bind(i64::from(limit.saturating_add(1)))
        .fetch_all(&mut *conn)
        .await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut dispatched = Dispatched { more: due.len() > limit, ..Dispatched::default() };
    due.truncate(limit);
    let mut taken = Vec::with_capacity(due.len());
    for row in &due {
        taken.push((read_key(row, "id")?, read_small(row, "attempts")?));
    }
    // All at once, as a rule; if that fails, each alone, so that the culprit is known.
    let all: Vec<EventId> = taken.iter().map(|(event, _)| *event).collect();
    if all.len() > 1
        && let Ok(traces) = apart(conn, &all, cx.now).await?
    {
        (dispatched.dispatched, dispatched.traces) = (all, traces);
        return Ok(dispatched);
    }
    for (event, attempts) in taken {
        if cx.is_long() && !dispatched.dispatched.is_empty() {
            dispatched.more = true;
            break;
        }
        match apart(conn, &[event], cx.now).await? {
            Ok(traces) => {
                dispatched.dispatched.push(event);
                dispatched.traces.extend(traces);
            }
            Err(error) => {
                failed(conn, event, attempts.saturating_add(1), &error, cx.now).await?;
                dispatched.failed.push(event);
            }
        }
    }
    Ok(dispatched)
}

/// In which traces events belong.
type Traces = Vec<(EventId, TraceContext)>;

/// Creates the runs of events, or leaves nothing of it.
async fn apart(
    conn: &mut PgConnection,
    events: &[EventId],
    now: Timestamp,
) -> Result<Result<Traces, StoreError>, Fault> {
    sqlx::raw_sql("SAVEPOINT dispatch").execute(&mut *conn).await?;
    match create_runs(conn, events, now).await {
        Ok((_, traces)) => {
            sqlx::raw_sql("RELEASE dispatch").execute(&mut *conn).await?;
            Ok(Ok(traces))
        }
        // Not the events' fault: the pass is begun again.
        Err(fault @ Fault(StoreError::TransactionConflict(_))) => Err(fault),
        // Neither is a server that is gone: then the rollback fails as well.
        Err(Fault(error)) => {
            sqlx::raw_sql("ROLLBACK TO dispatch; RELEASE dispatch").execute(&mut *conn).await?;
            Ok(Err(error))
        }
    }
}

async fn failed(
    conn: &mut PgConnection,
    event: EventId,
    attempts: u32,
    error: &StoreError,
    now: Timestamp,
) -> Result<(), Fault> {
    let is_last = attempts >= DISPATCH_ATTEMPTS;
    let source = std::error::Error::source(error).map(|source| format!(": {source}"));
    let said = format!("{error}{}", source.unwrap_or_default());
    sqlx::query(sql::EVENT_DISPATCH_FAILED)
        .bind(event.key())
        .bind(if is_last { "dead_lettered" } else { "retrying" })
        .bind(i64::from(attempts))
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

/// An event of which runs are created.
struct Deferred {
    app: String,
    scope: String,
    occurred_at: Timestamp,
    data: String,
    context: String,
    authorization: Option<Value>,
    trace: Option<TraceContext>,
}

fn read_deferred(row: &PgRow) -> Result<(EventId, Deferred), Fault> {
    let deferred = Deferred {
        app: row.try_get("app")?,
        scope: row.try_get("scope")?,
        occurred_at: read_time(row, "occurred_at")?,
        data: row.try_get("data")?,
        context: row.try_get("context")?,
        authorization: read_json(row, "authorization")?,
        trace: read_json(row, "trace")?,
    };
    Ok((read_key(row, "id")?, deferred))
}

/// A workflow that is gone, or going, fails the dispatch: the event is kept, and an operator sees why.
async fn check_there(
    conn: &mut PgConnection,
    event: &Deferred,
    delivery: &PgRow,
) -> Result<(), Fault> {
    let workflow: &str = delivery.try_get("workflow")?;
    let refused = |said: String| Err(Fault(StoreError::Refused(said.into())));
    if !delivery.try_get::<bool, _>("is_there")? {
        return refused(format!("workflow `{workflow}` is gone"));
    }
    match being_deleted(conn, &event.app, &event.scope, Some(workflow)).await? {
        Some(place) => refused(format!("{place} is being deleted")),
        None => Ok(()),
    }
}

/// Creates the runs of deferred events, each once, and says that they exist. The caller has locked the events.
async fn create_runs(
    conn: &mut PgConnection,
    events: &[EventId],
    now: Timestamp,
) -> Result<(HashMap<EventId, Vec<RunId>>, Traces), Fault> {
    let keys = sorted_keys(events.iter().copied());
    let rows = sqlx::query(sql::EVENT_TO_DISPATCH).bind(&keys).fetch_all(&mut *conn).await?;
    let deferred = rows.iter().map(read_deferred).collect::<Result<HashMap<_, _>, _>>()?;
    let rows = sqlx::query(sql::EVENT_DELIVERIES).bind(&keys).fetch_all(&mut *conn).await?;
    let mut new: Vec<(EventId, &Deferred, Start, Run)> = Vec::with_capacity(rows.len());
    for row in &rows {
        let id: EventId = read_key(row, "event")?;
        let event = deferred.get(&id).ok_or_else(unreadable)?;
        check_there(conn, event, row).await?;
        let (run, start) = (read_key(row, "run")?, Start::read(row)?);
        let place = (event.app.as_str(), event.scope.as_str());
        let run = new_run(place, (id, event.occurred_at), (run, &start), now);
        new.push((id, event, start, run));
    }
    let mut created: HashMap<EventId, Vec<RunId>> = HashMap::new();
    for (event, _, _, run) in &new {
        created.entry(*event).or_default().push(run.id);
    }
    if created.len() < keys.len() {
        return Err(unreadable());
    }
    let started: Vec<(&Run, StartedWith<'_>)> = new
        .iter()
        .map(|(_, event, start, run)| {
            // The emitter's word wins, even if no actor can be read from it.
            let authorization = event.authorization.as_ref().or(start.authorization.as_ref());
            let (data, context) = (event.data.as_str(), Some(event.context.as_str()));
            (run, StartedWith { data, context, authorization, trace: event.trace.as_ref() })
        })
        .collect();
    insert_all(conn, &started).await?;
    sqlx::query(sql::EVENT_DISPATCHED)
        .bind(keys)
        .bind(new.iter().map(|(event, ..)| event.key()).collect::<Vec<Uuid>>())
        .bind(new.iter().map(|(_, _, _, run)| run.id.key()).collect::<Vec<Uuid>>())
        .bind(now.micros())
        .execute(conn)
        .await?;
    let traces = deferred.into_iter().filter_map(|(id, event)| Some((id, event.trace?)));
    Ok((created, traces.collect()))
}

/// Creates the runs of an event that was deferred, since they are wanted now. If somebody was faster, they are there.
pub(crate) async fn start_deferred(
    conn: &mut PgConnection,
    event: EventId,
    now: Timestamp,
) -> Result<Vec<RunId>, Fault> {
    let query = sqlx::query(sql::EVENT_LOCK).bind(event.key());
    let row = query.fetch_optional(&mut *conn).await?.ok_or_else(unreadable)?;
    let status: &str = row.try_get("status")?;
    if status == "pending" || status == "retrying" {
        let (mut created, _) = create_runs(conn, &[event], now).await?;
        return created.remove(&event).ok_or_else(unreadable);
    }
    let runs: Vec<Uuid> = row.try_get("runs")?;
    Ok(runs.into_iter().map(RunId::of_key).collect())
}

/// [`start_deferred`] in a transaction of its own.
pub(crate) struct StartDeferred(pub(crate) EventId);

impl Op for StartDeferred {
    type Out = Vec<RunId>;
    type Err = StoreError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        cx: Cx,
    ) -> Result<Vec<RunId>, StoreError> {
        Ok(start_deferred(conn, self.0, cx.now).await?)
    }
}
