//! What claimed runs have behind them: of many in two statements.

use sqlx::{PgConnection, Row};
use uuid::Uuid;

use surefoot_kernel_core::{Behind, CLAIM_MAX_BYTES, Run, RunId};

use super::load::{read_entry, read_invocation};
use super::row::int;
use crate::error::Fault;
use crate::keys::Key;
use crate::sql;

pub(super) async fn read<'r>(
    conn: &mut PgConnection,
    runs: impl Iterator<Item = &'r Run>,
) -> Result<Behind, Fault> {
    let mut behind = Behind::default();
    let runs: Vec<&Run> = runs.filter(|run| Behind::is_asked_for(run)).collect();
    if runs.is_empty() {
        return Ok(behind);
    }
    started_with(conn, &runs, &mut behind).await?;
    let journaled = runs.into_iter().filter(|run| run.seq > 0);
    let journaled: Vec<Uuid> = journaled.map(|run| run.id.key()).collect();
    if !journaled.is_empty() {
        journals(conn, journaled, &mut behind).await?;
    }
    Ok(behind)
}

async fn started_with(
    conn: &mut PgConnection,
    runs: &[&Run],
    behind: &mut Behind,
) -> Result<(), Fault> {
    let rows = sqlx::query(sql::RUN_STARTED_WITH)
        .bind(runs.iter().map(|run| run.id.key()).collect::<Vec<Uuid>>())
        .bind(runs.iter().map(|run| run.origin.root.key()).collect::<Vec<Uuid>>())
        .bind(int(CLAIM_MAX_BYTES))
        .fetch_all(conn)
        .await?;
    for row in &rows {
        let run = RunId::of_key(row.try_get("id")?);
        if let Ok(invocation) = read_invocation(row, run) {
            behind.started_with(run, invocation);
        }
    }
    Ok(())
}

async fn journals(
    conn: &mut PgConnection,
    runs: Vec<Uuid>,
    behind: &mut Behind,
) -> Result<(), Fault> {
    for row in &sqlx::query(sql::RUN_JOURNALS).bind(runs).fetch_all(conn).await? {
        behind.journaled(RunId::of_key(row.try_get("run")?), read_entry(row)?);
    }
    Ok(())
}
