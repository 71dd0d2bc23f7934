//! One bounded pass of recovery.

use std::collections::HashSet;

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::{
    App, Commit, Mode, Recovered, RowInput, RunId, Scan, StoreError, Timestamp, WorkDue, decide_row,
};

use super::read::runs_by_no;
use super::session::footprints;
use super::wake::{wake_all, write_decided};
use crate::child::cancel::{carry_on, is_pending};
use crate::error::Fault;
use crate::event::dispatch;
use crate::sql;
use crate::writer::{Cx, Lane, Op};

/// No pass touches more runs of one kind in one transaction.
const RECOVER_MAX: u32 = 500;

pub(crate) struct Recover(pub(crate) Scan);

impl Op for Recover {
    type Out = Recovered;
    type Err = StoreError;
    const LANE: Lane = Lane::Rest;

    async fn run<'a>(
        &'a self,
        conn: &'a mut SqliteConnection,
        cx: Cx,
    ) -> Result<Recovered, StoreError> {
        Ok(recover(conn, &self.0, cx.now).await?)
    }
}

/// What a pass would look at.
#[derive(Debug, Default)]
pub(crate) struct Due {
    wakes: Vec<i64>,
    gone: Vec<i64>,
    cancels: bool,
    more: bool,
}

impl Due {
    pub(crate) fn is_empty(&self) -> bool {
        self.wakes.is_empty() && self.gone.is_empty() && !self.cancels
    }
}

/// What is due now: asked on a reading connection first, so that an idle worker writes nothing.
pub(crate) async fn due(
    conn: &mut SqliteConnection,
    scan: &Scan,
    now: Timestamp,
) -> Result<Due, Fault> {
    let limit = scan.limit.clamp(1, RECOVER_MAX);
    // One more than the limit says whether there are more.
    let ask = limit.saturating_add(1);
    let app = scan.app.as_str();
    let signaled = sqlx::query(sql::RUN_SIGNALED).bind(app).bind(ask);
    let signaled = numbers(signaled.fetch_all(&mut *conn).await?)?;
    let overdue = sqlx::query(sql::RUN_OVERDUE).bind(app).bind(now.micros()).bind(ask);
    let overdue = numbers(overdue.fetch_all(&mut *conn).await?)?;
    let over = sqlx::query(sql::CHILD_OVER).bind(app).bind(ask);
    let over = numbers(over.fetch_all(&mut *conn).await?)?;
    let cancels = is_pending(conn, &scan.app).await?;
    let gone = sqlx::query(sql::RUN_GONE).bind(app).bind(now.micros()).bind(ask);
    let mut gone = numbers(gone.fetch_all(&mut *conn).await?)?;
    let mut seen = HashSet::new();
    let mut wakes: Vec<i64> =
        signaled.into_iter().chain(over).chain(overdue).filter(|no| seen.insert(*no)).collect();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = wakes.len() > limit || gone.len() > limit;
    wakes.truncate(limit);
    gone.truncate(limit);
    Ok(Due { wakes, gone, cancels, more })
}

/// All that a worker's scan may find.
pub(crate) async fn work(
    conn: &mut SqliteConnection,
    app: App,
    mode: Mode,
    now: Timestamp,
) -> Result<WorkDue, Fault> {
    let dispatch = !dispatch::due(&mut *conn, &app, 1, now).await?.is_empty();
    let mut work = WorkDue { dispatch, ..footprints(&mut *conn, &app, mode, now).await? };
    let scan = Scan { app, limit: 1 };
    work.recover = !due(conn, &scan, now).await?.is_empty();
    Ok(work)
}

fn numbers(rows: Vec<SqliteRow>) -> Result<Vec<i64>, Fault> {
    rows.iter().map(|row| Ok(row.try_get("no")?)).collect()
}

async fn recover(
    conn: &mut SqliteConnection,
    scan: &Scan,
    now: Timestamp,
) -> Result<Recovered, Fault> {
    let due = due(conn, scan, now).await?;
    let waiting = runs_by_no(conn, &due.wakes).await?;
    let woken = wake_all(conn, waiting, now).await?;
    let mut decided = Vec::with_capacity(due.gone.len());
    for (head, run) in runs_by_no(conn, &due.gone).await? {
        if let Ok(facts) = decide_row(&run, RowInput::LeaseGone, now) {
            decided.push((head, Commit::new(&run, &facts), None));
        }
    }
    write_decided(conn, &decided, now).await?;
    let mut finalised: Vec<RunId> = decided.iter().map(|(_, commit, _)| commit.after.id).collect();
    let limit = scan.limit.clamp(1, RECOVER_MAX);
    let carried = carry_on(conn, &scan.app, None, limit, now).await?;
    finalised.extend(carried.canceled);
    sqlx::query(sql::SIGNAL_SETTLE).bind(scan.app.as_str()).execute(conn).await?;
    Ok(Recovered { woken, finalised, more: due.more || carried.more })
}
