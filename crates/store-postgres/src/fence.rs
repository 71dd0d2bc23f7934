//! Fences: a run's row held on the transaction of its own action.

use sqlx::{Connection, PgConnection, Row};

use surefoot_kernel_core::{BoxFuture, Fence, FenceError, RunId, StoreError};

use crate::error::store_error;
use crate::keys::Key;
use crate::run::row::int;
use crate::sql;
use crate::transaction::PostgresTx;

pub(crate) struct PostgresFence {
    pub(crate) run: RunId,
    pub(crate) generation: u64,
}

impl Fence<PostgresTx> for PostgresFence {
    fn hold<'a>(&'a self, tx: &'a mut PostgresTx) -> BoxFuture<'a, Result<(), FenceError>> {
        Box::pin(self.hold_on(tx))
    }
}

impl PostgresFence {
    /// The statement that checks also locks the row, and only where the fence holds: whatever it asks for is never true
    /// again once it was not, so that it may be judged before the lock is waited for.
    async fn hold_on(&self, tx: &mut PgConnection) -> Result<(), FenceError> {
        if !tx.is_in_transaction() {
            return Err(FenceError::Store(StoreError::NotInTransaction));
        }
        let generation = int(self.generation);
        let held = sqlx::query(sql::RUN_FENCE).bind(self.run.key()).bind(generation);
        if held.fetch_optional(&mut *tx).await.map_err(store_error)?.is_some() {
            return Ok(());
        }
        let row = sqlx::query(sql::RUN_FENCED).bind(self.run.key());
        let row = row.fetch_optional(tx).await.map_err(store_error)?;
        let Some(row) = row else { return Err(FenceError::LeaseLost) };
        let is_mine = row.try_get::<i64, _>("generation").map_err(store_error)? == generation
            && row.try_get::<&str, _>("state").map_err(store_error)? == "running";
        Err(if is_mine { FenceError::Canceled } else { FenceError::LeaseLost })
    }
}
