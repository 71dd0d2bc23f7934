//! Fences: a run's row held on the transaction of its own action.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::{Connection, Row, SqliteConnection};

use surefoot_kernel_core::{BoxFuture, Fence, FenceError, RunId, StoreError};

use crate::error::store_error;
use crate::sql;
use crate::transaction::SqliteTx;

/// Which runs are held by fences of this process, with the number of fences on each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fences(Arc<Mutex<HashMap<RunId, usize>>>);

impl Fences {
    /// Whoever holds the fence may be waiting for the answer of a renewal: it never waits for the fence.
    pub(crate) fn holds(&self, run: RunId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&run)
    }

    fn hold(&self, run: RunId) -> Held {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(run).or_default() += 1;
        Held { fences: self.clone(), run }
    }
}

/// One held fence; let go when its transaction ends.
struct Held {
    fences: Fences,
    run: RunId,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = self.fences.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = held.get_mut(&self.run) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                held.remove(&self.run);
            }
        }
    }
}

pub(crate) struct SqliteFence {
    pub(crate) run: RunId,
    pub(crate) generation: u64,
    pub(crate) fences: Fences,
}

impl Fence<SqliteTx> for SqliteFence {
    fn hold<'a>(&'a self, tx: &'a mut SqliteTx) -> BoxFuture<'a, Result<(), FenceError>> {
        Box::pin(self.hold_on(tx))
    }
}

impl SqliteFence {
    /// The statement that checks also takes the file's write lock, so that nothing changes before the transaction
    /// ends. It writes nothing: it sets a column to itself, and only where the fence holds.
    async fn hold_on(&self, tx: &mut SqliteConnection) -> Result<(), FenceError> {
        if !tx.is_in_transaction() {
            return Err(FenceError::Store(StoreError::NotInTransaction));
        }
        let generation = crate::run::row::int(self.generation);
        let held = sqlx::query(sql::RUN_FENCE)
            .bind(self.run.to_bytes().to_vec())
            .bind(generation)
            .execute(&mut *tx)
            .await
            .map_err(store_error)?;
        if held.rows_affected() == 1 {
            return self.note(tx).await;
        }
        let row = sqlx::query(sql::RUN_FENCED).bind(self.run.to_bytes().to_vec());
        let row = row.fetch_optional(tx).await.map_err(store_error)?;
        let Some(row) = row else { return Err(FenceError::LeaseLost) };
        let is_mine = row.try_get::<i64, _>("generation").map_err(store_error)? == generation
            && row.try_get::<&str, _>("state").map_err(store_error)? == "running";
        Err(if is_mine { FenceError::Canceled } else { FenceError::LeaseLost })
    }

    /// Remembers the fence until SQLite says that the transaction ended, or its connection is closed.
    async fn note(&self, tx: &mut SqliteConnection) -> Result<(), FenceError> {
        let held = Arc::new(Mutex::new(vec![self.fences.hold(self.run)]));
        let let_go = |held: &Mutex<Vec<Held>>| {
            held.lock().unwrap_or_else(PoisonError::into_inner).clear();
        };
        let committed = held.clone();
        let mut handle = tx.lock_handle().await.map_err(store_error)?;
        handle.set_commit_hook(move || {
            let_go(&committed);
            true
        });
        handle.set_rollback_hook(move || let_go(&held));
        Ok(())
    }
}
