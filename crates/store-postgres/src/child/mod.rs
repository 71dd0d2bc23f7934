//! Children of steps: created all or none, counted when they end, canceled from the top down, read by index.

pub(crate) mod cancel;
pub(crate) mod create;
pub(crate) mod read;
pub(crate) mod settle;

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use surefoot_kernel_core::{App, ChildGroup, RunId, StepKey};

use crate::error::{Fault, unreadable};
use crate::keys::Key;
use crate::run::lock::Locks;
use crate::sql;

/// The group of a step, if it has children.
pub(crate) async fn group(
    conn: &mut PgConnection,
    parent: RunId,
    step: &StepKey,
) -> Result<Option<ChildGroup>, Fault> {
    fetch(conn, sql::CHILD_GROUP, parent, step).await
}

/// A group that somebody asked to lock.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Locked {
    Is(ChildGroup),
    /// The step has no children.
    No,
    /// Somebody else has it.
    Busy,
}

/// The group of a step, locked until the end of the transaction.
pub(crate) async fn lock_group(
    conn: &mut PgConnection,
    parent: RunId,
    step: &StepKey,
    locks: Locks,
) -> Result<Locked, Fault> {
    let statement = match locks {
        Locks::Wait => sql::CHILD_GROUP_LOCK,
        Locks::IfFree => sql::CHILD_GROUP_LOCK_IF_FREE,
    };
    if let Some(group) = fetch(conn, statement, parent, step).await? {
        return Ok(Locked::Is(group));
    }
    match (locks, group(conn, parent, step).await?) {
        (Locks::IfFree, Some(_)) => Ok(Locked::Busy),
        (Locks::IfFree | Locks::Wait, _) => Ok(Locked::No),
    }
}

async fn fetch(
    conn: &mut PgConnection,
    statement: &'static str,
    parent: RunId,
    step: &StepKey,
) -> Result<Option<ChildGroup>, Fault> {
    let query = sqlx::query(statement).bind(parent.key()).bind(step.as_str());
    let Some(row) = query.fetch_optional(conn).await? else { return Ok(None) };
    Ok(Some(ChildGroup {
        total: count(&row, "total")?,
        live: count(&row, "live")?,
        held: count(&row, "held")?,
        parallel: count(&row, "parallel")?,
        taken: row.try_get("taken")?,
    }))
}

/// A column that counts children.
fn count(row: &PgRow, column: &str) -> Result<u32, Fault> {
    let number: i64 = row.try_get(column)?;
    number.try_into().map_err(|_| unreadable())
}

async fn write_group(
    conn: &mut PgConnection,
    app: &App,
    (parent, step): (RunId, &StepKey),
    group: &ChildGroup,
) -> Result<(), Fault> {
    sqlx::query(sql::CHILD_GROUP_WRITE)
        .bind(parent.key())
        .bind(step.as_str())
        .bind(app.as_str())
        .bind(i64::from(group.total))
        .bind(i64::from(group.live))
        .bind(i64::from(group.held))
        .bind(i64::from(group.parallel))
        .bind(group.taken)
        .execute(conn)
        .await?;
    Ok(())
}
