//! Scopes and workflows that are being deleted.

use sqlx::{Row, SqliteConnection};

use surefoot_kernel_core::{App, Place, Scope, WorkflowKey};

use crate::error::Fault;
use crate::sql;

/// What is being deleted, if the place is that or inside it.
pub(crate) async fn being_deleted(
    conn: &mut SqliteConnection,
    app: &str,
    scope: &str,
    workflow: Option<&str>,
) -> Result<Option<Place>, Fault> {
    let query = sqlx::query(sql::RETENTION_DELETING).bind(app).bind(scope);
    let row = query.bind(workflow.unwrap_or("")).fetch_optional(conn).await?;
    row.map(|row| Ok(place_of(app, scope, row.try_get("workflow")?))).transpose()
}

/// A workflow, or a whole scope if that is empty.
pub(crate) fn place_of(app: &str, scope: &str, workflow: String) -> Place {
    let workflow = (!workflow.is_empty()).then(|| WorkflowKey::from(workflow));
    Place { app: App::from(app), scope: Scope::from(scope), workflow }
}

/// The three columns that name a place.
pub(super) fn names(place: &Place) -> (&str, &str, &str) {
    let workflow = place.workflow.as_ref().map_or("", WorkflowKey::as_str);
    (place.app.as_str(), place.scope.as_str(), workflow)
}
