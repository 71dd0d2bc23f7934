//! New runs.

use serde_json::Value;
use sqlx::PgConnection;

use surefoot_kernel_core::{Run, TraceContext, actor_of};

use super::columns::RunRow;
use super::row::json_opt;
use crate::budget;
use crate::error::Fault;
use crate::keys::Key;
use crate::sql;

/// What a run is started with, as stored: JSON text, byte for byte. A child shares its root's context and
/// authorization, and has none of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartedWith<'a> {
    pub(crate) data: &'a str,
    pub(crate) context: Option<&'a str>,
    pub(crate) authorization: Option<&'a Value>,
    pub(crate) trace: Option<&'a TraceContext>,
}

pub(crate) async fn insert(
    conn: &mut PgConnection,
    run: &Run,
    with: StartedWith<'_>,
) -> Result<(), Fault> {
    insert_all(conn, &[(run, with)]).await
}

pub(crate) async fn insert_all(
    conn: &mut PgConnection,
    runs: &[(&Run, StartedWith<'_>)],
) -> Result<(), Fault> {
    if runs.is_empty() {
        return Ok(());
    }
    let rows = runs.iter().map(|(run, _)| RunRow::new(run)).collect::<Result<Vec<_>, _>>()?;
    sqlx::query(sql::RUN_INSERT).bind(rows).execute(&mut *conn).await?;
    payloads(conn, runs).await?;
    budget::open(conn, runs.iter().map(|(run, _)| *run)).await
}

async fn payloads(conn: &mut PgConnection, runs: &[(&Run, StartedWith<'_>)]) -> Result<(), Fault> {
    let (mut ids, mut data, mut contexts) = (Vec::new(), Vec::new(), Vec::new());
    let (mut authorizations, mut actors, mut traces) = (Vec::new(), Vec::new(), Vec::new());
    for (run, with) in runs {
        ids.push(run.id.key());
        data.push(with.data);
        contexts.push(with.context);
        authorizations.push(json_opt(with.authorization)?);
        actors.push(json_opt(actor_of(with.authorization).as_ref())?);
        traces.push(json_opt(with.trace)?);
    }
    sqlx::query(sql::RUN_PAYLOAD_WRITE)
        .bind(ids)
        .bind(data)
        .bind(contexts)
        .bind(authorizations)
        .bind(actors)
        .bind(traces)
        .execute(conn)
        .await?;
    Ok(())
}
