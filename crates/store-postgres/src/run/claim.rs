//! Claims and takeovers.

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use surefoot_kernel_core::{
    Begun, Behind, ClaimRequest, Coming, Commit, Lease, Receipt, RowInput, Run, StoreError, Stored,
    TakeOverRequest, Timestamp, decide_row,
};

use super::behind;
use super::load::read_result;
use super::lock::{Locks, hash};
use super::read::{lock_run, readable};
use super::row::{Head, read_run};
use super::write::{Write, write_all};
use crate::error::Fault;
use crate::keys::Key;
use crate::sql;
use crate::writer::{Cx, Lane, Op};

pub(crate) struct Claim(pub(crate) ClaimRequest);

impl Op for Claim {
    type Out = Vec<Stored>;
    type Err = StoreError;
    const LANE: Lane = Lane::Claim;

    /// The same claim may be made again while nobody knows what became of it: then it must not be under way any more, or
    /// the second one would take other runs, and the first ones would wait for the end of their leases.
    fn alone(&self) -> Option<i32> {
        let Self(request) = self;
        let (session, nonce) = (request.session.key().to_string(), request.nonce.to_string());
        Some(hash(&[&session, &nonce]).cast_signed())
    }

    async fn run<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        cx: Cx,
    ) -> Result<Vec<Stored>, StoreError> {
        Ok(claim(conn, &self.0, cx.now).await?)
    }
}

/// What a claim finds.
enum Found {
    /// What the same claim took when it was made before and its answer was lost.
    Claimed(Vec<Run>),
    Due(Vec<(Head, Run)>),
}

async fn claim(
    conn: &mut PgConnection,
    request: &ClaimRequest,
    now: Timestamp,
) -> Result<Vec<Stored>, Fault> {
    let due = match first_readable(conn, request, now).await? {
        Found::Claimed(runs) => {
            let behind = behind::read(conn, runs.iter()).await?;
            return Ok(as_claimed(runs, behind, now));
        }
        Found::Due(due) => due,
    };
    let mut behind = behind::read(conn, due.iter().map(|(_, run)| run)).await?;
    let mut begun: Vec<(Head, Begun)> = Vec::with_capacity(due.len());
    for (head, run) in due {
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
fn as_claimed(runs: Vec<Run>, mut behind: Behind, now: Timestamp) -> Vec<Stored> {
    let stored = |run: Run| {
        let (invocation, journal) = behind.take(run.id, run.seq);
        Stored { receipt: Receipt::attest(&run), run, invocation, journal: Ok(journal), now }
    };
    runs.into_iter().map(stored).collect()
}

/// The first due runs that can be read. Those that cannot stay where they stand, at the front: as many more are asked
/// for, or they would take the places of others in every claim.
async fn first_readable(
    conn: &mut PgConnection,
    request: &ClaimRequest,
    now: Timestamp,
) -> Result<Found, Fault> {
    let wanted = usize::try_from(request.limit).unwrap_or(usize::MAX);
    let mut limit = i64::from(request.limit);
    loop {
        let rows = candidates(conn, request, limit, now).await?;
        if rows.first().map(|row| row.try_get("is_claimed")).transpose()? == Some(true) {
            let runs = rows.iter().map(|row| Ok(read_run(row)?.1));
            return runs.collect::<Result<_, Fault>>().map(Found::Claimed);
        }
        let mut runs = readable(&rows);
        let unreadable = i64::try_from(rows.len() - runs.len()).unwrap_or(i64::MAX);
        let next = i64::from(request.limit).saturating_add(unreadable);
        let there_is_more = i64::try_from(rows.len()).is_ok_and(|found| found >= limit);
        if runs.len() >= wanted || next <= limit || !there_is_more {
            // One footprint at a time was asked; all that it found beyond the first is let go at once.
            runs.sort_unstable_by_key(|(_, run)| (run.claimable_at(), run.id));
            runs.truncate(wanted);
            return Ok(Found::Due(runs));
        }
        limit = next;
    }
}

/// Whoever is locked by another claim is passed over.
async fn candidates(
    conn: &mut PgConnection,
    request: &ClaimRequest,
    limit: i64,
    now: Timestamp,
) -> Result<Vec<PgRow>, Fault> {
    let mut footprints: Vec<&str> = request.footprints.iter().map(String::as_str).collect();
    footprints.sort_unstable();
    footprints.dedup();
    let text = match request.tree {
        None => sql::RUN_CLAIMABLE,
        Some(_) => sql::RUN_CLAIMABLE_IN_TREE.as_str(),
    };
    let mut query = sqlx::query(text)
        .bind(request.app.as_str())
        .bind(request.mode.as_str())
        .bind(footprints)
        .bind(now.micros())
        .bind(request.session.key())
        .bind(nonce(request))
        .bind(limit);
    if let Some(root) = request.tree {
        query = query.bind(root.key());
    }
    Ok(query.fetch_all(conn).await?)
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
        conn: &'a mut PgConnection,
        cx: Cx,
    ) -> Result<Option<Run>, StoreError> {
        Ok(take_over(conn, self.0, cx.now).await?)
    }
}

/// The lock waits for a commit in doubt; whatever that wrote is read in a statement after it. One statement that did
/// both would see the row, but of the journal what was there before it waited.
async fn take_over(
    conn: &mut PgConnection,
    request: TakeOverRequest,
    now: Timestamp,
) -> Result<Option<Run>, Fault> {
    let locked = lock_run(conn, request.run, Locks::Wait).await?;
    let Some((head, mut run)) = locked else { return Ok(None) };
    read_result(conn, &mut run).await?;
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
