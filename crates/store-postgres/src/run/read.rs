//! Reads of run rows that several operations need.

use std::collections::HashMap;

use sqlx::PgConnection;
use sqlx::postgres::PgRow;

use surefoot_kernel_core::{Run, RunId};

use super::lock::Locks;
use super::row::{Fields, Head, read_run};
use crate::error::Fault;
use crate::keys::{Key, sorted_keys};
use crate::sql;

/// One run, if it exists. The result is left null.
pub(crate) async fn run_by_id(
    conn: &mut PgConnection,
    run: RunId,
) -> Result<Option<(Head, Run)>, Fault> {
    let query = sqlx::query(sql::RUN_BY_ID).bind(run.key());
    query.fetch_optional(conn).await?.as_ref().map(read_run).transpose()
}

/// One run, its row locked until the end of the transaction: as it is once whoever had it locked has committed.
pub(crate) async fn lock_run(
    conn: &mut PgConnection,
    run: RunId,
    locks: Locks,
) -> Result<Option<(Head, Run)>, Fault> {
    let statement = match locks {
        Locks::Wait => sql::RUN_LOCK,
        Locks::IfFree => sql::RUN_LOCK_IF_FREE,
    };
    let query = sqlx::query(statement).bind(vec![run.key()]);
    query.fetch_optional(conn).await?.as_ref().map(read_run).transpose()
}

/// Runs whose rows nobody has locked, locked until the end of the transaction, in the order that is asked for. One that
/// cannot be read is left out and does not hold up the others.
pub(crate) async fn lock_free_runs(
    conn: &mut PgConnection,
    runs: &[RunId],
) -> Result<Vec<(Head, Run)>, Fault> {
    let rows = lock_free_rows(conn, runs).await?;
    let mut found: HashMap<RunId, (Head, Run)> =
        readable(&rows).into_iter().map(|(head, run)| (run.id, (head, run))).collect();
    Ok(runs.iter().filter_map(|run| found.remove(run)).collect())
}

/// The same as rows, in no order.
pub(crate) async fn lock_free_rows(
    conn: &mut PgConnection,
    runs: &[RunId],
) -> Result<Vec<PgRow>, Fault> {
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let keys = sorted_keys(runs.iter().copied());
    Ok(sqlx::query(sql::RUN_LOCK_IF_FREE).bind(keys).fetch_all(conn).await?)
}

/// Those rows that can be read.
pub(crate) fn readable(rows: &[PgRow]) -> Vec<(Head, Run)> {
    let mut runs = Vec::with_capacity(rows.len());
    for row in rows {
        match read_run(row) {
            Ok(read) => runs.push(read),
            Err(Fault(error)) => tracing::warn!(%error, "a run is passed over"),
        }
    }
    runs
}

/// What writes need to know of runs, their rows locked. Those that do not exist, or are not free, are left out.
pub(crate) async fn lock_heads(
    conn: &mut PgConnection,
    runs: &[RunId],
    locks: Locks,
) -> Result<HashMap<RunId, Result<Head, Fault>>, Fault> {
    let statement = match locks {
        Locks::Wait => sql::RUN_HEADS,
        Locks::IfFree => sql::RUN_HEADS_IF_FREE,
    };
    let keys = sorted_keys(runs.iter().copied());
    let rows = sqlx::query(statement).bind(keys).fetch_all(conn).await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in &rows {
        let run = Fields::of(row)?.run;
        found.insert(run, Head::read(row));
    }
    Ok(found)
}
