//! Commits of runs in a transaction: checked by their stamps, written together, with all that they mean to budgets,
//! signals and families. (What means nothing to those is written by `fast`.)

use std::borrow::Cow;
use std::collections::HashMap;

use sqlx::PgConnection;

use surefoot_kernel_core::{
    Commit, Committed, Phase, Receipt, RowInput, Run, RunId, StoreError, Timestamp, apply,
    decide_row,
};

use super::lock::{Locks, SignalKey, lock_signal};
use super::read::lock_heads;
use super::row::Head;
use super::wake::occurred;
use super::write::{Write, write_all};
use crate::budget::Charges;
use crate::child::cancel;
use crate::child::settle::{GroupLocks, awaited, check_revival, revive};
use crate::error::Fault;
use crate::retention::is_doomed;
use crate::writer::{Cx, Lane, Op};

/// What became of one commit of a batch.
#[derive(Debug)]
pub(crate) enum Verdict {
    Written(Box<Committed>),
    /// Nothing of it was written.
    Refused(StoreError),
    /// Somebody has a lock that it needs. Nothing of it was written.
    Busy,
}

/// Commits of different runs, each with an answer of its own: an error costs all of them, a verdict only one. A commit
/// of an operator comes alone, and waits for its locks.
pub(crate) async fn commit_group(
    conn: &mut PgConnection,
    commits: &[&Commit],
    locks: Locks,
    now: Timestamp,
) -> Result<Vec<Verdict>, Fault> {
    let ids: Vec<RunId> = commits.iter().map(|commit| commit.before.run).collect();
    let mut heads = lock_heads(conn, &ids, locks).await?;
    let mut ready = Ready { locks, groups: GroupLocks::new(locks), now };
    let mut verdicts: Vec<Option<Verdict>> = Vec::with_capacity(commits.len());
    let mut writes: Vec<(usize, Write<'_>)> = Vec::with_capacity(commits.len());
    for (index, commit) in commits.iter().enumerate() {
        let verdict = match head_of(&mut heads, commit, locks) {
            Ok(head) => match ready.one(conn, head, commit).await {
                Ok(Some(write)) => {
                    writes.push((index, write));
                    None
                }
                Ok(None) => Some(Verdict::Busy),
                Err(fault) => Some(Verdict::Refused(verdict_in(fault)?)),
            },
            Err(verdict) => Some(verdict),
        };
        verdicts.push(verdict);
    }
    charge(conn, commits, &mut writes, &mut verdicts).await?;
    let (indexes, writes): (Vec<usize>, Vec<Write<'_>>) = writes.into_iter().unzip();
    write_all(conn, &writes, now).await?;
    for write in writes.iter().filter(|write| write.asks_to_cancel()) {
        let (app, run) = (&write.after.origin.app, write.after.id);
        cancel::carry_on(conn, app, Some(run), cancel::AT_ONCE, now).await?;
    }
    for (index, write) in indexes.into_iter().zip(writes) {
        if let Some(verdict) = verdicts.get_mut(index) {
            *verdict = Some(Verdict::Written(Box::new(written(write.after.into_owned(), now))));
        }
    }
    Ok(verdicts.into_iter().map(|verdict| verdict.unwrap_or(Verdict::Busy)).collect())
}

/// The row's head, if the commit was decided on it.
fn head_of(
    heads: &mut HashMap<RunId, Result<Head, Fault>>,
    commit: &Commit,
    locks: Locks,
) -> Result<Head, Verdict> {
    let head = match (heads.remove(&commit.before.run), locks) {
        (Some(head), _) => head.map_err(|Fault(error)| Verdict::Refused(error))?,
        // A run that was deleted has no holder any more.
        (None, Locks::Wait) => return Err(Verdict::Refused(StoreError::LeaseLost)),
        (None, Locks::IfFree) => return Err(Verdict::Busy),
    };
    match commit.before.check_counters(head.generation, head.revision) {
        Ok(()) => Ok(head),
        Err(fenced) => Err(Verdict::Refused(fenced.into())),
    }
}

/// An error that is a verdict on one commit, found before anything was written; every other costs all.
fn verdict_in(Fault(error): Fault) -> Result<StoreError, Fault> {
    let is_verdict = matches!(
        error,
        StoreError::ParentMovedOn { .. }
            | StoreError::BeingDeleted
            | StoreError::Corrupt { .. }
            | StoreError::Refused(_)
    );
    if is_verdict { Ok(error) } else { Err(Fault(error)) }
}

/// Makes commits ready to be written: with every lock that they need but those of budgets.
struct Ready {
    locks: Locks,
    groups: GroupLocks,
    now: Timestamp,
}

impl Ready {
    /// `None` if a lock is not free.
    async fn one<'c>(
        &mut self,
        conn: &mut PgConnection,
        head: Head,
        commit: &'c Commit,
    ) -> Result<Option<Write<'c>>, Fault> {
        // Only a retry leaves an end; it must not bring back a tree that is half gone.
        if head.state.is_terminal() && is_doomed(conn, head.id).await? {
            return Err(StoreError::BeingDeleted.into());
        }
        let mut write = Write::of(head, commit);
        if !self.groups.of_child(conn, &write).await? {
            return Ok(None);
        }
        check_revival(conn, &write).await?;
        revive(conn, &mut write).await?;
        let may_wake = self.lock_wait(conn, &write.after).await?;
        if may_wake {
            wake_at_once(conn, &mut write, self.now).await?;
        }
        Ok(may_wake.then_some(write))
    }

    /// Locks what a run is about to wait for, so that it either sees it or is seen waiting.
    async fn lock_wait(&mut self, conn: &mut PgConnection, run: &Run) -> Result<bool, Fault> {
        if let Some(step) = awaited(run) {
            return self.groups.lock(conn, run.id, &step).await;
        }
        let Phase::Waiting(wait) = &run.phase else { return Ok(true) };
        let Some(on) = wait.on.as_ref().filter(|on| on.is_signal()) else { return Ok(true) };
        lock_signal(conn, SignalKey::of(run, on), self.locks).await
    }
}

