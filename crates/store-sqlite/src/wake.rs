//! Notice of commits: by a look at the file's change counter while somebody waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::Row;

use surefoot_kernel_core::{StoreError, WakeBus};

use crate::error::{store_error, unavailable};
use crate::pool::Pool;
use crate::sql;

/// How often the counter is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a look that failed is not repeated; the worker's scan covers the time.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Hears that some process committed to the file, whatever it was: SQLite has no messages. Nothing is read while
/// nobody listens.
#[derive(Debug, Clone)]
pub struct SqliteWake {
    watch: Arc<Watch>,
    /// What each listener saw when it heard last.
    seen: Arc<Mutex<HashMap<String, i64>>>,
}

/// One connection that only ever reads the counter: the counter tells a connection of the commits of all others.
#[derive(Debug)]
pub(crate) struct Watch {
    pool: Arc<Pool>,
}

impl Watch {
    pub(crate) fn new(pool: Arc<Pool>) -> Arc<Self> {
        Arc::new(Self { pool })
    }

    /// In a task of its own: a listener that is dropped in the middle must not cost the connection, since counters
    /// of two connections cannot be compared.
    async fn version(&self) -> Result<i64, StoreError> {
        let pool = self.pool.clone();
        let look = tokio::spawn(async move {
            let mut conn = pool.borrow().await?;
            let row = sqlx::query(sql::META_DATA_VERSION).fetch_one(&mut *conn).await;
            let version = row.and_then(|row| row.try_get(0)).map_err(store_error)?;
            conn.give_back();
            Ok(version)
        });
        look.await.unwrap_or_else(|_| Err(unavailable("the look at the counter was given up")))
    }

    /// Completes when the counter is not `seen` any more; with nothing seen yet, when it next changes.
    pub(crate) async fn changed(&self, mut seen: Option<i64>) -> i64 {
        loop {
            match self.version().await {
                Ok(version) if seen.is_some_and(|seen| seen != version) => return version,
                Ok(version) => {
                    seen = Some(version);
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                Err(error) => {
                    tracing::debug!(%error, "the store's change counter cannot be read");
                    tokio::time::sleep(LOOK_AGAIN_AFTER).await;
                }
            }
        }
    }
}

impl SqliteWake {
    pub(crate) fn new(watch: Arc<Watch>) -> Self {
        Self { watch, seen: Arc::default() }
    }
}

#[async_trait]
impl WakeBus for SqliteWake {
    /// Nothing to do: the commit itself is the announcement.
    async fn announce(&self, _app: &str) {}

    /// Completes also when the commit came between two calls; then the first look already says so.
    async fn heard(&self, app: &str) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(app).copied();
        let version = self.watch.changed(seen).await;
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(app.to_owned(), version);
    }
}
