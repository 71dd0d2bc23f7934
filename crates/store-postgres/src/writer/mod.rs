//! The writer: everything that the kernel itself writes, on connections that are never given up in the middle.
//!
//! Commits of runs are gathered: whatever waits when a committer is free goes into one statement. Every other
//! operation is a transaction of its own. Whoever asks may go away: what was begun is brought to its end.

pub(crate) mod begin;
mod committer;
mod job;
mod queue;
mod turns;

use std::sync::Arc;

use tokio::sync::oneshot;

use surefoot_kernel_core::{Commit, Committed, RenewRequest, Renewed, RunId, StoreError};

use self::committer::{Committer, Stats, commit_alone};
use self::job::run_to_end;
use self::queue::{Ask, Queue};
use crate::clock::StoreClock;
use crate::error::Said;
use crate::options::PostgresOptions;
use crate::pool::{Connect, Pool, Use};
use crate::run::fast::Way;
use crate::run::renew::renew;

pub(crate) use self::job::{Cx, Lane, Op};
pub(crate) use self::turns::{Turn, Turns};

/// Connections for commits that wait for a row, and for takeovers, which have to wait too.
const SIDE_SEATS: usize = 4;
const TAKE_OVER_SEATS: usize = 4;
const CLAIM_SEATS: usize = 2;

/// The way to the writer.
#[derive(Debug, Clone)]
pub(crate) struct Writer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: StoreClock,
    commits: Arc<Queue>,
    stats: Arc<Stats>,
    turns: Turns,
    side: Arc<Pool>,
    take_over: Arc<Pool>,
    claim: Arc<Pool>,
    rest: Arc<Pool>,
    renewals: Arc<Pool>,
}

/// The committers end with the last handle.
impl Drop for Inner {
    fn drop(&mut self) {
        self.commits.close();
    }
}

impl Writer {
    /// Starts the committers.
    pub(crate) fn start(options: &PostgresOptions) -> Self {
        let inner = Inner {
            clock: options.clock.clone(),
            commits: Arc::default(),
            stats: Arc::default(),
            turns: Turns::new(options.committers),
            side: Pool::new(options, Use::Kernel, SIDE_SEATS),
            take_over: Pool::new(options, Use::Kernel, TAKE_OVER_SEATS),
            claim: Pool::new(options, Use::Kernel, CLAIM_SEATS),
            rest: Pool::new(options, Use::Kernel, options.writers),
            renewals: Pool::new(options, Use::Renewals, 1),
        };
        for _ in 0..options.committers {
            let committer = Committer {
                queue: inner.commits.clone(),
                connect: Connect::new(options, Use::Commits),
                clock: inner.clock.clone(),
                stats: inner.stats.clone(),
                turns: inner.turns.clone(),
                side: inner.side.clone(),
                conn: None,
            };
            tokio::spawn(committer.run());
        }
        Self(Arc::new(inner))
    }

    /// Has an operation run in a transaction of its own.
    pub(crate) async fn ask<O: Op>(&self, op: O) -> Result<O::Out, O::Err> {
        let (pool, clock) = (self.0.lane(O::LANE).clone(), self.0.clock.clone());
        let done = tokio::spawn(async move { run_to_end(&op, &clock, &pool).await });
        done.await.unwrap_or_else(|_| Err(gone().into()))
    }

    /// Has a commit written, together with others if it can be.
    pub(crate) async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        let (reply, answer) = oneshot::channel();
        let ask = Ask::new(commit, reply);
        match ask.way {
            Way::Step | Way::Move | Way::Group => self.0.commits.push(ask),
            Way::Alone => commit_alone(&self.0.side, &self.0.clock, ask),
        }
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    pub(crate) async fn renew(
        &self,
        request: RenewRequest,
    ) -> Result<Vec<(RunId, Renewed)>, StoreError> {
        renew(&self.0.renewals, &self.0.clock, &request).await
    }

    pub(crate) fn turns(&self) -> &Turns {
        &self.0.turns
    }

    pub(crate) fn stats(&self) -> &Stats {
        &self.0.stats
    }
}

impl Inner {
    fn lane(&self, lane: Lane) -> &Arc<Pool> {
        match lane {
            Lane::TakeOver => &self.take_over,
            Lane::Alone => &self.side,
            Lane::Claim => &self.claim,
            Lane::Rest => &self.rest,
        }
    }
}

/// The task that wrote ended, with its runtime, before it had an answer.
fn gone() -> StoreError {
    StoreError::UnknownOutcome(Box::new(Said("the store's writer ended during the write")))
}
