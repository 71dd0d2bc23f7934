//! Trees of runs, which are deleted as a whole.

use sqlx::PgConnection;

use surefoot_kernel_core::RunId;

use crate::error::Fault;
use crate::keys::Key;
use crate::sql;

/// Whether the tree of a run is being deleted. The caller has the run locked.
pub(crate) async fn is_doomed(conn: &mut PgConnection, run: RunId) -> Result<bool, Fault> {
    let query = sqlx::query(sql::RETENTION_IS_DOOMED).bind(run.key());
    Ok(query.fetch_optional(conn).await?.is_some())
}
