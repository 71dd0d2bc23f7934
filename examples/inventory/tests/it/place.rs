//! Where the shop of a test has its store: a file in a folder of its own.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use surefoot::sqlite::SqliteOptions;
use surefoot_inventory::store::AppStore;
use tempfile::TempDir;

/// A folder; removed with it.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) async fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    pub(crate) async fn open(&self, clock: Arc<AtomicI64>) -> AppStore {
        let path = self.folder.path().join("inventory.db");
        AppStore::open_with(SqliteOptions::new(path).clock_offset(clock)).await.unwrap()
    }
}
