//! Committers: tasks with a connection each, which write whatever waits when they are free.
//!
//! Nobody waits for a batch to fill, and no batch waits for a row: an entry whose row is locked goes into the next
//! batches, and then alone to where it may wait. A batch that the database refuses is halved until the culprit is
//! alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sqlx::{Connection, PgConnection};
use surefoot_kernel_core::{BoxFuture, Commit, RunId, StoreError};

use super::begin::{begin, commit, rollback};
use super::job::run_to_end;
use super::queue::{Ask, Queue};
use super::turns::{Turn, Turns};
use crate::clock::StoreClock;
use crate::error::{Fault, Shared, commit_error};
use crate::pool::{Connect, Pool};
use crate::run::commit::{CommitAlone, Verdict, commit_group};
use crate::run::fast::{Said, Way, commit_plain};
use crate::run::lock::Locks;

/// For so long an entry is tried together with others, before it is left to wait for its lock alone: most locks are
/// those of another batch.
const BOUNCE_FOR: Duration = Duration::from_millis(50);
/// How long it is left alone between two tries.
const BOUNCE_PAUSE: Duration = Duration::from_millis(2);
/// A connection that was idle for so long is asked whether it still lives, lest its loss makes a commit unknown.
const TRUSTED_FOR: Duration = Duration::from_secs(1);
/// Pauses between two tries to connect.
const PAUSE_MS: u64 = 100;
/// So often in a row a connection is tried before whoever waits is told.
const CONNECT_TRIES: u32 = 3;

/// What the committers have done so far.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) batches: AtomicU64,
    pub(crate) entries: AtomicU64,
    pub(crate) bounced: AtomicU64,
}

/// What became of the entries of one batch.
#[derive(Default)]
struct Outcome {
    /// Their rows are locked by somebody.
    busy: Vec<Ask>,
    /// They mean more than their commits say.
    not_plain: Vec<Ask>,
    /// The connection is of no use any more.
    is_broken: bool,
}

impl Outcome {
    fn and(mut self, other: Self) -> Self {
        self.busy.extend(other.busy);
        self.not_plain.extend(other.not_plain);
        self.is_broken |= other.is_broken;
        self
    }
}

/// One of the tasks.
pub(crate) struct Committer {
    pub(crate) queue: Arc<Queue>,
    pub(crate) connect: Connect,
    pub(crate) clock: StoreClock,
    pub(crate) stats: Arc<Stats>,
    pub(crate) turns: Turns,
    /// Where an entry may wait for its lock.
    pub(crate) side: Arc<Pool>,
    pub(crate) conn: Option<(PgConnection, Instant)>,
}

impl Committer {
    /// Ends once every handle is dropped and everything is answered.
    pub(crate) async fn run(mut self) {
        while let Some((batch, turn)) = self.queue.next_batch(&self.turns).await {
            let runs: Vec<RunId> = batch.iter().map(Ask::run_id).collect();
            let busy = self.batch(batch, turn).await;
            self.queue.landed(&runs);
            self.bounce(busy);
        }
        if let Some((conn, _)) = self.conn {
            // The server ends the session in any case.
            drop(conn.close().await);
        }
    }

    /// Answers what somebody else has locked.
    async fn batch(&mut self, batch: Vec<Ask>, turn: Option<Turn>) -> Vec<Ask> {
        self.stats.batches.fetch_add(1, Ordering::Relaxed);
        self.stats.entries.fetch_add(batch.len() as u64, Ordering::Relaxed);
        let mut conn = match self.connection().await {
            Ok(conn) => conn,
            Err(error) => {
                let error = Arc::new(error);
                for ask in batch {
                    ask.answer(Err(StoreError::Unavailable(Box::new(error.clone()))));
                }
                return Vec::new();
            }
        };
        let (plain, mut group): (Vec<Ask>, Vec<Ask>) =
            batch.into_iter().partition(|ask| ask.way <= Way::Move);
        let mut done = write_plain(&mut conn, plain, &self.clock).await;
        // What follows may wait for locks.
        drop(turn);
        group.append(&mut done.not_plain);
        if done.is_broken {
            // Nothing of these was sent.
            done.busy.append(&mut group);
        } else {
            done = done.and(write_group(&mut conn, group, &self.clock).await);
        }
        if !done.is_broken {
            self.conn = Some((conn, Instant::now()));
        }
        done.busy
    }

    /// Those that may be tried together with others once more are, after a pause; the rest goes where it may wait.
    fn bounce(&self, busy: Vec<Ask>) {
        self.stats.bounced.fetch_add(busy.len() as u64, Ordering::Relaxed);
        let mut again = Vec::new();
        for mut ask in busy {
            if ask.bounce() < BOUNCE_FOR {
                again.push(ask);
            } else {
                commit_alone(&self.side, &self.clock, ask);
            }
        }
        if again.is_empty() {
            return;
        }
        let queue = self.queue.clone();
        tokio::spawn(async move {
            tokio::time::sleep(BOUNCE_PAUSE).await;
            queue.put_back(again);
        });
    }

    async fn connection(&mut self) -> Result<PgConnection, StoreError> {
        if let Some((mut conn, since)) = self.conn.take()
            && (since.elapsed() < TRUSTED_FOR || conn.ping().await.is_ok())
        {
            return Ok(conn);
        }
        let mut tries = 0;
        loop {
            tries += 1;
            match self.connect.open().await {
                Ok(conn) => return Ok(conn),
                Err(error) if tries >= CONNECT_TRIES => return Err(error),
                Err(error) => {
                    tracing::debug!(%error, "a committer cannot connect");
                    tokio::time::sleep(Duration::from_millis(PAUSE_MS)).await;
                }
            }
        }
    }
}

