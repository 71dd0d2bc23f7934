//! Lease renewals: the row's lease and nothing else; and who of the leased is to stop.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sqlx::{PgConnection, Row};
use uuid::Uuid;

use surefoot_kernel_core::{RenewRequest, Renewed, RunId, Stamp, StoreError, Timestamp};

use super::row::int;
use crate::clock::StoreClock;
use crate::error::{Fault, store_error};
use crate::keys::Key;
use crate::pool::Pool;
use crate::sql;

/// Rows that one statement renews: it locks them, and commits of their runs pass over what is locked.
const CHUNK: usize = 50;
/// How long a commit that has a row locked is waited for, before the row counts as held by a fence.
const PAUSES_MS: [u64; 4] = [2, 5, 10, 25];

/// Renews in chunks, on a connection of its own. A row that stays locked is held by a transaction of its own action,
/// which may be waiting for the answer.
pub(crate) async fn renew(
    pool: &Arc<Pool>,
    clock: &StoreClock,
    request: &RenewRequest,
) -> Result<Vec<(RunId, Renewed)>, StoreError> {
    let mut runs = request.runs.clone();
    runs.sort_unstable_by_key(|stamp| stamp.run);
    let mut conn = pool.borrow().await?;
    let mut renewed = HashMap::with_capacity(runs.len());
    for chunk in runs.chunks(CHUNK) {
        chunk_renew(&mut conn, clock, request, chunk, &mut renewed).await.map_err(store_error)?;
    }
    conn.give_back();
    let answer =
        |stamp: &Stamp| (stamp.run, renewed.get(&stamp.run).copied().unwrap_or(Renewed::Lost));
    Ok(request.runs.iter().map(answer).collect())
}

/// Those that are lost are left out.
async fn chunk_renew(
    conn: &mut PgConnection,
    clock: &StoreClock,
    request: &RenewRequest,
    chunk: &[Stamp],
    renewed: &mut HashMap<RunId, Renewed>,
) -> Result<(), sqlx::Error> {
    let mut left = chunk.to_vec();
    let mut pauses = PAUSES_MS.into_iter();
    loop {
        once(conn, clock, request, &left, renewed).await?;
        left.retain(|stamp| !renewed.contains_key(&stamp.run));
        left = held(conn, request, &left).await?;
        let Some(pause) = pauses.next().filter(|_| !left.is_empty()) else { break };
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    renewed.extend(left.iter().map(|stamp| (stamp.run, Renewed::FenceHeld)));
    Ok(())
}

async fn once(
    conn: &mut PgConnection,
    clock: &StoreClock,
    request: &RenewRequest,
    stamps: &[Stamp],
    renewed: &mut HashMap<RunId, Renewed>,
) -> Result<(), sqlx::Error> {
    let (ids, generations) = columns(stamps);
    let rows = sqlx::query(sql::RUN_RENEW)
        .bind(ids)
        .bind(generations)
        .bind(request.session.key())
        .bind(clock.offset())
        .bind(request.lease.get())
        .fetch_all(conn)
        .await?;
    for row in &rows {
        let until = Timestamp::from_micros(row.try_get("lease_until")?);
        let canceled = row.try_get("canceled")?;
        renewed.insert(RunId::of_key(row.try_get("id")?), Renewed::Held { until, canceled });
    }
    Ok(())
}

/// Of these, those whose session has the lease still.
async fn held(
    conn: &mut PgConnection,
    request: &RenewRequest,
    stamps: &[Stamp],
) -> Result<Vec<Stamp>, sqlx::Error> {
    if stamps.is_empty() {
        return Ok(Vec::new());
    }
    let (ids, generations) = columns(stamps);
    let query = sqlx::query(sql::RUN_HELD).bind(ids).bind(generations).bind(request.session.key());
    let rows = query.fetch_all(conn).await?;
    let held = rows.iter().map(|row| row.try_get("id").map(RunId::of_key));
    let held = held.collect::<Result<Vec<_>, _>>()?;
    Ok(stamps.iter().filter(|stamp| held.contains(&stamp.run)).copied().collect())
}

fn columns(stamps: &[Stamp]) -> (Vec<Uuid>, Vec<i64>) {
    stamps.iter().map(|stamp| (stamp.run.key(), int(stamp.generation))).unzip()
}

/// Those whose cancel was requested.
pub(crate) async fn canceled(conn: &mut PgConnection, held: &[Stamp]) -> Result<Vec<RunId>, Fault> {
    let (ids, generations) = columns(held);
    let query = sqlx::query(sql::RUN_CANCELED).bind(ids).bind(generations);
    let rows = query.fetch_all(conn).await?;
    rows.iter().map(|row| Ok(RunId::of_key(row.try_get("id")?))).collect()
}
