//! Trees of runs, which are deleted as a whole.

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use surefoot_kernel_core::retention::{Force, holding};
use surefoot_kernel_core::{App, RunId, Scope};

use super::{CHUNK, affected};
use crate::error::Fault;
use crate::keys::Key;
use crate::plan::list::read_key;
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
    conn: &mut PgConnection,
    (app, scope): (&App, Option<&Scope>),
    limit: u32,
) -> Result<Vec<RunId>, Fault> {
    let query =
        sqlx::query(sql::RETENTION_DOOMED).bind(app.as_str()).bind(scope.map(Scope::as_str));
    let rows = query.bind(i64::from(limit)).fetch_all(conn).await?;
    rows.iter().map(|row| read_key(row, "root")).collect()
}

/// Deletes a tree if nothing holds it, its root last.
pub(super) async fn fell(
    conn: &mut PgConnection,
    root: RunId,
    (force, audit): (Force, AuditOf),
    cx: Cx,
) -> Result<Felled, Fault> {
    let id = root.key();
    let query = sqlx::query(sql::RETENTION_TREE_ROOT).bind(id);
    let Some(row) = query.fetch_optional(&mut *conn).await? else { return Ok(Felled::Not) };
    let app: String = row.try_get("app")?;
    if is_held(conn, id, force).await? {
        return Ok(Felled::Not);
    }
    let mut gone = 0;
    loop {
        let query = sqlx::query(sql::RETENTION_TREE_CHILDREN).bind(id);
        let rows = query.bind(i64::try_from(CHUNK).unwrap_or(1)).fetch_all(&mut *conn).await?;
        if rows.is_empty() {
            break;
        }
        // Whoever was at work on one of them when its lock was waited for may have brought it to life.
        if gone == 0 && is_alive(&rows, force)? {
            return Ok(Felled::Not);
        }
        if gone > 0 && cx.is_long() {
            sqlx::query(sql::RETENTION_DOOM).bind(id).bind(app).execute(conn).await?;
            return Ok(Felled::Part(gone));
        }
        let children = rows.iter().map(|row| Ok(row.try_get("id")?));
        gone += drop_runs(conn, &children.collect::<Result<Vec<Uuid>, Fault>>()?, audit).await?;
    }
    gone += drop_runs(conn, &[id], audit).await?;
    sqlx::query(sql::RETENTION_UNDOOM).bind(id).execute(conn).await?;
    Ok(Felled::Whole(gone))
}

/// Whether something holds a tree back. Once its deletion has begun nothing in it moves: it is not looked at again,
/// however large it is.
async fn is_held(conn: &mut PgConnection, id: Uuid, force: Force) -> Result<bool, Fault> {
    let doomed = sqlx::query(sql::RETENTION_TREE_DOOMED).bind(id);
    if doomed.fetch_optional(&mut *conn).await?.is_some() {
        return Ok(false);
    }
    let query = sqlx::query(sql::RETENTION_TREE_HELD).bind(id).bind(holding(force));
    Ok(query.fetch_optional(conn).await?.is_some())
}

fn is_alive(rows: &[PgRow], force: Force) -> Result<bool, Fault> {
    let holding = holding(force);
    for row in rows {
        if holding.contains(&row.try_get("word")?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Deletes runs and all that hangs on them.
async fn drop_runs(conn: &mut PgConnection, runs: &[Uuid], audit: AuditOf) -> Result<u32, Fault> {
    if audit == AuditOf::Bared {
        sqlx::query(sql::RETENTION_BARE_AUDIT).bind(runs).execute(&mut *conn).await?;
    }
    for statement in [
        sql::RETENTION_DROP_JOURNALS,
        sql::RETENTION_DROP_RUN_PAYLOADS,
        sql::RETENTION_DROP_RESULTS,
        sql::RETENTION_DROP_TASKS,
        sql::RETENTION_DROP_GROUPS,
        sql::RETENTION_DROP_BUDGETS,
    ] {
        sqlx::query(statement).bind(runs).execute(&mut *conn).await?;
    }
    let dropped = sqlx::query(sql::RETENTION_DROP_RUNS).bind(runs).execute(conn).await?;
    Ok(affected(&dropped))
}

/// Deletes trees until so many runs are gone, or the transaction has lasted long enough.
pub(super) async fn fell_all(
    conn: &mut PgConnection,
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
pub(crate) async fn is_doomed(conn: &mut PgConnection, run: RunId) -> Result<bool, Fault> {
    let query = sqlx::query(sql::RETENTION_IS_DOOMED).bind(run.key());
    Ok(query.fetch_optional(conn).await?.is_some())
}
