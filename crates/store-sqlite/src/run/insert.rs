//! New runs.

use serde_json::Value;
use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::{Run, actor_of};

use super::row::json_opt;
use super::write::bind_state;
use crate::budget;
use crate::error::Fault;
use crate::sql;

/// What a run is started with, as stored: JSON text, byte for byte.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartedWith<'a> {
    pub(crate) data: &'a str,
    pub(crate) context: &'a str,
    pub(crate) authorization: Option<&'a Value>,
}

pub(crate) async fn insert(
    conn: &mut SqliteConnection,
    run: &Run,
    with: StartedWith<'_>,
) -> Result<(), Fault> {
    let origin = &run.origin;
    let parent = origin.parent.as_ref();
    let query = sqlx::query(sql::RUN_INSERT)
        .bind(run.id.to_bytes().to_vec())
        .bind(origin.app.as_str())
        .bind(origin.scope.as_str())
        .bind(origin.workflow.as_str())
        .bind(origin.version.to_bytes().to_vec())
        .bind(&*origin.footprint)
        .bind(origin.mode.as_str())
        .bind(origin.event.map(|event| event.to_bytes().to_vec()))
        .bind(origin.trigger.as_deref())
        .bind(origin.occurred_at.micros())
        .bind(origin.root.to_bytes().to_vec())
        .bind(parent.map(|parent| parent.run.to_bytes().to_vec()))
        .bind(parent.map(|parent| parent.step.as_str()))
        .bind(parent.map(|parent| parent.index))
        .bind(origin.created_at.micros());
    let row = bind_state(query, run, None, None)?.fetch_one(&mut *conn).await?;
    let no: i64 = row.try_get("no")?;
    budget::open(conn, run).await?;
    let actor = actor_of(with.authorization);
    sqlx::query(sql::RUN_PAYLOAD_WRITE)
        .bind(no)
        .bind(with.data)
        .bind(with.context)
        .bind(json_opt(with.authorization)?)
        .bind(json_opt(actor.as_ref())?)
        .execute(conn)
        .await?;
    Ok(())
}
