//! Events whose payloads are emptied.

use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::retention::{event_held_by, events_expire_before};
use surefoot_kernel_core::{App, EventStatus, Expired, RunId, RunState, StoreError, Timestamp};

use super::{CHUNK, LIMIT_MAX, clamp, length, list};
use crate::error::Fault;
use crate::event::emit::unpacked;
use crate::run::row::json;
use crate::sql;
use crate::writer::{Cx, Lane, Op};

/// An event and the runs that it started.
type Candidate = (i64, Vec<RunId>);

/// What may be emptied now, oldest first: at most so many events, and whether there may be more.
pub(crate) async fn expired(
    conn: &mut SqliteConnection,
    app: &App,
    limit: u32,
    now: Timestamp,
) -> Result<(Vec<Candidate>, bool), Fault> {
    let limit = usize::try_from(clamp(limit)).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    for status in [EventStatus::Dispatched, EventStatus::DeadLettered, EventStatus::Unmatched] {
        let mut after = (i64::MIN, i64::MIN);
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
    conn: &mut SqliteConnection,
    (app, status, now): (&App, EventStatus, Timestamp),
    after: (i64, i64),
    found: &mut Vec<Candidate>,
) -> Result<Option<(i64, i64)>, Fault> {
    let rows = sqlx::query(sql::RETENTION_EVENTS_OLD)
        .bind(app.as_str())
        .bind(status.as_str())
        .bind(events_expire_before(now).micros())
        .bind(after.0)
        .bind(after.1)
        .bind(LIMIT_MAX)
        .fetch_all(&mut *conn)
        .await?;
    for row in &rows {
        let candidate = (row.try_get("no")?, unpacked(row.try_get("runs")?));
        if !is_referred_to(conn, &candidate.1).await? {
            found.push(candidate);
        }
    }
    let last = rows.last().map(|row| Ok((row.try_get("recorded_at")?, row.try_get("no")?)));
    last.transpose()
}

/// Whether a run that stems from the event is alive.
async fn is_referred_to(conn: &mut SqliteConnection, runs: &[RunId]) -> Result<bool, Fault> {
    let living = RunState::ALL.iter().filter(|state| event_held_by(**state));
    let living = json(&living.map(|state| state.as_str()).collect::<Vec<_>>())?;
    for run in runs {
        let query = sqlx::query(sql::RETENTION_TREE_IN_STATE).bind(run.to_bytes().to_vec());
        if query.bind(&*living).fetch_optional(&mut *conn).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
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

    async fn run<'a>(
        &'a self,
        conn: &'a mut SqliteConnection,
        cx: Cx,
    ) -> Result<Expired, StoreError> {
        Ok(empty_all(conn, self, cx).await?)
    }
}

async fn empty_all(conn: &mut SqliteConnection, op: &Empty, cx: Cx) -> Result<Expired, Fault> {
    let mut done = Expired { emptied: 0, more: op.more };
    for chunk in op.events.chunks(CHUNK) {
        if cx.is_long() && done.emptied > 0 {
            done.more = true;
            break;
        }
        let mut numbers = Vec::with_capacity(chunk.len());
        for (no, runs) in chunk {
            if !is_referred_to(conn, runs).await? {
                numbers.push(*no);
            }
        }
        done.emptied += empty(conn, &numbers, events_expire_before(cx.now), cx.now).await?;
    }
    Ok(done)
}

/// Deliveries and payload go; the row stays. Of the events, only those that were done with at that instant or before.
pub(super) async fn empty(
    conn: &mut SqliteConnection,
    events: &[i64],
    done_by: Timestamp,
    now: Timestamp,
) -> Result<u32, Fault> {
    let query = sqlx::query(sql::RETENTION_MARK_EMPTIED).bind(list(events)?).bind(now.micros());
    let marked = query.bind(done_by.micros()).fetch_all(&mut *conn).await?;
    let marked = marked.iter().map(|row| Ok(row.try_get("no")?));
    let marked = marked.collect::<Result<Vec<i64>, Fault>>()?;
    let numbers = list(&marked)?;
    for statement in [sql::RETENTION_DROP_DELIVERIES, sql::RETENTION_DROP_EVENT_PAYLOADS] {
        sqlx::query(statement).bind(&*numbers).execute(&mut *conn).await?;
    }
    Ok(length(marked.len()))
}
