//! Reads of run rows that several operations need.

use std::collections::HashMap;

use sqlx::SqliteConnection;

use surefoot_kernel_core::{Run, RunId};

use super::row::{Head, read_run};
use crate::error::Fault;
use crate::sql::{self, pieces};

/// One run, if it exists. The result is left null.
pub(crate) async fn run_by_id(
    conn: &mut SqliteConnection,
    run: RunId,
) -> Result<Option<(Head, Run)>, Fault> {
    let query = sqlx::query(sql::RUN_BY_ID).bind(run.to_bytes().to_vec());
    query.fetch_optional(conn).await?.as_ref().map(read_run).transpose()
}

/// Runs by their row numbers, in that order. One that cannot be read is left out and does not hold up the others.
pub(crate) async fn runs_by_no(
    conn: &mut SqliteConnection,
    numbers: &[i64],
) -> Result<Vec<(Head, Run)>, Fault> {
    let mut found = HashMap::with_capacity(numbers.len());
    for piece in pieces(numbers) {
        let mut query = sqlx::query(sql::RUN_BY_NO.text(piece.len()));
        for no in piece {
            query = query.bind(*no);
        }
        query = sql::RUN_BY_NO.blank(query, piece.len());
        for row in query.fetch_all(&mut *conn).await? {
            match read_run(&row) {
                Ok((head, run)) => drop(found.insert(head.no, (head, run))),
                Err(Fault(error)) => tracing::warn!(%error, "a run is passed over"),
            }
        }
    }
    Ok(numbers.iter().filter_map(|no| found.remove(no)).collect())
}

/// What writes need to know of runs. Those that do not exist, or cannot be read, are left out.
pub(crate) async fn heads(
    conn: &mut SqliteConnection,
    runs: &[RunId],
) -> Result<HashMap<RunId, Result<Head, Fault>>, Fault> {
    let mut found = HashMap::with_capacity(runs.len());
    for piece in pieces(runs) {
        let mut query = sqlx::query(sql::RUN_HEADS.text(piece.len()));
        for run in piece {
            query = query.bind(run.to_bytes().to_vec());
        }
        query = sql::RUN_HEADS.blank(query, piece.len());
        for row in query.fetch_all(&mut *conn).await? {
            match Head::read(&row) {
                Ok((run, head)) => drop(found.insert(run, Ok(head))),
                Err(fault) => {
                    let run = super::row::Fields::of(&row)?.run;
                    found.insert(run, Err(fault));
                }
            }
        }
    }
    Ok(found)
}
