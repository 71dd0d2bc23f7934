//! Children of steps: created all or none, counted when they end, canceled from the top down, read by index.

pub(crate) mod cancel;
pub(crate) mod create;
pub(crate) mod read;
pub(crate) mod settle;

use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::{App, ChildGroup, RunId, StepKey};

use crate::error::Fault;
use crate::sql;

/// The group of a step, if it has children.
pub(crate) async fn group(
    conn: &mut SqliteConnection,
    parent: RunId,
    step: &StepKey,
) -> Result<Option<ChildGroup>, Fault> {
    let query = sqlx::query(sql::CHILD_GROUP).bind(parent.to_bytes().to_vec()).bind(step.as_str());
    let Some(row) = query.fetch_optional(conn).await? else { return Ok(None) };
    Ok(Some(ChildGroup {
        total: row.try_get("total")?,
        live: row.try_get("live")?,
        held: row.try_get("held")?,
        parallel: row.try_get("parallel")?,
        taken: row.try_get("taken")?,
    }))
}

async fn write_group(
    conn: &mut SqliteConnection,
    app: &App,
    (parent, step): (RunId, &StepKey),
    group: &ChildGroup,
) -> Result<(), Fault> {
    sqlx::query(sql::CHILD_GROUP_WRITE)
        .bind(parent.to_bytes().to_vec())
        .bind(step.as_str())
        .bind(app.as_str())
        .bind(group.total)
        .bind(group.live)
        .bind(group.held)
        .bind(group.parallel)
        .bind(group.taken)
        .execute(conn)
        .await?;
    Ok(())
}