/// A run that parks on what has occurred already is awake again before anybody can see it wait.
async fn wake_at_once(
    conn: &mut PgConnection,
    write: &mut Write<'_>,
    now: Timestamp,
) -> Result<(), Fault> {
    let Some((signal, wake)) = occurred(conn, &write.after).await? else { return Ok(()) };
    let input = RowInput::Wake { wake, at_once: true };
    if let Ok(facts) = decide_row(&write.after, input, now) {
        let woken: Run = facts.iter().fold(write.after.clone().into_owned(), apply);
        write.after = Cow::Owned(woken);
        write.woken_by = signal;
    }
    Ok(())
}

/// Makes the charges of what is ready: the last locks of the transaction.
async fn charge<'c>(
    conn: &mut PgConnection,
    commits: &[&'c Commit],
    writes: &mut Vec<(usize, Write<'c>)>,
    verdicts: &mut [Option<Verdict>],
) -> Result<(), Fault> {
    let of = |index: usize| commits.get(index).copied();
    let mut charges = Charges::lock(conn, writes.iter().filter_map(|(it, _)| of(*it))).await?;
    writes.retain(|(index, _)| {
        let refused = of(*index).and_then(|commit| charges.take(commit).err());
        let is_refused = refused.is_some();
        if let (Some(error), Some(verdict)) = (refused, verdicts.get_mut(*index)) {
            *verdict = Some(Verdict::Refused(error));
        }
        !is_refused
    });
    charges.write(conn).await
}

pub(crate) fn written(run: Run, now: Timestamp) -> Committed {
    Committed { receipt: Receipt::attest(&run), run, now }
}

/// One commit alone, that waits for its locks, on a transaction of somebody's.
pub(crate) async fn commit_one(
    conn: &mut PgConnection,
    commit: &Commit,
    now: Timestamp,
) -> Result<Committed, StoreError> {
    match commit_group(conn, &[commit], Locks::Wait, now).await?.pop() {
        Some(Verdict::Written(committed)) => Ok(*committed),
        Some(Verdict::Refused(error)) => Err(error),
        Some(Verdict::Busy) | None => Err(StoreError::Conflict),
    }
}

/// One commit in a transaction of its own.
pub(crate) struct CommitAlone(pub(crate) Box<Commit>);

impl Op for CommitAlone {
    type Out = Committed;
    type Err = StoreError;
    const LANE: Lane = Lane::Alone;

    async fn run<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        cx: Cx,
    ) -> Result<Committed, StoreError> {
        commit_one(conn, &self.0, cx.now).await
    }
}
