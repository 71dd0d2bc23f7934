//! Trees of runs, which are deleted as a whole.

use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::retention::Force;
use surefoot_kernel_core::{App, RunId, Scope};

use super::{CHUNK, held, list};
use crate::error::Fault;
use crate::event::emit::sixteen;
use crate::sql;
use crate::writer::Cx;

/// What becomes of the audit rows of deleted runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuditOf {
    /// They stay as they are.
    Kept,
    /// They stay with ids only.
    Bared,
}

/// How far the deletion of a tree came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Felled {
    /// Something holds it, or it is gone already.
    Not,
    /// So many runs; the tree is gone.
    Whole(u32),
    /// So many runs; the rest is deleted by the next call, and nothing in it moves any more.
    Part(u32),
}

/// Trees whose deletion has begun.
pub(super) async fn begun(
    conn: &mut SqliteConnection,
    (app, scope): (&App, Option<&Scope>),
    limit: u32,
) -> Result<Vec<RunId>, Fault> {
    let query =
        sqlx::query(sql::RETENTION_DOOMED).bind(app.as_str()).bind(scope.map(Scope::as_str));
    let rows = query.bind(limit).fetch_all(conn).await?;
    rows.iter().map(|row| sixteen(row, "root").map(RunId::from_bytes)).collect()
}

/// Deletes a tree if nothing holds it, its root last.
pub(super) async fn fell(
    conn: &mut SqliteConnection,
    root: RunId,
    (force, audit): (Force, AuditOf),
    cx: Cx,
) -> Result<Felled, Fault> {
    let id = root.to_bytes().to_vec();
    let query = sqlx::query(sql::RETENTION_TREE_ROOT).bind(id.clone());
    let Some(row) = query.fetch_optional(&mut *conn).await? else { return Ok(Felled::Not) };
    let (no, app): (i64, String) = (row.try_get("no")?, row.try_get("app")?);
    if is_held(conn, &id, force).await? {
        return Ok(Felled::Not);
    }
    let mut gone = 0;
    loop {
        let query = sqlx::query(sql::RETENTION_TREE_CHILDREN).bind(id.clone());
        let rows = query.bind(u32::try_from(CHUNK).unwrap_or(1)).fetch_all(&mut *conn).await?;
        if rows.is_empty() {
            break;
        }
        if gone > 0 && cx.is_long() {
            sqlx::query(sql::RETENTION_DOOM).bind(id).bind(app).execute(conn).await?;
            return Ok(Felled::Part(gone));
        }
        let children = rows.iter().map(|row| Ok(row.try_get("no")?));
        gone += drop_runs(conn, &children.collect::<Result<Vec<i64>, Fault>>()?, audit).await?;
    }
    gone += drop_runs(conn, &[no], audit).await?;
    sqlx::query(sql::RETENTION_UNDOOM).bind(id).execute(conn).await?;
    Ok(Felled::Whole(gone))
}

/// Whether something holds a tree back. Once its deletion has begun nothing in it moves: it is not looked at again,
/// however large it is.
async fn is_held(conn: &mut SqliteConnection, id: &[u8], force: Force) -> Result<bool, Fault> {
    let doomed = sqlx::query(sql::RETENTION_TREE_DOOMED).bind(id);
    if doomed.fetch_optional(&mut *conn).await?.is_some() {
        return Ok(false);
    }
    let query = sqlx::query(sql::RETENTION_TREE_HELD).bind(id).bind(held(force)?);
    Ok(query.fetch_optional(conn).await?.is_some())
}

/// Deletes runs and all that hangs on them.
async fn drop_runs(
    conn: &mut SqliteConnection,
    runs: &[i64],
    audit: AuditOf,
) -> Result<u32, Fault> {
    let numbers = list(runs)?;
    if audit == AuditOf::Bared {
        sqlx::query(sql::RETENTION_BARE_AUDIT).bind(&*numbers).execute(&mut *conn).await?;
    }
    for statement in [
        sql::RETENTION_DROP_JOURNALS,
        sql::RETENTION_DROP_RUN_PAYLOADS,
        sql::RETENTION_DROP_RESULTS,
        sql::RETENTION_DROP_TASKS,
        sql::RETENTION_DROP_GROUPS,
        sql::RETENTION_DROP_BUDGETS,
    ] {
        sqlx::query(statement).bind(&*numbers).execute(&mut *conn).await?;
    }
    let dropped = sqlx::query(sql::RETENTION_DROP_RUNS).bind(&*numbers).execute(conn).await?;
    Ok(super::length(usize::try_from(dropped.rows_affected()).unwrap_or(usize::MAX)))
}

/// Deletes trees until so many runs are gone, or the transaction has lasted long enough.
pub(super) async fn fell_all(
    conn: &mut SqliteConnection,
    roots: &[RunId],
    how: (Force, AuditOf),
    limit: u32,
    cx: Cx,
) -> Result<(u32, bool), Fault> {
    let mut gone = 0;
    for root in roots {
        if gone >= limit || (gone > 0 && cx.is_long()) {
            return Ok((gone, true));
        }
        match fell(conn, *root, how, cx).await? {
            Felled::Not => {}
            Felled::Whole(runs) => gone += runs,
            Felled::Part(runs) => return Ok((gone + runs, true)),
        }
    }
    Ok((gone, false))
}

/// Whether the deletion of a run's tree has begun.
pub(crate) async fn is_doomed(conn: &mut SqliteConnection, run: i64) -> Result<bool, Fault> {
    let query = sqlx::query(sql::RETENTION_IS_DOOMED).bind(run);
    Ok(query.fetch_optional(conn).await?.is_some())
}
