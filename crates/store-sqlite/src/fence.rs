//! Fences: a run's row held on the transaction of its own action.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sqlx::{Connection, Row, SqliteConnection};

use surefoot_kernel_core::{BoxFuture, Fence, FenceError, RunId, StoreError};

use crate::error::store_error;
use crate::sql;
use crate::transaction::SqliteTx;

/// Which runs are held by fences of this process, by the connection that holds them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fences(Arc<Mutex<HashMap<Place, Vec<RunId>>>>);

/// Where a connection stands in memory: what tells it from others while it is in a transaction.
type Place = usize;

/// Where a connection stands.
pub(crate) fn place_of(conn: &SqliteConnection) -> usize {
    std::ptr::from_ref(conn).addr()
}

impl Fences {
    fn table(&self) -> MutexGuard<'_, HashMap<Place, Vec<RunId>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever holds the fence may be waiting for the answer of a renewal: it never waits for the fence.
    pub(crate) fn holds(&self, run: RunId) -> bool {
        self.table().values().any(|runs| runs.contains(&run))
    }

    /// The connection's transaction ended, or the connection did.
    pub(crate) fn let_go(&self, place: usize) {
        self.table().remove(&place);
    }
}

/// What SQLite calls when a transaction ends; lets go as well when its connection is closed.
struct Hook {
    fences: Fences,
    place: Place,
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.fences.let_go(self.place);
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

    /// Remembers the fence until SQLite says that the transaction ended, or its connection is closed. A connection
    /// has one hook of each kind: those that the application may have set on it are replaced.
    async fn note(&self, tx: &mut SqliteConnection) -> Result<(), FenceError> {
        let place = place_of(tx);
        let is_known = self.fences.table().contains_key(&place);
        if !is_known {
            let committed = Arc::new(Hook { fences: self.fences.clone(), place });
            let rolled_back = committed.clone();
            let mut handle = tx.lock_handle().await.map_err(store_error)?;
            handle.set_commit_hook(move || {
                committed.fences.let_go(committed.place);
                true
            });
            handle.set_rollback_hook(move || rolled_back.fences.let_go(rolled_back.place));
        }
        self.fences.table().entry(place).or_default().push(self.run);
        Ok(())
    }
}
