//! A shop of its own for each test: a store in a temporary folder, with the application's tables.

use std::sync::Arc;

use surefoot::prelude::*;
use surefoot::sqlite::SqliteStore;
use surefoot_inventory::database::create_tables;
use tempfile::TempDir;

#[derive(Clone)]
pub(crate) struct Shop {
    pub(crate) store: SqliteStore,
    _folder: Arc<TempDir>,
}

pub(crate) async fn open() -> Shop {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(folder.path().join("inventory.db")).await.unwrap();
    create_tables(&store).await.unwrap();
    Shop { store, _folder: Arc::new(folder) }
}

/// The worker holds the run.
pub(crate) struct Always;

/// Another worker has taken the run over.
pub(crate) struct Never;

impl Always {
    pub(crate) fn shared() -> SharedFence<SqliteTx> {
        Arc::new(Self)
    }
}

impl Never {
    pub(crate) fn shared() -> SharedFence<SqliteTx> {
        Arc::new(Self)
    }
}

impl Fence<SqliteTx> for Always {
    fn hold<'a>(&'a self, _: &'a mut SqliteTx) -> BoxFuture<'a, Result<(), FenceError>> {
        Box::pin(async { Ok(()) })
    }
}

impl Fence<SqliteTx> for Never {
    fn hold<'a>(&'a self, _: &'a mut SqliteTx) -> BoxFuture<'a, Result<(), FenceError>> {
        Box::pin(async { Err(FenceError::LeaseLost) })
    }
}
