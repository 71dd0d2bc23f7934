//! Stores of one case each, whose clocks the test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use surefoot_kernel_core::{Micros, StoreError, TxStore};
use surefoot_store_postgres::{PostgresStore, PostgresTx, sqlx as pg};
use surefoot_store_sqlite::{SqliteOptions, SqliteStore, SqliteTx, sqlx};
use surefoot_testkit::suite::{StoreFactory, Tamper, Tampered};
use tempfile::TempDir;

use crate::database::Database;

const TABLE: &str = "CREATE TABLE app_table (key TEXT PRIMARY KEY, value TEXT NOT NULL)";

/// A file of one case.
pub(crate) struct OnFile {
    folder: TempDir,
    offset: Arc<AtomicI64>,
}

impl StoreFactory for OnFile {
    type Store = SqliteStore;

    async fn fresh() -> Self {
        let file = Self { folder: TempDir::new().unwrap(), offset: Arc::default() };
        let store = file.open().await;
        let mut tx = store.begin().await.unwrap();
        sqlx::query(TABLE).execute(&mut *tx).await.unwrap();
        TxStore::commit(&store, tx).await.unwrap();
        file
    }

    async fn open(&self) -> SqliteStore {
        let path = self.folder.path().join("store.db");
        let options = SqliteOptions::new(path).clock_offset(self.offset.clone());
        SqliteStore::open_with(options).await.unwrap()
    }

    async fn pass_time(&self, span: Micros) {
        self.offset.fetch_add(span.get(), Ordering::SeqCst);
    }

    async fn turn_back(&self, span: Micros) {
        self.offset.fetch_sub(span.get(), Ordering::SeqCst);
    }

    async fn write_row(tx: &mut SqliteTx, key: &str, value: &str) -> Result<(), StoreError> {
        let insert = sqlx::query(
            "INSERT INTO app_table (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        );
        let done = insert.bind(key).bind(value).execute(tx).await;
        done.map(drop).map_err(|error| StoreError::Refused(Box::new(error)))
    }

    async fn read_row(store: &SqliteStore, key: &str) -> Option<String> {
        let mut tx = store.begin().await.unwrap();
        let query = sqlx::query_scalar("SELECT value FROM app_table WHERE key = $1");
        query.bind(key).fetch_optional(&mut *tx).await.unwrap()
    }

    async fn tamper(&self, _: Tamper) -> Tampered {
        Tampered::Unsupported
    }
}

/// A database of one case.
pub(crate) struct OnServer {
    database: Database,
    offset: Arc<AtomicI64>,
}

impl StoreFactory for OnServer {
    type Store = PostgresStore;

    async fn fresh() -> Self {
        let server = Self { database: Database::new().await, offset: Arc::default() };
        let store = server.open().await;
        let mut tx = store.begin().await.unwrap();
        pg::query(TABLE).execute(&mut *tx).await.unwrap();
        TxStore::commit(&store, tx).await.unwrap();
        server
    }

    async fn open(&self) -> PostgresStore {
        let options = self.database.options().clock_offset(self.offset.clone());
        PostgresStore::open_with(options).await.unwrap()
    }

    async fn pass_time(&self, span: Micros) {
        self.offset.fetch_add(span.get(), Ordering::SeqCst);
    }

    async fn turn_back(&self, span: Micros) {
        self.offset.fetch_sub(span.get(), Ordering::SeqCst);
    }

    async fn write_row(tx: &mut PostgresTx, key: &str, value: &str) -> Result<(), StoreError> {
        let insert =
            pg::query("INSERT INTO app_table (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING");
        let done = insert.bind(key).bind(value).execute(tx).await;
        done.map(drop).map_err(|error| StoreError::Refused(Box::new(error)))
    }

    async fn read_row(store: &PostgresStore, key: &str) -> Option<String> {
        let mut tx = store.begin().await.unwrap();
        let query = pg::query_scalar("SELECT value FROM app_table WHERE key = $1");
        query.bind(key).fetch_optional(&mut *tx).await.unwrap()
    }

    async fn tamper(&self, _: Tamper) -> Tampered {
        Tampered::Unsupported
    }
}
