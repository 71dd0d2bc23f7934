//! What writes of runs mean to their families: part of the same transaction.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::{
    CHILD_DEPTH_MAX, ChildGroup, ChildMove, Commit, Parent, Phase, Revival, RowInput, Run, RunId,
    RunState, StepKey, StoreError, Timestamp, Wake, decide_row, takes_results,
};

use super::{group, write_group};
use crate::error::Fault;
use crate::run::read::{run_by_id, runs_by_no};
use crate::run::write::{Write, write_rows};
use crate::sql::{self, pieces};

/// Everything that writes mean to groups, held siblings, waiting parents, and own children.
pub(crate) async fn settle(
    conn: &mut SqliteConnection,
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
        group_moved(conn, (parent, &step), child, &moves, now).await?;
    }
    Ok(())
}

/// What a write of a parent means to its children.
async fn own_children(conn: &mut SqliteConnection, write: &Write<'_>) -> Result<(), Fault> {
    let (head, after) = (&write.head, &*write.after);
    let id = || after.id.to_bytes().to_vec();
    let resumed = head.resume_step.as_ref().filter(|_| head.by_children);
    if let Some(step) = takes_results(resumed, after) {
        sqlx::query(sql::CHILD_TAKE).bind(id()).bind(step.as_str()).execute(&mut *conn).await?;
    }
    if let Some(step) = awaited(after) {
        let query = sqlx::query(sql::CHILD_AWAIT).bind(id()).bind(step.as_str());
        query.bind(true).execute(&mut *conn).await?;
    }
    Ok(())
}

/// Cancel of these runs is requested: it is carried on to their children. Many at once, since a cancel that goes down a
/// tree comes in batches.
async fn own_cancels(conn: &mut SqliteConnection, writes: &[&Write<'_>]) -> Result<(), Fault> {
    let canceled: Vec<RunId> =
        writes.iter().filter(|write| write.asks_to_cancel()).map(|write| write.after.id).collect();
    begin_cancels(conn, &canceled).await
}

/// A cancel is on its way to the children of these parents.
pub(crate) async fn begin_cancels(
    conn: &mut SqliteConnection,
    parents: &[RunId],
) -> Result<(), Fault> {
    for piece in pieces(parents) {
        let mut query = sqlx::query(sql::CHILD_CANCEL.text(piece.len()));
        for run in piece {
            query = query.bind(run.to_bytes().to_vec());
        }
        query = sql::CHILD_CANCEL.blank(query, piece.len());
        query.execute(&mut *conn).await?;
    }
    Ok(())
}

/// The step for whose children a run waits.
fn awaited(run: &Run) -> Option<StepKey> {
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
    conn: &mut SqliteConnection,
    (parent, step): (RunId, &StepKey),
    child: &Run,
    moves: &[ChildMove],
    now: Timestamp,
) -> Result<(), Fault> {
    let Some(mut group) = group(conn, parent, step).await? else { return Ok(()) };
    moves.iter().for_each(|child| group.moved(*child));
    let released = group.release();
    write_group(conn, &child.origin.app, (parent, step), &group).await?;
    if released > 0 {
        let_go(conn, (parent, step), released, now).await?;
    }
    if group.is_over() {
        wake_parent(conn, (parent, step), now).await?;
    }
    Ok(())
}

async fn let_go(
    conn: &mut SqliteConnection,
    (parent, step): (RunId, &StepKey),
    count: u32,
    now: Timestamp,
) -> Result<(), Fault> {
    let rows = sqlx::query(sql::CHILD_HELD)
        .bind(parent.to_bytes().to_vec())
        .bind(step.as_str())
        .bind(count)
        .fetch_all(&mut *conn)
        .await?;
    let numbers = rows.iter().map(|row| row.try_get("no")).collect::<Result<Vec<i64>, _>>()?;
    let mut decided = Vec::with_capacity(numbers.len());
    for (head, run) in runs_by_no(conn, &numbers).await? {
        if let Ok(facts) = decide_row(&run, RowInput::LetGo, now) {
            decided.push((head, Commit::new(&run, &facts)));
        }
    }
    let writes: Vec<Write<'_>> =
        decided.iter().map(|(head, commit)| Write::decided(head.clone(), commit)).collect();
    write_rows(conn, &writes, now).await
}

/// The last child has ended: a parent that waits for it goes on.
async fn wake_parent(
    conn: &mut SqliteConnection,
    (parent, step): (RunId, &StepKey),
    now: Timestamp,
) -> Result<(), Fault> {
    let Some((head, run)) = run_by_id(conn, parent).await? else { return Ok(()) };
    if awaited(&run).as_ref() != Some(step) {
        return Ok(());
    }
    let input = RowInput::Wake { wake: Wake::Children, at_once: false };
    let Ok(facts) = decide_row(&run, input, now) else { return Ok(()) };
    let commit = Commit::new(&run, &facts);
    write_rows(conn, &[Write::decided(head, &commit)], now).await?;
    let query = sqlx::query(sql::CHILD_AWAIT).bind(parent.to_bytes().to_vec()).bind(step.as_str());
    query.bind(false).execute(conn).await?;
    Ok(())
}

/// A child is not tried again where one above it has moved on. Asked before anything is written.
pub(crate) async fn check_revival(
    conn: &mut SqliteConnection,
    (before, was_held): (RunState, bool),
    after: &Run,
) -> Result<(), Fault> {
    let moved = ChildMove::of(before, was_held, after);
    let Some((of, ChildMove::Revived { .. })) = moved else { return Ok(()) };
    match moved_on(conn, of).await? {
        Some(parent) => Err(Fault(StoreError::ParentMovedOn { parent })),
        None => Ok(()),
    }
}

/// The groups of children that one batch of commits has tried again, as they are after those.
#[derive(Debug, Default)]
pub(crate) struct Revived(BTreeMap<(RunId, StepKey), ChildGroup>);

impl Revived {
    /// Holds a child that is tried again back where its group is full. The end of a sibling lets it go, even one in the
    /// same batch.
    pub(crate) async fn place(
        &mut self,
        conn: &mut SqliteConnection,
        write: &mut Write<'_>,
    ) -> Result<(), Fault> {
        let moved = ChildMove::of(write.head.state, write.head.held, &write.after);
        let Some((of, ChildMove::Revived { .. })) = moved else { return Ok(()) };
        let group = match self.0.entry((of.run, of.step.clone())) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => match group(conn, of.run, &of.step).await? {
                Some(group) => new.insert(group),
                None => return Ok(()),
            },
        };
        let is_held = group.is_full();
        group.moved(ChildMove::Revived { is_held });
        if is_held {
            write.after = Cow::Owned(write.after.clone().into_owned().held());
        }
        Ok(())
    }
}

/// The nearest one above a child that keeps it from being tried again.
pub(crate) async fn moved_on(
    conn: &mut SqliteConnection,
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
