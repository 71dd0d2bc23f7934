//! Scopes and workflows that are being deleted.

use std::time::{Duration, Instant};

use sqlx::{PgConnection, Row};

use surefoot_kernel_core::{App, Place, Scope, WorkflowKey};

use crate::error::{Fault, unavailable};
use crate::sql;

/// How long a deletion waits, before it begins, for transactions that record into the place.
const CLOSE_WAIT: Duration = Duration::from_secs(10);
/// How long others may record between two tries.
const CLOSE_PAUSE: Duration = Duration::from_millis(20);

/// What is being deleted, if the place is that or inside it. If it is not, no deletion of it begins before this
/// transaction has ended.
pub(crate) async fn being_deleted(
    conn: &mut PgConnection,
    app: &str,
    scope: &str,
    workflow: Option<&str>,
) -> Result<Option<Place>, Fault> {
    let query = sqlx::query(sql::RETENTION_DELETING).bind(stripe(app, scope)).bind(app).bind(scope);
    let row = query.bind(workflow.unwrap_or("")).fetch_one(conn).await?;
    let deleting: Option<String> = row.try_get("workflow")?;
    Ok(deleting.map(|workflow| place_of(app, scope, workflow)))
}

/// The place that a mark is about; an empty workflow is the whole scope.
pub(crate) fn place_of(app: &str, scope: &str, workflow: String) -> Place {
    let workflow = (!workflow.is_empty()).then(|| WorkflowKey::from(workflow));
    Place { app: App::from(app), scope: Scope::from(scope), workflow }
}

/// Waits until nobody records into a scope who has not heard of a mark that this transaction is about to set.
///
/// It tries for a moment and lets others go on in between, since who waits for this lock keeps them waiting as well.
pub(super) async fn close(conn: &mut PgConnection, app: &str, scope: &str) -> Result<(), Fault> {
    let began = Instant::now();
    loop {
        let query = sqlx::query(sql::RETENTION_CLOSE_PLACE).bind(stripe(app, scope));
        if query.fetch_one(&mut *conn).await?.try_get("closed")? {
            return Ok(());
        }
        if began.elapsed() >= CLOSE_WAIT {
            return Err(Fault(unavailable(
                "a transaction of the application records into the scope: try again when it has ended",
            )));
        }
        tokio::time::sleep(CLOSE_PAUSE).await;
    }
}

/// Which lock a scope has: the same in every process.
pub(crate) fn stripe(app: &str, scope: &str) -> i32 {
    crate::run::lock::hash(&[app, scope]).cast_signed()
}

/// The three columns that name a place.
pub(super) fn names(place: &Place) -> (&str, &str, &str) {
    let workflow = place.workflow.as_ref().map_or("", WorkflowKey::as_str);
    (place.app.as_str(), place.scope.as_str(), workflow)
}
