//! The writer's queue: lanes, and what goes together into one transaction.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use super::job::{AskCommit, CommitGroup, Fate, Job, Lane, Step};
use super::{Request, job::Cx};
use crate::sql::SIZES;

use sqlx::SqliteConnection;
use surefoot_kernel_core::RunId;

/// At most so many entries in one transaction.
const ENTRIES_MAX: usize = 500;
/// At most so many bytes in one transaction.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// What waits, in the order in which it is served.
#[derive(Default)]
pub(crate) struct Queue {
    lanes: [VecDeque<Box<dyn Job>>; Lane::COUNT],
    commits: VecDeque<AskCommit>,
}

/// What is written at once.
pub(crate) enum Entry {
    One(Box<dyn Job>),
    Commits(CommitGroup),
}

impl Entry {
    pub(crate) async fn run(&mut self, conn: &mut SqliteConnection, cx: Cx) -> Step {
        match self {
            Self::One(job) => job.run(conn, cx).await,
            Self::Commits(group) => group.run(conn, cx).await,
        }
    }

    pub(crate) fn settle(self, fate: Fate) {
        match self {
            Self::One(job) => job.settle(fate),
            Self::Commits(group) => group.settle(fate),
        }
    }

    /// As entries that can fail alone.
    pub(crate) fn split(self) -> Vec<Self> {
        match self {
            Self::One(_) => vec![self],
            Self::Commits(group) => group.split().into_iter().map(Self::Commits).collect(),
        }
    }
}

/// What one transaction has taken so far.
#[derive(Default)]
pub(crate) struct Taken {
    entries: usize,
    bytes: usize,
    runs: HashSet<RunId>,
}

impl Taken {
    fn is_full(&self) -> bool {
        self.entries >= ENTRIES_MAX || self.bytes >= BYTES_MAX
    }

    fn add(&mut self, bytes: usize) {
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

impl Queue {
    pub(crate) fn push(&mut self, request: Request) {
        match request {
            Request::Commit(ask) => self.commits.push_back(*ask),
            Request::Job(lane, job) => {
                if let Some(queue) = self.lanes.get_mut(lane as usize) {
                    queue.push_back(job);
                }
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.commits.is_empty() && self.lanes.iter().all(VecDeque::is_empty)
    }

    /// The next entry of a transaction, if it has room for one.
    pub(crate) fn next(&mut self, taken: &mut Taken) -> Option<Entry> {
        if taken.is_full() {
            return None;
        }
        for lane in [Lane::Renew, Lane::TakeOver, Lane::Claim] {
            if let Some(job) = self.pop(lane, taken) {
                return Some(Entry::One(job));
            }
        }
        let group = self.next_commits(taken);
        if !group.is_empty() {
            return Some(Entry::Commits(CommitGroup(group)));
        }
        self.pop(Lane::Rest, taken).map(Entry::One)
    }

    fn pop(&mut self, lane: Lane, taken: &mut Taken) -> Option<Box<dyn Job>> {
        let job = self.lanes.get_mut(lane as usize)?.pop_front()?;
        taken.add(job.bytes());
        Some(job)
    }

    /// Commits of different runs; a second one of a run waits for the next transaction.
    fn next_commits(&mut self, taken: &mut Taken) -> Vec<AskCommit> {
        let mut group = Vec::new();
        let mut later = VecDeque::new();
        while group.len() < SIZES[0] && !taken.is_full() {
            let Some(ask) = self.commits.pop_front() else { break };
            if taken.runs.insert(ask.run_id()) {
                taken.add(ask.bytes());
                group.push(ask);
            } else {
                later.push_back(ask);
            }
        }
        later.append(&mut self.commits);
        self.commits = later;
        group
    }

    /// Sends away whoever has waited for too long.
    pub(crate) fn expire(&mut self, wait: Duration) {
        let now = Instant::now();
        let is_late = |since: Instant| now.saturating_duration_since(since) >= wait;
        for lane in &mut self.lanes {
            while lane.front().is_some_and(|job| is_late(job.since())) {
                if let Some(job) = lane.pop_front() {
                    job.settle(Fate::RolledBack);
                }
            }
        }
        while self.commits.front().is_some_and(|ask| is_late(ask.since)) {
            if let Some(ask) = self.commits.pop_front() {
                CommitGroup(vec![ask]).settle(Fate::RolledBack);
            }
        }
    }
}
