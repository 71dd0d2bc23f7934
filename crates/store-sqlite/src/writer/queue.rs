//! The writer's queue: lanes, and what goes together into one transaction.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use super::job::{Fate, Group, Grouped, Job, Lane, Step, Waiting};
use super::{Request, job::Cx};
use crate::sql::ROWS_MAX;

use sqlx::SqliteConnection;
use surefoot_kernel_core::{Commit, Emit, RunId};

/// At most so many entries in one transaction.
const ENTRIES_MAX: usize = 500;
/// At most so many bytes in one transaction.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// What waits, in the order in which it is served.
#[derive(Default)]
pub(crate) struct Queue {
    lanes: [VecDeque<Box<dyn Job>>; Lane::COUNT],
    commits: VecDeque<Waiting<Commit>>,
    emits: VecDeque<Waiting<Emit>>,
}

/// What is written at once.
pub(crate) enum Entry {
    One(Box<dyn Job>),
    Commits(Group<Commit>),
    Emits(Group<Emit>),
}

impl Entry {
    pub(crate) async fn run(&mut self, conn: &mut SqliteConnection, cx: Cx) -> Step {
        match self {
            Self::One(job) => job.run(conn, cx).await,
            Self::Commits(group) => group.run(conn, cx).await,
            Self::Emits(group) => group.run(conn, cx).await,
        }
    }

    pub(crate) fn settle(self, fate: Fate) {
        match self {
            Self::One(job) => job.settle(fate),
            Self::Commits(group) => group.settle(fate),
            Self::Emits(group) => group.settle(fate),
        }
    }

    /// As entries that can fail alone.
    pub(crate) fn split(self) -> Vec<Self> {
        match self {
            Self::One(_) => vec![self],
            Self::Commits(group) => group.split().map(Self::Commits).collect(),
            Self::Emits(group) => group.split().map(Self::Emits).collect(),
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
            Request::Emit(ask) => self.emits.push_back(*ask),
            Request::Job(lane, job) => {
                if let Some(queue) = self.lanes.get_mut(lane as usize) {
                    queue.push_back(job);
                }
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.commits.is_empty()
            && self.emits.is_empty()
            && self.lanes.iter().all(VecDeque::is_empty)
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
            return Some(Entry::Commits(Group(group)));
        }
        if self.are_emits_next() {
            return Some(Entry::Emits(Group(self.next_emits(taken))));
        }
        self.pop(Lane::Rest, taken).map(Entry::One)
    }

    /// Events are written together; they and the rest go in the order in which they came.
    fn are_emits_next(&self) -> bool {
        let rest = self.lanes.get(Lane::Rest as usize).and_then(VecDeque::front);
        let emit = self.emits.front();
        emit.is_some_and(|emit| rest.is_none_or(|rest| emit.since <= rest.since()))
    }

    fn next_emits(&mut self, taken: &mut Taken) -> Vec<Waiting<Emit>> {
        let mut group = Vec::new();
        while group.len() < ROWS_MAX && !taken.is_full() {
            let Some(ask) = self.emits.pop_front() else { break };
            taken.add(ask.what.bytes());
            group.push(ask);
        }
        group
    }

    fn pop(&mut self, lane: Lane, taken: &mut Taken) -> Option<Box<dyn Job>> {
        let job = self.lanes.get_mut(lane as usize)?.pop_front()?;
        taken.add(job.bytes());
        Some(job)
    }

    /// Commits of different runs; a second one of a run waits for the next transaction.
    fn next_commits(&mut self, taken: &mut Taken) -> Vec<Waiting<Commit>> {
        let mut group = Vec::new();
        let mut later = VecDeque::new();
        while group.len() < ROWS_MAX && !taken.is_full() {
            let Some(ask) = self.commits.pop_front() else { break };
            if taken.runs.insert(ask.what.before.run) {
                taken.add(ask.what.bytes());
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
        expire(&mut self.commits, is_late);
        expire(&mut self.emits, is_late);
    }
}

fn expire<G: Grouped>(waiting: &mut VecDeque<Waiting<G>>, is_late: impl Fn(Instant) -> bool) {
    while waiting.front().is_some_and(|ask| is_late(ask.since)) {
        if let Some(ask) = waiting.pop_front() {
            Group(vec![ask]).settle(Fate::RolledBack);
        }
    }
}
