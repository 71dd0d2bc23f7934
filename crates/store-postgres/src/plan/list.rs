//! Reads of versions and workflows.

use std::collections::HashMap;

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::{
    App, ScheduleRow, Schedules, Scope, StoredVersion, Timestamp, VersionId, WorkflowKey,
    WorkflowRow,
};

use crate::budget::read_caps;
use crate::error::{Fault, unreadable};
use crate::keys::Key;
use crate::sql;

/// What one activation of a workflow says: its key, its event, and whether it is enabled.
type Switched = (String, String, bool);

pub(crate) fn read_count(row: &PgRow, column: &str) -> Result<u64, Fault> {
    let number: i64 = row.try_get(column)?;
    u64::try_from(number).map_err(|_| unreadable())
}

/// A number that fits into 32 bits when the kernel writes it.
pub(crate) fn read_small(row: &PgRow, column: &str) -> Result<u32, Fault> {
    let number: i64 = row.try_get(column)?;
    u32::try_from(number).map_err(|_| unreadable())
}

pub(crate) fn read_time(row: &PgRow, column: &str) -> Result<Timestamp, Fault> {
    Ok(Timestamp::from_micros(row.try_get(column)?))
}

/// An id of a column outside of runs.
pub(crate) fn read_key<K: Key>(row: &PgRow, column: &str) -> Result<K, Fault> {
    Ok(K::of_key(row.try_get::<Uuid, _>(column)?))
}

/// JSON of a column outside of runs.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(
    row: &PgRow,
    column: &str,
) -> Result<Option<T>, Fault> {
    let text: Option<&str> = row.try_get(column)?;
    text.map(|text| from_stored(text).map_err(|_| unreadable())).transpose()
}

fn read_version(row: &PgRow) -> Result<StoredVersion, Fault> {
    Ok(StoredVersion {
        version: read_key::<VersionId>(row, "id")?,
        app: App::from(row.try_get::<String, _>("app")?),
        scope: Scope::from(row.try_get::<String, _>("scope")?),
        workflow: WorkflowKey::from(row.try_get::<String, _>("workflow")?),
        revision: read_count(row, "revision")?,
        created_at: read_time(row, "created_at")?,
        author: row.try_get("author")?,
        active: row.try_get("active")?,
        plan_hash: row.try_get("plan_hash")?,
        footprint: read_json(row, "footprint")?.ok_or_else(unreadable)?,
        budget: read_caps(row.try_get("budget")?)?,
        plan: row.try_get("plan")?,
        source: row.try_get("source")?,
    })
}

pub(crate) async fn version(
    conn: &mut PgConnection,
    version: VersionId,
) -> Result<Option<StoredVersion>, Fault> {
    let query = sqlx::query(sql::VERSION_BY_ID).bind(version.key());
    query.fetch_optional(conn).await?.as_ref().map(read_version).transpose()
}

pub(crate) async fn versions(
    conn: &mut PgConnection,
    app: &App,
    scope: &Scope,
    workflow: &WorkflowKey,
) -> Result<Vec<StoredVersion>, Fault> {
    let query = sqlx::query(sql::VERSION_LIST).bind(app.as_str()).bind(scope.as_str());
    let rows = query.bind(workflow.as_str()).fetch_all(conn).await?;
    rows.iter().map(read_version).collect()
}

pub(crate) async fn workflows(
    conn: &mut PgConnection,
    app: &App,
    scope: Option<&Scope>,
) -> Result<Vec<WorkflowRow>, Fault> {
    let query = sqlx::query(sql::WORKFLOW_LIST).bind(app.as_str());
    let rows = query.bind(scope.map(Scope::as_str)).fetch_all(&mut *conn).await?;
    let numbers =
        rows.iter().map(|row| Ok(row.try_get("no")?)).collect::<Result<Vec<i64>, Fault>>();
    let mut activations = activations(conn, numbers?).await?;
    rows.iter()
        .map(|row| {
            let active: Option<i64> = row.try_get("active")?;
            let latest: Option<i64> = row.try_get("latest")?;
            Ok(WorkflowRow {
                scope: Scope::from(row.try_get::<String, _>("scope")?),
                workflow: WorkflowKey::from(row.try_get::<String, _>("key")?),
                active: active.map(i64::cast_unsigned),
                latest: latest.unwrap_or_default().cast_unsigned(),
                activations: activations.remove(&row.try_get("no")?).unwrap_or_default(),
            })
        })
        .collect()
}

async fn activations(
    conn: &mut PgConnection,
    workflows: Vec<i64>,
) -> Result<HashMap<i64, Vec<Switched>>, Fault> {
    let rows = sqlx::query(sql::WORKFLOW_ACTIVATIONS).bind(workflows).fetch_all(conn).await?;
    let mut activations: HashMap<i64, Vec<Switched>> = HashMap::new();
    for row in &rows {
        let activation = (row.try_get("key")?, row.try_get("event")?, row.try_get("enabled")?);
        activations.entry(row.try_get("workflow")?).or_default().push(activation);
    }
    Ok(activations)
}

pub(crate) async fn schedules(
    conn: &mut PgConnection,
    app: &App,
    now: Timestamp,
) -> Result<Schedules, Fault> {
    let query = sqlx::query(sql::WORKFLOW_SCHEDULES).bind(app.as_str());
    let rows = query.fetch_all(conn).await?;
    let rows: Result<Vec<ScheduleRow>, Fault> = rows.iter().map(read_schedule).collect();
    Ok(Schedules { now, rows: rows? })
}

fn read_schedule(row: &PgRow) -> Result<ScheduleRow, Fault> {
    Ok(ScheduleRow {
        scope: Scope::from(row.try_get::<String, _>("scope")?),
        workflow: WorkflowKey::from(row.try_get::<String, _>("workflow")?),
        key: row.try_get("key")?,
        schedule: read_json(row, "schedule")?.ok_or_else(unreadable)?,
        since: read_time(row, "since")?,
        enabled: row.try_get("enabled")?,
    })
}
