//! Stores in files, for what the matrix and the counting tests run on.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use surefoot_kernel_core::{Micros, StoreError};
use surefoot_store_sqlite::sqlx::{self, Connection, Row, SqliteConnection};
use surefoot_store_sqlite::{SqliteOptions, SqliteStore, SqliteTx};
use surefoot_testkit::suite::{StoreFactory, Tamper, Tampered};
use tempfile::TempDir;

/// A file in a folder of its own, and the offset of its clock.
pub(crate) struct TempFile {
    folder: TempDir,
    offset: Arc<AtomicI64>,
}

impl TempFile {
    fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }
}

async fn raw(path: &std::path::Path) -> SqliteConnection {
    SqliteConnection::connect(path.to_str().unwrap()).await.unwrap()
}

impl StoreFactory for TempFile {
    type Store = SqliteStore;

    async fn fresh() -> Self {
        let file =
            Self { folder: tempfile::tempdir().unwrap(), offset: Arc::new(AtomicI64::new(0)) };
        drop(file.open().await);
        let table = "CREATE TABLE app_table (key TEXT PRIMARY KEY, value TEXT NOT NULL)";
        sqlx::query(table).execute(&mut raw(&file.path()).await).await.unwrap();
        file
    }

    async fn open(&self) -> SqliteStore {
        let options = SqliteOptions::new(self.path()).clock_offset(self.offset.clone());
        SqliteStore::open_with(options.readers(1)).await.unwrap()
    }

    async fn pass_time(&self, span: Micros) {
        self.offset.fetch_add(span.get(), Ordering::SeqCst);
    }

    async fn turn_back(&self, span: Micros) {
        self.offset.fetch_sub(span.get(), Ordering::SeqCst);
    }

    async fn write_row(tx: &mut SqliteTx, key: &str, value: &str) -> Result<(), StoreError> {
        let statement = "INSERT INTO app_table (key, value) VALUES (?, ?)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value";
        let written = sqlx::query(statement).bind(key).bind(value).execute(tx).await;
        written.map(drop).map_err(|error| StoreError::Refused(Box::new(error)))
    }

    async fn read_row(store: &SqliteStore, key: &str) -> Option<String> {
        let mut conn = raw(store.path()).await;
        let query = sqlx::query("SELECT value FROM app_table WHERE key = ?").bind(key);
        query.fetch_optional(&mut conn).await.unwrap().map(|row| row.get("value"))
    }

    async fn tamper(&self, _: Tamper) -> Tampered {
        Tampered::Unsupported
    }
}
