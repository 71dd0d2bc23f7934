//! What claimed runs have behind them: of many in two statements.

use std::collections::HashMap;

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::{Behind, Run, RunId};

use super::load::{read_entry, read_invocation};
use super::row::Head;
use crate::error::Fault;
use crate::sql::{self, Rows, pieces};

pub(super) async fn read(
    conn: &mut SqliteConnection,
    runs: &[(Head, Run)],
) -> Result<Behind, Fault> {
    let mut behind = Behind::default();
    let asked: Vec<&(Head, Run)> =
        runs.iter().filter(|(_, run)| Behind::is_asked_for(run)).collect();
    let ids: HashMap<i64, RunId> = asked.iter().map(|(head, run)| (head.no, run.id)).collect();
    let all: Vec<i64> = asked.iter().map(|(head, _)| head.no).collect();
    for row in &rows(conn, &sql::RUN_STARTED_WITH, &all).await? {
        let Some(run) = ids.get(&row.try_get::<i64, _>("no")?) else { continue };
        if let Ok(invocation) = read_invocation(row, *run) {
            behind.started_with(*run, invocation);
        }
    }
    let journaled = asked.iter().filter(|(_, run)| run.seq > 0);
    let journaled: Vec<i64> = journaled.map(|(head, _)| head.no).collect();
    for row in &rows(conn, &sql::RUN_JOURNALS, &journaled).await? {
        let Some(run) = ids.get(&row.try_get::<i64, _>("run")?) else { continue };
        behind.journaled(*run, read_entry(row)?);
    }
    Ok(behind)
}

async fn rows(
    conn: &mut SqliteConnection,
    statement: &'static Rows,
    numbers: &[i64],
) -> Result<Vec<SqliteRow>, Fault> {
    let mut found = Vec::new();
    for piece in pieces(numbers) {
        let mut query = sqlx::query(statement.text(piece.len()));
        for no in piece {
            query = query.bind(*no);
        }
        found.extend(statement.blank(query, piece.len()).fetch_all(&mut *conn).await?);
    }
    Ok(found)
}
