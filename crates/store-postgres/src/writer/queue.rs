//! Commits of runs that wait, and what goes together into one batch.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};

use surefoot_kernel_core::{Commit, Committed, RunId, StoreError};

use super::turns::{Turn, Turns};
use crate::run::fast::{Kept, Way};

/// At most so many entries in one batch.
const ENTRIES_MAX: usize = 500;
/// At most so many bytes in one batch.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// A commit and who asked for it.
pub(crate) struct Ask {
    /// Apart, since what waits is moved about and sorted.
    pub(crate) commit: Box<Commit>,
    pub(crate) way: Way,
    /// Since when somebody else has had a lock that it needs.
    bounced: Option<Instant>,
    reply: oneshot::Sender<Result<Committed, StoreError>>,
}

impl Ask {
    pub(crate) fn new(
        commit: Commit,
        reply: oneshot::Sender<Result<Committed, StoreError>>,
    ) -> Self {
        Self { way: Way::of(&commit), commit: Box::new(commit), bounced: None, reply }
    }

    pub(crate) fn run_id(&self) -> RunId {
        self.commit.before.run
    }

    /// Somebody has a lock that it needs. Answers for how long that has been so.
    pub(crate) fn bounce(&mut self) -> Duration {
        self.bounced.get_or_insert_with(Instant::now).elapsed()
    }

    fn bytes(&self) -> usize {
        let journal = self.commit.journal.as_ref().map_or(0, |journal| journal.facts.len());
        journal.saturating_add(512)
    }

    /// Whoever asked may be gone: then nobody needs the answer.
    pub(crate) fn answer(self, answer: Result<Committed, StoreError>) {
        drop(self.reply.send(answer));
    }

    /// It was written as it was decided.
    pub(crate) fn written(self, kept: Kept) {
        drop(self.reply.send(Ok(kept.committed(self.commit.after))));
    }

    pub(crate) fn into_parts(
        self,
    ) -> (Box<Commit>, oneshot::Sender<Result<Committed, StoreError>>) {
        (self.commit, self.reply)
    }
}

/// What waits for the committers.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Ask>,
    /// Runs of batches that are being written: a second commit of one waits for the next batch.
    flying: HashSet<RunId>,
    closed: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state();
        f.debug_struct("Queue")
            .field("waiting", &state.waiting.len())
            .field("flying", &state.flying.len())
            .finish_non_exhaustive()
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, ask: Ask) {
        self.state().waiting.push_back(ask);
        self.arrived.notify_one();
    }

    /// The committers end once everything is answered.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.arrived.notify_waiters();
        self.arrived.notify_one();
    }

    /// What waits, in order of the runs' ids: as soon as something does, and there is a turn. `None` once the queue is
    /// closed and empty.
    pub(crate) async fn next_batch(&self, turns: &Turns) -> Option<(Vec<Ask>, Option<Turn>)> {
        loop {
            self.wait_for_work().await?;
            let turn = turns.next().await;
            let mut state = self.state();
            let batch = state.take();
            if !batch.is_empty() {
                if state.has_more() {
                    self.arrived.notify_one();
                }
                return Some((batch, turn));
            }
        }
    }

    /// `None` once the queue is closed and empty.
    async fn wait_for_work(&self) -> Option<()> {
        loop {
            {
                let state = self.state();
                if state.has_more() {
                    return Some(());
                }
                if state.closed && state.waiting.is_empty() {
                    // Another committer may wait for the same news.
                    self.arrived.notify_one();
                    return None;
                }
            }
            self.arrived.notified().await;
        }
    }

    /// The batch that had these runs is written.
    pub(crate) fn landed(&self, runs: &[RunId]) {
        let mut state = self.state();
        for run in runs {
            state.flying.remove(run);
        }
        if state.has_more() {
            self.arrived.notify_one();
        }
    }

    /// Those that somebody else had locked, before those that came later.
    pub(crate) fn put_back(&self, again: Vec<Ask>) {
        let mut state = self.state();
        for ask in again.into_iter().rev() {
            state.waiting.push_front(ask);
        }
        self.arrived.notify_one();
    }
}

impl State {
    fn take(&mut self) -> Vec<Ask> {
        let mut batch: Vec<Ask> = Vec::new();
        let mut later = VecDeque::new();
        let mut bytes = 0_usize;
        while batch.len() < ENTRIES_MAX && bytes < BYTES_MAX {
            let Some(ask) = self.waiting.pop_front() else { break };
            if self.flying.insert(ask.run_id()) {
                bytes = bytes.saturating_add(ask.bytes());
                batch.push(ask);
            } else {
                later.push_back(ask);
            }
        }
        later.append(&mut self.waiting);
        self.waiting = later;
        batch.sort_unstable_by_key(Ask::run_id);
        batch
    }

    fn has_more(&self) -> bool {
        self.waiting.iter().any(|ask| !self.flying.contains(&ask.run_id()))
    }
}
