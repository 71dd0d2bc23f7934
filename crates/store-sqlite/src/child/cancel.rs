//! Cancels on their way down a tree: a bounded number of children at a time.

use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::{
    App, CHILD_DEPTH_MAX, CancelRequest, Commit, RowInput, RunId, StepKey, Timestamp, decide_row,
};

use super::settle::begin_cancels;
use crate::error::Fault;
use crate::event::emit::sixteen;
use crate::run::read::{run_by_id, runs_by_no};
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

/// A group on whose children a cancel is on its way.
struct OnItsWay {
    parent: RunId,
    step: StepKey,
    from: i64,
}

/// Carries cancels on to at most `limit` children: of every run of an app, or of one run only.
pub(crate) async fn carry_on(
    conn: &mut SqliteConnection,
    app: &App,
    only: Option<RunId>,
    limit: u32,
    now: Timestamp,
) -> Result<Carried, Fault> {
    let mut carried = Carried::default();
    let mut room = limit;
    while let Some(group) = next(conn, app, only).await? {
        if room == 0 {
            carried.more = true;
            break;
        }
        room = room.saturating_sub(batch(conn, &group, room, &mut carried.canceled, now).await?);
    }
    Ok(carried)
}

/// Whether there is anything to carry on.
pub(crate) async fn is_pending(conn: &mut SqliteConnection, app: &App) -> Result<bool, Fault> {
    Ok(next(conn, app, None).await?.is_some())
}

async fn next(
    conn: &mut SqliteConnection,
    app: &App,
    only: Option<RunId>,
) -> Result<Option<OnItsWay>, Fault> {
    let row = sqlx::query(sql::CHILD_CANCEL_NEXT)
        .bind(app.as_str())
        .bind(only.map(|run| run.to_bytes().to_vec()))
        .fetch_optional(conn)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let parent = RunId::from_bytes(sixteen(&row, "parent")?);
    let step = StepKey::from(row.try_get::<String, _>("step")?);
    Ok(Some(OnItsWay { parent, step, from: row.try_get("cancel_from")? }))
}

/// The next children of one group. Answers how many were looked at, at least one, so that an end is in sight.
async fn batch(
    conn: &mut SqliteConnection,
    group: &OnItsWay,
    limit: u32,
    canceled: &mut Vec<RunId>,
    now: Timestamp,
) -> Result<u32, Fault> {
    let (parent, step) = (group.parent.to_bytes().to_vec(), group.step.as_str());
    let rows = sqlx::query(sql::CHILD_CANCEL_BATCH)
        .bind(parent.clone())
        .bind(step)
        .bind(group.from)
        .bind(limit)
        .fetch_all(&mut *conn)
        .await?;
    let mut live: Vec<i64> = Vec::with_capacity(rows.len());
    let mut ended: Vec<RunId> = Vec::new();
    for row in &rows {
        if row.try_get("ended")? {
            ended.push(RunId::from_bytes(sixteen(row, "id")?));
        } else {
            live.push(row.try_get("no")?);
        }
    }
    let is_last = rows.len() < usize::try_from(limit).unwrap_or(usize::MAX);
    let last: Option<i64> = rows.last().map(|row| row.try_get("parent_index")).transpose()?;
    let next = last.filter(|_| !is_last).map(|last| last.saturating_add(1));
    let query = sqlx::query(sql::CHILD_CANCEL_FROM).bind(parent).bind(step).bind(next);
    query.execute(&mut *conn).await?;
    if let Some(request) = request_above(conn, group.parent).await? {
        canceled.extend(cancel_all(conn, &live, &request, now).await?);
        begin_cancels(conn, &ended).await?;
    }
    Ok(u32::try_from(rows.len()).unwrap_or(u32::MAX).max(1))
}

/// The request that is carried on to the children of a run: its own, or that of the nearest one above it, if the run
/// had ended before the request came to it.
async fn request_above(
    conn: &mut SqliteConnection,
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

async fn cancel_all(
    conn: &mut SqliteConnection,
    numbers: &[i64],
    request: &CancelRequest,
    now: Timestamp,
) -> Result<Vec<RunId>, Fault> {
    let mut decided = Vec::with_capacity(numbers.len());
    for (head, run) in runs_by_no(conn, numbers).await? {
        let (actor, reason) = (request.actor.clone(), request.reason.clone());
        let facts = decide_row(&run, RowInput::Cancel { actor, reason }, now).unwrap_or_default();
        if !facts.is_empty() {
            decided.push((head, Commit::new(&run, &facts), None));
        }
    }
    write_decided(conn, &decided, now).await?;
    Ok(decided.iter().map(|(_, commit, _)| commit.after.id).collect())
}