/// Writes an entry in a transaction of its own, which waits for the locks that it needs.
pub(super) fn commit_alone(side: &Arc<Pool>, clock: &StoreClock, ask: Ask) {
    let (side, clock) = (side.clone(), clock.clone());
    tokio::spawn(async move {
        let (commit, reply) = ask.into_parts();
        let done = run_to_end(&CommitAlone(commit), &clock, &side).await;
        // Whoever asked may be gone.
        drop(reply.send(done));
    });
}

/// One statement. If the database refuses it, two of half the size.
fn write_plain<'a>(
    conn: &'a mut PgConnection,
    asks: Vec<Ask>,
    clock: &'a StoreClock,
) -> BoxFuture<'a, Outcome> {
    Box::pin(async move {
        if asks.is_empty() {
            return Outcome::default();
        }
        let commits: Vec<&Commit> = asks.iter().map(|ask| &*ask.commit).collect();
        match commit_plain(conn, &commits, clock.offset()).await {
            Ok(said) => settle_plain(asks, said),
            Err(error) => match halve(asks, error) {
                Halved::Over(outcome) => outcome,
                Halved::Again(first, second) => {
                    let first = write_plain(conn, first, clock).await;
                    if first.is_broken {
                        return first.and(Outcome { busy: second, ..Outcome::default() });
                    }
                    first.and(write_plain(conn, second, clock).await)
                }
            },
        }
    })
}

/// One transaction. If the database refuses it, two of half the size.
fn write_group<'a>(
    conn: &'a mut PgConnection,
    asks: Vec<Ask>,
    clock: &'a StoreClock,
) -> BoxFuture<'a, Outcome> {
    Box::pin(async move {
        if asks.is_empty() {
            return Outcome::default();
        }
        match transaction(conn, &asks, clock).await {
            Ok(verdicts) => settle(asks.into_iter().zip(verdicts)),
            Err(error) => match halve(asks, error) {
                Halved::Over(outcome) => outcome,
                Halved::Again(first, second) => {
                    let first = write_group(conn, first, clock).await;
                    if first.is_broken {
                        return first.and(Outcome { busy: second, ..Outcome::default() });
                    }
                    first.and(write_group(conn, second, clock).await)
                }
            },
        }
    })
}

async fn transaction(
    conn: &mut PgConnection,
    asks: &[Ask],
    clock: &StoreClock,
) -> Result<Vec<Verdict>, StoreError> {
    let commits: Vec<&Commit> = asks.iter().map(|ask| &*ask.commit).collect();
    let now = begin(conn).await.map_err(Fault::from)?;
    match commit_group(conn, &commits, Locks::IfFree, clock.at(now)).await {
        Ok(verdicts) => {
            commit(conn).await.map_err(commit_error)?;
            Ok(verdicts)
        }
        Err(Fault(error)) => {
            // If that fails too, nothing was committed either, and the next statement finds it out.
            drop(rollback(conn).await);
            Err(error)
        }
    }
}

fn settle_plain(asks: Vec<Ask>, said: Vec<Said>) -> Outcome {
    let mut outcome = Outcome::default();
    for (ask, said) in asks.into_iter().zip(said) {
        match said {
            Said::Written(kept) => ask.written(kept),
            Said::Refused(error) => ask.answer(Err(error)),
            Said::Busy => outcome.busy.push(ask),
            Said::NotPlain => outcome.not_plain.push(ask),
        }
    }
    outcome
}

fn settle(verdicts: impl Iterator<Item = (Ask, Verdict)>) -> Outcome {
    let mut outcome = Outcome::default();
    for (ask, verdict) in verdicts {
        match verdict {
            Verdict::Written(committed) => ask.answer(Ok(*committed)),
            Verdict::Refused(error) => ask.answer(Err(error)),
            Verdict::Busy => outcome.busy.push(ask),
        }
    }
    outcome
}

/// What is done about a batch that failed as a whole.
enum Halved {
    Over(Outcome),
    Again(Vec<Ask>, Vec<Ask>),
}

/// Nothing of the batch was written, unless nobody knows.
fn halve(mut asks: Vec<Ask>, error: StoreError) -> Halved {
    if let StoreError::UnknownOutcome(source) = error {
        let shared = Shared(Arc::from(source));
        for ask in asks {
            ask.answer(Err(StoreError::UnknownOutcome(Box::new(shared.clone()))));
        }
        return Halved::Over(Outcome { is_broken: true, ..Outcome::default() });
    }
    // The connection was lost before the end was asked for, or the server is in no state to write.
    if matches!(error, StoreError::Unavailable(_)) {
        return Halved::Over(Outcome { busy: asks, is_broken: true, ..Outcome::default() });
    }
    if asks.len() > 1 {
        let second = asks.split_off(asks.len() / 2);
        return Halved::Again(asks, second);
    }
    // Alone, it is begun again until the database prefers it.
    if matches!(error, StoreError::TransactionConflict(_)) {
        return Halved::Over(Outcome { busy: asks, ..Outcome::default() });
    }
    if let Some(ask) = asks.pop() {
        ask.answer(Err(error));
    }
    Halved::Over(Outcome::default())
}
