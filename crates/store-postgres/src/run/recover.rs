//! One bounded pass of recovery.

use std::collections::HashSet;

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use surefoot_kernel_core::{
    Commit, Recovered, RowInput, RunId, Scan, StepKey, StoreError, Timestamp, decide_row,
};

use super::read::lock_free_runs;
use super::wake::{wake_all, write_decided};
use crate::child::cancel::{carry_on, is_pending};
use crate::child::settle::make_room;
use crate::error::Fault;
use crate::keys::Key;
use crate::sql;
use crate::writer::{Cx, Lane, Op};

/// No pass touches more runs of one kind in one transaction.
const RECOVER_MAX: u32 = 500;

/// A pass, and what it has found: what somebody else has done since is passed over.
pub(crate) struct Recover {
    pub(crate) scan: Scan,
    pub(crate) due: Due,
}

impl Op for Recover {
    type Out = Recovered;
    type Err = StoreError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        cx: Cx,
    ) -> Result<Recovered, StoreError> {
        Ok(recover(conn, &self.scan, &self.due, cx.now).await?)
    }
}

/// What a pass would look at.
#[derive(Debug, Default)]
pub(crate) struct Due {
    wakes: Vec<RunId>,
    gone: Vec<RunId>,
    /// Groups that have children to let go.
    room: Vec<(RunId, StepKey)>,
    cancels: bool,
    more: bool,
}

impl Due {
    pub(crate) fn is_empty(&self) -> bool {
        self.wakes.is_empty() && self.gone.is_empty() && self.room.is_empty() && !self.cancels
    }
}

/// What is due now: on a reading connection, so that an idle worker writes nothing.
pub(crate) async fn due(
    conn: &mut PgConnection,
    scan: &Scan,
    now: Timestamp,
) -> Result<Due, Fault> {
    let limit = scan.limit.clamp(1, RECOVER_MAX);
    // One more than the limit says whether there are more.
    let ask = i64::from(limit).saturating_add(1);
    let app = scan.app.as_str();
    let signaled = sqlx::query(sql::RUN_SIGNALED).bind(app).bind(ask);
    let signaled = ids(&signaled.fetch_all(&mut *conn).await?)?;
    let overdue = sqlx::query(sql::RUN_OVERDUE).bind(app).bind(now.micros()).bind(ask);
    let overdue = ids(&overdue.fetch_all(&mut *conn).await?)?;
    let over = sqlx::query(sql::CHILD_OVER).bind(app).bind(ask);
    let over = ids(&over.fetch_all(&mut *conn).await?)?;
    let room = sqlx::query(sql::CHILD_ROOM).bind(app).bind(ask);
    let room = groups(&room.fetch_all(&mut *conn).await?)?;
    let cancels = is_pending(conn, &scan.app).await?;
    let gone = sqlx::query(sql::RUN_GONE).bind(app).bind(now.micros()).bind(ask);
    let mut gone = ids(&gone.fetch_all(&mut *conn).await?)?;
    let mut seen = HashSet::new();
    let mut wakes: Vec<RunId> =
        signaled.into_iter().chain(over).chain(overdue).filter(|run| seen.insert(*run)).collect();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = wakes.len() > limit || gone.len() > limit || room.len() > limit;
    wakes.truncate(limit);
    gone.truncate(limit);
    Ok(Due { wakes, gone, room, cancels, more })
}

fn ids(rows: &[PgRow]) -> Result<Vec<RunId>, Fault> {
    rows.iter().map(|row| Ok(RunId::of_key(row.try_get("id")?))).collect()
}

fn groups(rows: &[PgRow]) -> Result<Vec<(RunId, StepKey)>, Fault> {
    let read = |row: &PgRow| {
        let step: String = row.try_get("step")?;
        Ok((RunId::of_key(row.try_get("parent")?), StepKey::from(step)))
    };
    rows.iter().map(read).collect()
}

async fn recover(
    conn: &mut PgConnection,
    scan: &Scan,
    due: &Due,
    now: Timestamp,
) -> Result<Recovered, Fault> {
    let waiting = lock_free_runs(conn, &due.wakes).await?;
    let woken = wake_all(conn, waiting, now).await?;
    let mut decided = Vec::with_capacity(due.gone.len());
    for (head, run) in lock_free_runs(conn, &due.gone).await? {
        if let Ok(facts) = decide_row(&run, RowInput::LeaseGone, now) {
            decided.push((head, Commit::new(&run, &facts), None));
        }
    }
    write_decided(conn, &decided, now).await?;
    let mut finalised: Vec<RunId> = decided.iter().map(|(_, commit, _)| commit.after.id).collect();
    for (parent, step) in &due.room {
        make_room(conn, (*parent, step), &scan.app, now).await?;
    }
    let limit = scan.limit.clamp(1, RECOVER_MAX);
    let carried = carry_on(conn, &scan.app, None, limit, now).await?;
    finalised.extend(carried.canceled);
    sqlx::query(sql::SIGNAL_SETTLE).bind(scan.app.as_str()).execute(conn).await?;
    Ok(Recovered { woken, finalised, more: due.more || carried.more })
}
