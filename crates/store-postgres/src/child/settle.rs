//! What writes of runs mean to their families: part of the same transaction.
//!
//! The group of a child that ends is locked before anything is written. Behind a group, its parent's row and held
//! siblings are taken only if they are free: whoever has one may be waiting for the group. A parent that is not free is
//! about to park, and then sees that nobody is live, or is woken by recovery; so are siblings let go.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use sqlx::PgConnection;

use surefoot_kernel_core::{
    App, CHILD_DEPTH_MAX, ChildMove, Commit, Parent, Phase, Revival, RowInput, Run, RunId, StepKey,
    StoreError, Timestamp, Wake, decide_row, takes_results,
};

use super::{Locked, group, lock_group, write_group};
use crate::error::Fault;
use crate::keys::{Key, sorted_keys};
use crate::run::lock::Locks;
use crate::run::read::{lock_run, readable, run_by_id};
use crate::run::write::{Write, write_rows};
use crate::sql;

/// The groups that a transaction has locked.
pub(crate) struct GroupLocks {
    locks: Locks,
    held: HashSet<(RunId, StepKey)>,
}

impl GroupLocks {
    pub(crate) fn new(locks: Locks) -> Self {
        Self { locks, held: HashSet::new() }
    }

    /// Locks the group of a child that ends or is tried again. Answers whether it was got.
    pub(crate) async fn of_child(
        &mut self,
        conn: &mut PgConnection,
        write: &Write<'_>,
    ) -> Result<bool, Fault> {
        match ChildMove::of(write.head.state, write.head.held, &write.after) {
            Some((parent, _)) => self.lock(conn, parent.run, &parent.step).await,
            None => Ok(true),
        }
    }

    /// A step without children has no group, and needs no lock.
    pub(crate) async fn lock(
        &mut self,
        conn: &mut PgConnection,
        parent: RunId,
        step: &StepKey,
    ) -> Result<bool, Fault> {
        let key = (parent, step.clone());
        if self.held.contains(&key) {
            return Ok(true);
        }
        match lock_group(conn, parent, step, self.locks).await? {
            Locked::Busy => Ok(false),
            Locked::Is(_) => {
                self.held.insert(key);
                Ok(true)
            }
            Locked::No => Ok(true),
        }
    }
}

