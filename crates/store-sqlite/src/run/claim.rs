//! Claims and takeovers.

use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::{
    Begun, Behind, ClaimRequest, Coming, Commit, Lease, Receipt, RowInput, Run, RunId, StoreError,
    Stored, TakeOverRequest, Timestamp, decide_row,
};

use super::behind;
use super::load::read_result;
use super::read::{run_by_id, runs_by_no};
use super::row::{Head, read_run};
use super::write::{Write, write_all};
use crate::error::Fault;
use crate::sql;
use crate::writer::{Cx, Lane, Op};

/// A run that a claim may take, by the order in which runs are taken.
type Candidate = (Timestamp, RunId, i64);

pub(crate) struct Claim(pub(crate) ClaimRequest);

impl Op for Claim {
    type Out = Vec<Stored>;
    type Err = StoreError;
    const LANE: Lane = Lane::Claim;

    async fn run<'a>(
        &'a self,
        conn: &'a mut SqliteConnection,
        cx: Cx,
    ) -> Result<Vec<Stored>, StoreError> {
        Ok(claim(conn, &self.0, cx.now).await?)
    }
}

async fn claim(
    conn: &mut SqliteConnection,
    request: &ClaimRequest,
    now: Timestamp,
) -> Result<Vec<Stored>, Fault> {
    let before = claimed_before(conn, request).await?;
    if !before.is_empty() {
        let behind = behind::read(conn, &before).await?;
        return Ok(as_claimed(before, behind, now));
    }
    let runs = first_readable(conn, request, now).await?;
    let mut behind = behind::read(conn, &runs).await?;
    let mut begun: Vec<(Head, Begun)> = Vec::with_capacity(runs.len());
    for (head, run) in runs {
        let coming = Coming::of(&run, behind.invocation(run.id));
        if let Ok(begins) = request.plans.begin(coming, request.lease(now), now) {
            begun.push((head, begins));
        }
    }
    let writes: Vec<Write<'_>> = begun
        .iter()
        .map(|(head, begins)| {
            let mut write = Write::decided(head.clone(), &begins.commit);
            write.claim_nonce = Some(nonce(request));
            write
        })
        .collect();
    write_all(conn, &writes, now).await?;
    drop(writes);
    let stored = begun.into_iter().map(|(_, begins)| {
        let before = begins.commit.before;
        let receipt = Receipt::attest(&begins.commit.after);
        begins.stored(receipt, behind.take(before.run, before.seq), now)
    });
    Ok(stored.collect())
}

/// Runs that were claimed before, as they are now.
fn as_claimed(runs: Vec<(Head, Run)>, mut behind: Behind, now: Timestamp) -> Vec<Stored> {
    let stored = |(_, run): (Head, Run)| {
        let (invocation, journal) = behind.take(run.id, run.seq);
        Stored { receipt: Receipt::attest(&run), run, invocation, journal: Ok(journal), now }
    };
    runs.into_iter().map(stored).collect()
}

/// Whether a claim would find anything: asked on a reading connection, so that an idle worker writes nothing.
pub(crate) async fn is_claimable(
    conn: &mut SqliteConnection,
    request: &ClaimRequest,
    now: Timestamp,
) -> Result<bool, Fault> {
    if !claimed_before(conn, request).await?.is_empty() {
        return Ok(true);
    }
    Ok(!candidates(conn, request, 1, now).await?.is_empty())
}

/// What the same claim took when it was made before and its answer was lost.
async fn claimed_before(
    conn: &mut SqliteConnection,
    request: &ClaimRequest,
) -> Result<Vec<(Head, Run)>, Fault> {
    let rows = sqlx::query(sql::RUN_CLAIMED)
        .bind(request.session.to_bytes().to_vec())
        .bind(nonce(request))
        .fetch_all(conn)
        .await?;
    rows.iter().map(read_run).collect()
}

/// The first due runs that can be read. Those that cannot stay where they stand, at the front: as many more are asked
/// for, or they would take the places of others in every claim.
async fn first_readable(
    conn: &mut SqliteConnection,
    request: &ClaimRequest,
    now: Timestamp,
) -> Result<Vec<(Head, Run)>, Fault> {
    let mut limit = request.limit;
    loop {
        let found = candidates(conn, request, limit, now).await?;
        let numbers: Vec<i64> = found.into_iter().map(|(_, _, no)| no).collect();
        let runs = runs_by_no(conn, &numbers).await?;
        let unreadable = u32::try_from(numbers.len() - runs.len()).unwrap_or(u32::MAX);
        let next = request.limit.saturating_add(unreadable);
        let there_is_more = u32::try_from(numbers.len()).is_ok_and(|found| found >= limit);
        if next <= limit || !there_is_more {
            return Ok(runs);
        }
        limit = next;
    }
}

/// The first due runs over all footprints. One footprint at a time reads only what it takes; one query over all of
/// them would read and sort every due run.
async fn candidates(
    conn: &mut SqliteConnection,
    request: &ClaimRequest,
    limit: u32,
    now: Timestamp,
) -> Result<Vec<Candidate>, Fault> {
    let mut found: Vec<Candidate> = Vec::new();
    for footprint in &request.footprints {
        let rows = sqlx::query(sql::RUN_CLAIMABLE)
            .bind(request.app.as_str())
            .bind(request.mode.as_str())
            .bind(&**footprint)
            .bind(now.micros())
            .bind(limit)
            .bind(request.tree.map(|root| root.to_bytes().to_vec()))
            .fetch_all(&mut *conn)
            .await?;
        for row in rows {
            let id: [u8; 16] = row.try_get::<Vec<u8>, _>("id")?.try_into().unwrap_or_default();
            let at = Timestamp::from_micros(row.try_get("claimable_at")?);
            found.push((at, RunId::from_bytes(id), row.try_get("no")?));
        }
    }
    found.sort_unstable();
    found.dedup();
    found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(found)
}

/// Any 64 bits will do as a name: the stored number keeps them, sign or not.
fn nonce(request: &ClaimRequest) -> i64 {
    request.nonce.cast_signed()
}

pub(crate) struct TakeOver(pub(crate) TakeOverRequest);

impl Op for TakeOver {
    type Out = Option<Run>;
    type Err = StoreError;
    const LANE: Lane = Lane::TakeOver;

    async fn run<'a>(
        &'a self,
        conn: &'a mut SqliteConnection,
        cx: Cx,
    ) -> Result<Option<Run>, StoreError> {
        Ok(take_over(conn, self.0, cx.now).await?)
    }
}

async fn take_over(
    conn: &mut SqliteConnection,
    request: TakeOverRequest,
    now: Timestamp,
) -> Result<Option<Run>, Fault> {
    let Some((head, mut run)) = run_by_id(conn, request.run).await? else { return Ok(None) };
    read_result(conn, head.no, &mut run).await?;
    let lease =
        Lease { owner: request.session, until: now.plus(request.lease), length: request.lease };
    let input = RowInput::TakeOver { generation: request.generation, lease };
    // Refused, or nothing to do, where nobody's commit can be in doubt any more.
    let facts = decide_row(&run, input, now).unwrap_or_default();
    if facts.is_empty() {
        return Ok(Some(run));
    }
    let commit = Commit::new(&run, &facts);
    write_all(conn, &[Write::decided(head, &commit)], now).await?;
    Ok(Some(commit.after))
}
