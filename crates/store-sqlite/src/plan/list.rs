//! Reads of versions and workflows.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::{
    App, ScheduleRow, Schedules, Scope, StoredVersion, Timestamp, VersionId, WorkflowKey,
    WorkflowRow,
};

use crate::budget::read_caps;
use crate::error::Fault;
use crate::event::emit::{sixteen, unreadable};
use crate::sql;

pub(crate) fn read_count(row: &SqliteRow, column: &str) -> Result<u64, Fault> {
    let number: i64 = row.try_get(column)?;
    u64::try_from(number).map_err(|_| unreadable())
}

fn read_version(row: &SqliteRow) -> Result<StoredVersion, Fault> {
    let footprint: &str = row.try_get("footprint")?;
    Ok(StoredVersion {
        version: VersionId::from_bytes(sixteen(row, "id")?),
        app: App::from(row.try_get::<String, _>("app")?),
        scope: Scope::from(row.try_get::<String, _>("scope")?),
        workflow: WorkflowKey::from(row.try_get::<String, _>("workflow")?),
        revision: read_count(row, "revision")?,
        created_at: Timestamp::from_micros(row.try_get("created_at")?),
        author: row.try_get("author")?,
        active: row.try_get("active")?,
        plan_hash: row.try_get("plan_hash")?,
        footprint: from_stored(footprint).map_err(|_| unreadable())?,
        budget: read_caps(row.try_get("budget")?)?,
        plan: row.try_get("plan")?,
        source: row.try_get("source")?,
    })
}

pub(crate) async fn version(
    conn: &mut SqliteConnection,
    version: VersionId,
) -> Result<Option<StoredVersion>, Fault> {
    let query = sqlx::query(sql::VERSION_BY_ID).bind(version.to_bytes().to_vec());
    query.fetch_optional(conn).await?.as_ref().map(read_version).transpose()
}

pub(crate) async fn versions(
    conn: &mut SqliteConnection,
    app: &App,
    scope: &Scope,
    workflow: &WorkflowKey,
) -> Result<Vec<StoredVersion>, Fault> {
    let query = sqlx::query(sql::VERSION_LIST).bind(app.as_str()).bind(scope.as_str());
    let rows = query.bind(workflow.as_str()).fetch_all(conn).await?;
    rows.iter().map(read_version).collect()
}

pub(crate) async fn workflows(
    conn: &mut SqliteConnection,
    app: &App,
    scope: Option<&Scope>,
) -> Result<Vec<WorkflowRow>, Fault> {
    let query = sqlx::query(sql::WORKFLOW_LIST).bind(app.as_str());
    let rows = query.bind(scope.map(Scope::as_str)).fetch_all(&mut *conn).await?;
    let mut workflows = Vec::with_capacity(rows.len());
    for row in &rows {
        let no: i64 = row.try_get("no")?;
        let query = sqlx::query(sql::WORKFLOW_ACTIVATIONS).bind(no);
        let activations = query.fetch_all(&mut *conn).await?;
        let activations = activations.iter();
        let activations = activations
            .map(|row| Ok((row.try_get("key")?, row.try_get("event")?, row.try_get("enabled")?)));
        let active: Option<i64> = row.try_get("active")?;
        workflows.push(WorkflowRow {
            scope: Scope::from(row.try_get::<String, _>("scope")?),
            workflow: WorkflowKey::from(row.try_get::<String, _>("key")?),
            active: active.map(i64::cast_unsigned),
            latest: read_count(row, "latest")?,
            activations: activations.collect::<Result<_, Fault>>()?,
        });
    }
    Ok(workflows)
}

pub(crate) async fn schedules(
    conn: &mut SqliteConnection,
    app: &App,
    now: Timestamp,
) -> Result<Schedules, Fault> {
    let query = sqlx::query(sql::WORKFLOW_SCHEDULES).bind(app.as_str());
    let rows = query.fetch_all(conn).await?;
    let rows: Result<Vec<ScheduleRow>, Fault> = rows.iter().map(read_schedule).collect();
    Ok(Schedules { now, rows: rows? })
}

fn read_schedule(row: &SqliteRow) -> Result<ScheduleRow, Fault> {
    let schedule: &str = row.try_get("schedule")?;
    Ok(ScheduleRow {
        scope: Scope::from(row.try_get::<String, _>("scope")?),
        workflow: WorkflowKey::from(row.try_get::<String, _>("workflow")?),
        key: row.try_get("key")?,
        schedule: from_stored(schedule).map_err(|_| unreadable())?,
        since: Timestamp::from_micros(row.try_get("since")?),
        enabled: row.try_get("enabled")?,
    })
}