/// Everything that writes mean to groups, held siblings, waiting parents, and own children.
pub(crate) async fn settle(
    conn: &mut PgConnection,
    writes: &[&Write<'_>],
    now: Timestamp,
) -> Result<(), Fault> {
    let mut moved: BTreeMap<(RunId, StepKey), (&Run, Vec<ChildMove>)> = BTreeMap::new();
    for write in writes {
        let (head, after) = (&write.head, &*write.after);
        own_children(conn, write).await?;
        if let Some((parent, child)) = ChildMove::of(head.state, head.held, after) {
            let key = (parent.run, parent.step.clone());
            moved.entry(key).or_insert_with(|| (after, Vec::new())).1.push(child);
        }
    }
    own_cancels(conn, writes).await?;
    for ((parent, step), (child, moves)) in moved {
        group_moved(conn, (parent, &step), &child.origin.app, &moves, now).await?;
    }
    Ok(())
}

/// What a write of a parent means to its children.
async fn own_children(conn: &mut PgConnection, write: &Write<'_>) -> Result<(), Fault> {
    let (head, after) = (&write.head, &*write.after);
    let resumed = head.resume_step.as_ref().filter(|_| head.by_children);
    if let Some(step) = takes_results(resumed, after) {
        let query = sqlx::query(sql::CHILD_TAKE).bind(after.id.key()).bind(step.as_str());
        query.execute(&mut *conn).await?;
    }
    if let Some(step) = awaited(after) {
        let query = sqlx::query(sql::CHILD_AWAIT).bind(after.id.key()).bind(step.as_str());
        query.bind(true).execute(&mut *conn).await?;
    }
    Ok(())
}

/// Cancel of these runs is requested: it is carried on to their children. Many at once, since a cancel that goes down a
/// tree comes in batches.
async fn own_cancels(conn: &mut PgConnection, writes: &[&Write<'_>]) -> Result<(), Fault> {
    let canceled = writes.iter().filter(|write| write.asks_to_cancel());
    begin_cancels(conn, canceled.map(|write| write.after.id)).await
}

/// A cancel is on its way to the children of these parents.
pub(crate) async fn begin_cancels(
    conn: &mut PgConnection,
    parents: impl IntoIterator<Item = RunId>,
) -> Result<(), Fault> {
    let parents = sorted_keys(parents);
    if !parents.is_empty() {
        sqlx::query(sql::CHILD_CANCEL).bind(parents).execute(conn).await?;
    }
    Ok(())
}

/// The step for whose children a run waits.
pub(crate) fn awaited(run: &Run) -> Option<StepKey> {
    match &run.phase {
        Phase::Waiting(wait) => wait.on.as_ref()?.children_of(),
        Phase::Queued { .. }
        | Phase::Running { .. }
        | Phase::NeedsAttention(_)
        | Phase::Succeeded { .. }
        | Phase::Failed { .. }
        | Phase::Canceled { .. } => None,
    }
}

async fn group_moved(
    conn: &mut PgConnection,
    (parent, step): (RunId, &StepKey),
    app: &App,
    moves: &[ChildMove],
    now: Timestamp,
) -> Result<(), Fault> {
    let locked = lock_group(conn, parent, step, Locks::Wait).await?;
    let Locked::Is(mut group) = locked else { return Ok(()) };
    moves.iter().for_each(|child| group.moved(*child));
    let released = group.release();
    if released > 0 {
        let let_go = let_go(conn, (parent, step), released, now).await?;
        group.held = group.held.saturating_add(released.saturating_sub(let_go));
    }
    write_group(conn, app, (parent, step), &group).await?;
    if group.is_over() {
        wake_parent(conn, (parent, step), now).await?;
    }
    Ok(())
}

/// Lets children go that could not be when a sibling ended, since somebody had locked them.
pub(crate) async fn make_room(
    conn: &mut PgConnection,
    (parent, step): (RunId, &StepKey),
    app: &App,
    now: Timestamp,
) -> Result<(), Fault> {
    match lock_group(conn, parent, step, Locks::IfFree).await? {
        Locked::Is(_) => group_moved(conn, (parent, step), app, &[], now).await,
        Locked::No | Locked::Busy => Ok(()),
    }
}

/// Answers how many it was.
async fn let_go(
    conn: &mut PgConnection,
    (parent, step): (RunId, &StepKey),
    count: u32,
    now: Timestamp,
) -> Result<u32, Fault> {
    let rows = sqlx::query(sql::CHILD_HELD)
        .bind(parent.key())
        .bind(step.as_str())
        .bind(i64::from(count))
        .fetch_all(&mut *conn)
        .await?;
    let mut decided = Vec::with_capacity(rows.len());
    for (head, run) in readable(&rows) {
        if let Ok(facts) = decide_row(&run, RowInput::LetGo, now) {
            decided.push((head, Commit::new(&run, &facts)));
        }
    }
    let writes: Vec<Write<'_>> =
        decided.iter().map(|(head, commit)| Write::decided(head.clone(), commit)).collect();
    write_rows(conn, &writes, now).await?;
    Ok(u32::try_from(writes.len()).unwrap_or(u32::MAX))
}

/// The last child has ended: a parent that waits for it goes on. What it is is judged by what the lock returned: whoever
/// reads its state first, and then waits, may lose the wake.
async fn wake_parent(
    conn: &mut PgConnection,
    (parent, step): (RunId, &StepKey),
    now: Timestamp,
) -> Result<(), Fault> {
    let locked = lock_run(conn, parent, Locks::IfFree).await?;
    let Some((head, run)) = locked else { return Ok(()) };
    if awaited(&run).as_ref() != Some(step) {
        return Ok(());
    }
    let input = RowInput::Wake { wake: Wake::Children, at_once: false };
    let Ok(facts) = decide_row(&run, input, now) else { return Ok(()) };
    let commit = Commit::new(&run, &facts);
    write_rows(conn, &[Write::decided(head, &commit)], now).await?;
    let query = sqlx::query(sql::CHILD_AWAIT).bind(parent.key()).bind(step.as_str());
    query.bind(false).execute(conn).await?;
    Ok(())
}

/// A child is not tried again where one above it has moved on. Asked before anything is written, with the child's group
/// locked.
pub(crate) async fn check_revival(conn: &mut PgConnection, write: &Write<'_>) -> Result<(), Fault> {
    let moved = ChildMove::of(write.head.state, write.head.held, &write.after);
    let Some((of, ChildMove::Revived { .. })) = moved else { return Ok(()) };
    match moved_on(conn, of).await? {
        Some(parent) => Err(Fault(StoreError::ParentMovedOn { parent })),
        None => Ok(()),
    }
}

/// Holds a child that is tried again back where its group is full. The end of a sibling lets it go.
pub(crate) async fn revive(conn: &mut PgConnection, write: &mut Write<'_>) -> Result<(), Fault> {
    let moved = ChildMove::of(write.head.state, write.head.held, &write.after);
    let Some((of, ChildMove::Revived { .. })) = moved else { return Ok(()) };
    if group(conn, of.run, &of.step).await?.is_some_and(|group| group.is_full()) {
        write.after = Cow::Owned(write.after.clone().into_owned().held());
    }
    Ok(())
}

/// The nearest one above a child that keeps it from being tried again.
pub(crate) async fn moved_on(
    conn: &mut PgConnection,
    parent: &Parent,
) -> Result<Option<RunId>, Fault> {
    let mut revival = Revival::default();
    let mut above = Some(parent.clone());
    for _ in 0..CHILD_DEPTH_MAX {
        let Some(Parent { run: id, step, .. }) = above else { break };
        let Some((_, run)) = run_by_id(conn, id).await? else { break };
        let group = group(conn, id, &step).await?;
        if !revival.passes(&run, &step, group.as_ref()) {
            return Ok(Some(id));
        }
        above = run.origin.parent.clone();
    }
    Ok(None)
}
