//! Events whose payloads are emptied.

use std::collections::HashSet;

use sqlx::{PgConnection, Row};
use uuid::Uuid;

use surefoot_kernel_core::retention::{event_held_by, events_expire_before};
use surefoot_kernel_core::{App, EventStatus, Expired, RunState, StoreError, Timestamp};

use super::{CHUNK, LIMIT_MAX, affected, clamp};
use crate::error::Fault;
use crate::sql;
use crate::writer::{Cx, Lane, Op};

/// An event and the runs that it started.
type Candidate = (Uuid, Vec<Uuid>);

/// What may be emptied now, oldest first: at most so many events, and whether there may be more.
pub(crate) async fn expired(
    conn: &mut PgConnection,
    app: &App,
    limit: u32,
    now: Timestamp,
) -> Result<(Vec<Candidate>, bool), Fault> {
    let limit = usize::try_from(clamp(limit)).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    for status in [EventStatus::Dispatched, EventStatus::DeadLettered, EventStatus::Unmatched] {
        let mut after = (i64::MIN, Uuid::nil());
        while let Some(next) = page(conn, (app, status, now), after, &mut found).await? {
            if found.len() > limit {
                found.truncate(limit);
                return Ok((found, true));
            }
            after = next;
        }
    }
    let more = found.len() > limit;
    found.truncate(limit);
    Ok((found, more))
}

/// Adds what is free of one page of old events. Answers where the next page begins.
async fn page(
    conn: &mut PgConnection,
    (app, status, now): (&App, EventStatus, Timestamp),
    after: (i64, Uuid),
    found: &mut Vec<Candidate>,
) -> Result<Option<(i64, Uuid)>, Fault> {
    let rows = sqlx::query(sql::RETENTION_EVENTS_OLD)
        .bind(app.as_str())
        .bind(status.as_str())
        .bind(events_expire_before(now).micros())
        .bind(after.0)
        .bind(after.1)
        .bind(i64::from(LIMIT_MAX))
        .fetch_all(&mut *conn)
        .await?;
    let read = rows.iter().map(|row| Ok((row.try_get("id")?, row.try_get("runs")?)));
    let candidates = read.collect::<Result<Vec<Candidate>, Fault>>()?;
    let held = held(conn, &candidates).await?;
    found.extend(candidates.into_iter().filter(|(event, _)| !held.contains(event)));
    let last = rows.last().map(|row| Ok((row.try_get("recorded_at")?, row.try_get("id")?)));
    last.transpose()
}

/// The events of which a run is alive.
async fn held(conn: &mut PgConnection, candidates: &[Candidate]) -> Result<HashSet<Uuid>, Fault> {
    let pairs =
        || candidates.iter().flat_map(|(event, runs)| runs.iter().map(|run| (*event, *run)));
    let (events, runs): (Vec<Uuid>, Vec<Uuid>) = pairs().unzip();
    let living = RunState::ALL.iter().filter(|state| event_held_by(**state));
    let living: Vec<&str> = living.map(|state| state.as_str()).collect();
    let query = sqlx::query(sql::RETENTION_EVENTS_HELD).bind(events).bind(runs).bind(living);
    let rows = query.fetch_all(conn).await?;
    rows.iter().map(|row| Ok(row.try_get("event")?)).collect()
}

/// Empties what was found, unless a run has come to life again meanwhile.
pub(crate) struct Empty {
    pub(crate) events: Vec<Candidate>,
    pub(crate) more: bool,
}

impl Op for Empty {
    type Out = Expired;
    type Err = StoreError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(&'a self, conn: &'a mut PgConnection, cx: Cx) -> Result<Expired, StoreError> {
        Ok(empty_all(conn, self, cx).await?)
    }
}

async fn empty_all(conn: &mut PgConnection, op: &Empty, cx: Cx) -> Result<Expired, Fault> {
    let mut done = Expired { emptied: 0, more: op.more };
    for chunk in op.events.chunks(CHUNK) {
        if cx.is_long() && done.emptied > 0 {
            done.more = true;
            break;
        }
        let free = free(conn, chunk).await?;
        done.emptied += empty(conn, &free, events_expire_before(cx.now), cx.now).await?;
    }
    Ok(done)
}

/// Those of which no run is alive, nor can come to life while this transaction goes on: what a retry would move is
/// the root, and it is locked first.
async fn free(conn: &mut PgConnection, chunk: &[Candidate]) -> Result<Vec<Uuid>, Fault> {
    let roots: Vec<Uuid> = chunk.iter().flat_map(|(_, runs)| runs.iter().copied()).collect();
    let rows = sqlx::query(sql::RETENTION_KEEP_RUNS).bind(roots).fetch_all(&mut *conn).await?;
    let busy = rows.iter().map(|row| Ok(row.try_get("id")?));
    let busy = busy.collect::<Result<HashSet<Uuid>, Fault>>()?;
    let held = held(conn, chunk).await?;
    let is_free = |(event, runs): &&Candidate| {
        !held.contains(event) && !runs.iter().any(|run| busy.contains(run))
    };
    Ok(chunk.iter().filter(is_free).map(|(event, _)| *event).collect())
}

/// Deliveries and payload go; the row stays. Of the events, only those that were done with at that instant or before.
pub(super) async fn empty(
    conn: &mut PgConnection,
    events: &[Uuid],
    done_by: Timestamp,
    now: Timestamp,
) -> Result<u32, Fault> {
    // What is dispatched or redriven at this moment is left for another time.
    let query = sqlx::query(sql::RETENTION_LOCK_EVENTS).bind(events).bind(done_by.micros());
    let rows = query.fetch_all(&mut *conn).await?;
    let locked =
        rows.iter().map(|row| Ok(row.try_get("id")?)).collect::<Result<Vec<Uuid>, Fault>>()?;
    for statement in [sql::RETENTION_DROP_DELIVERIES, sql::RETENTION_DROP_EVENT_PAYLOADS] {
        sqlx::query(statement).bind(&locked).execute(&mut *conn).await?;
    }
    let query = sqlx::query(sql::RETENTION_MARK_EMPTIED).bind(&locked).bind(now.micros());
    Ok(affected(&query.execute(conn).await?))
}
