//! Scopes and workflows that are being deleted.

use sqlx::{PgConnection, Row};

use surefoot_kernel_core::{App, Place, Scope, WorkflowKey};

use crate::error::Fault;
use crate::sql;

/// What is being deleted, if the place is that or inside it. If nothing is, no deletion there begins before the end of
/// the transaction: whoever begins one takes the same lock alone.
pub(crate) async fn being_deleted(
    conn: &mut PgConnection,
    app: &str,
    scope: &str,
    workflow: Option<&str>,
) -> Result<Option<Place>, Fault> {
    let share = sqlx::query(sql::RETENTION_PLACE_SHARE).bind(lock_of(app, scope));
    share.execute(&mut *conn).await?;
    let query = sqlx::query(sql::RETENTION_DELETING).bind(app).bind(scope);
    let row = query.bind(workflow.unwrap_or("")).fetch_optional(conn).await?;
    row.map(|row| {
        let workflow: String = row.try_get("workflow")?;
        let workflow = (!workflow.is_empty()).then(|| WorkflowKey::from(workflow));
        Ok(Place { app: App::from(app), scope: Scope::from(scope), workflow })
    })
    .transpose()
}

/// The second number of the advisory lock of a scope.
pub(super) fn lock_of(app: &str, scope: &str) -> i32 {
    crate::run::lock::hash(&[app, scope]).cast_signed()
}
