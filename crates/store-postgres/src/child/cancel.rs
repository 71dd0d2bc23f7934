//! Cancels on their way down a tree: a bounded number of children at a time.

use std::collections::HashSet;

use sqlx::{PgConnection, Row};
use uuid::Uuid;

use surefoot_kernel_core::{
    App, CHILD_DEPTH_MAX, CancelRequest, Commit, RowInput, RunId, StepKey, Timestamp, decide_row,
};

use super::settle::begin_cancels;
use crate::error::Fault;
use crate::keys::Key;
use crate::run::read::{lock_free_rows, readable, run_by_id};
use crate::run::wake::write_decided;
use crate::sql;

/// Children to which a cancel is carried on in the commit that requests it; recovery does the rest.
pub(crate) const AT_ONCE: u32 = 100;

/// What was done.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    pub(crate) canceled: Vec<RunId>,
    pub(crate) more: bool,
}

/// A group on whose children a cancel is on its way, locked.
struct OnItsWay {
    parent: RunId,
    step: StepKey,
    from: i64,
}

/// Groups that a pass has left: a child of theirs is locked by somebody, and the next pass looks at it again.
#[derive(Default)]
struct Left {
    parents: Vec<Uuid>,
    steps: Vec<String>,
}

/// Carries cancels on to at most `limit` children: of every run of an app, or of one run only.
pub(crate) async fn carry_on(
    conn: &mut PgConnection,
    app: &App,
    only: Option<RunId>,
    limit: u32,
    now: Timestamp,
) -> Result<Carried, Fault> {
    let mut carried = Carried::default();
    let mut left = Left::default();
    let mut room = limit;
    while let Some(group) = next(conn, app, only, &left).await? {
        if room == 0 {
            carried.more = true;
            break;
        }
        let seen = batch(conn, &group, room, &mut carried.canceled, now).await?;
        room = room.saturating_sub(seen.looked_at);
        if seen.is_stuck {
            left.parents.push(group.parent.key());
            left.steps.push(group.step.as_str().to_owned());
        }
    }
    Ok(carried)
}

async fn next(
    conn: &mut PgConnection,
    app: &App,
    only: Option<RunId>,
    left: &Left,
) -> Result<Option<OnItsWay>, Fault> {
    let row = sqlx::query(sql::CHILD_CANCEL_NEXT)
        .bind(app.as_str())
        .bind(only.map(Key::key))
        .bind(&left.parents)
        .bind(&left.steps)
        .fetch_optional(conn)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let parent = RunId::of_key(row.try_get("parent")?);
    let step = StepKey::from(row.try_get::<String, _>("step")?);
    Ok(Some(OnItsWay { parent, step, from: row.try_get("cancel_from")? }))
}

/// What a batch has seen.
struct Seen {
    /// At least one, so that an end is in sight.
    looked_at: u32,
    /// A child is locked by somebody: the cancel stays before it.
    is_stuck: bool,
}

/// The next children of one group.
async fn batch(
    conn: &mut PgConnection,
    group: &OnItsWay,
    limit: u32,
    canceled: &mut Vec<RunId>,
    now: Timestamp,
) -> Result<Seen, Fault> {
    let rows = sqlx::query(sql::CHILD_CANCEL_BATCH)
        .bind(group.parent.key())
        .bind(group.step.as_str())
        .bind(group.from)
        .bind(i64::from(limit))
        .fetch_all(&mut *conn)
        .await?;
    let mut live: Vec<(RunId, i64)> = Vec::with_capacity(rows.len());
    let mut ended: Vec<RunId> = Vec::new();
    let mut last = None;
    for row in &rows {
        let (id, index) = (RunId::of_key(row.try_get("id")?), row.try_get("parent_index")?);
        last = Some(index);
        if row.try_get("ended")? {
            ended.push(id);
        } else {
            live.push((id, index));
        }
    }
    let is_last = rows.len() < usize::try_from(limit).unwrap_or(usize::MAX);
    let mut next = last.filter(|_| !is_last).map(|last: i64| last.saturating_add(1));
    let mut is_stuck = false;
    if let Some(request) = request_above(conn, group.parent).await? {
        let busy = cancel_all(conn, &live, &request, canceled, now).await?;
        begin_cancels(conn, ended).await?;
        is_stuck = busy.is_some();
        next = busy.or(next);
    }
    let query = sqlx::query(sql::CHILD_CANCEL_FROM).bind(group.parent.key());
    query.bind(group.step.as_str()).bind(next).execute(&mut *conn).await?;
    let looked_at = u32::try_from(rows.len()).unwrap_or(u32::MAX).max(1);
    Ok(Seen { looked_at, is_stuck })
}

/// The request that is carried on to the children of a run: its own, or that of the nearest one above it, if the run
/// had ended before the request came to it.
async fn request_above(
    conn: &mut PgConnection,
    parent: RunId,
) -> Result<Option<CancelRequest>, Fault> {
    let mut above = Some(parent);
    for _ in 0..=CHILD_DEPTH_MAX {
        let Some(id) = above else { break };
        let Some((_, run)) = run_by_id(conn, id).await? else { break };
        if run.cancel.is_some() {
            return Ok(run.cancel);
        }
        above = run.origin.parent.as_ref().map(|parent| parent.run);
    }
    Ok(None)
}

/// Answers the index of the first child that somebody has locked.
async fn cancel_all(
    conn: &mut PgConnection,
    live: &[(RunId, i64)],
    request: &CancelRequest,
    canceled: &mut Vec<RunId>,
    now: Timestamp,
) -> Result<Option<i64>, Fault> {
    let ids: Vec<RunId> = live.iter().map(|(id, _)| *id).collect();
    let rows = lock_free_rows(conn, &ids).await?;
    let got = rows.iter().map(|row| Ok(RunId::of_key(row.try_get("id")?)));
    let got: HashSet<RunId> = got.collect::<Result<_, Fault>>()?;
    let mut decided = Vec::with_capacity(rows.len());
    for (head, run) in readable(&rows) {
        let (actor, reason) = (request.actor.clone(), request.reason.clone());
        let facts = decide_row(&run, RowInput::Cancel { actor, reason }, now).unwrap_or_default();
        if !facts.is_empty() {
            decided.push((head, Commit::new(&run, &facts), None));
        }
    }
    write_decided(conn, &decided, now).await?;
    canceled.extend(decided.iter().map(|(_, commit, _)| commit.after.id));
    Ok(live.iter().find(|(id, _)| !got.contains(id)).map(|(_, index)| *index))
}
