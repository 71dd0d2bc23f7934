//! The rules that every store keeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use sqlx::sqlite::SqliteArguments;
use sqlx::{Row, Sqlite};
use surefoot_kernel_core::{Micros, StoreError};
use surefoot_store_sqlite::{SqliteOptions, SqliteStore, SqliteTx, sqlx};
use surefoot_testkit::suite::{StoreFactory, Tamper, Tampered};
use tempfile::TempDir;

use crate::schema::raw;

surefoot_testkit::store_suite!(sqlite, crate::suite::TempFile);
surefoot_testkit::task_suite!(sqlite_tasks, crate::suite::TempFile);

/// A file in a folder of its own, and the offset of its clock.
pub(crate) struct TempFile {
    folder: TempDir,
    offset: Arc<AtomicI64>,
}

impl TempFile {
    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("store.db")
    }

    /// Whether it changed a row.
    async fn change<'q>(
        &self,
        statement: sqlx::query::Query<'q, Sqlite, SqliteArguments>,
    ) -> Result<bool, sqlx::Error> {
        let mut conn = raw(&self.path()).await;
        Ok(statement.execute(&mut conn).await?.rows_affected() > 0)
    }
}

impl StoreFactory for TempFile {
    type Store = SqliteStore;

    async fn fresh() -> Self {
        let file =
            Self { folder: tempfile::tempdir().unwrap(), offset: Arc::new(AtomicI64::new(0)) };
        drop(file.open().await);
        let table = "CREATE TABLE app_table (key TEXT PRIMARY KEY, value TEXT NOT NULL)";
        file.change(sqlx::query(table)).await.unwrap();
        file
    }

    async fn open(&self) -> SqliteStore {
        let options = SqliteOptions::new(self.path()).clock_offset(self.offset.clone());
        SqliteStore::open_with(options).await.unwrap()
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

    async fn tamper(&self, tamper: Tamper) -> Tampered {
        let changed = match tamper {
            Tamper::UpdateVersion(version) => {
                let query = sqlx::query("UPDATE surefoot_version SET plan = '{}' WHERE id = ?");
                self.change(query.bind(version.to_bytes().to_vec())).await
            }
            Tamper::BreakDispatch(event) => {
                let statement =
                    "UPDATE surefoot_delivery SET authorization = 'broken' || ifnull(authorization, '')
                    WHERE event = (SELECT no FROM surefoot_event WHERE id = ?)";
                self.change(sqlx::query(statement).bind(event.to_bytes().to_vec())).await
            }
            Tamper::MendDispatch(event) => {
                let statement =
                    "UPDATE surefoot_delivery SET authorization = nullif(substr(authorization, 7), '')
                    WHERE event = (SELECT no FROM surefoot_event WHERE id = ?)";
                self.change(sqlx::query(statement).bind(event.to_bytes().to_vec())).await
            }
            Tamper::DisableActivation { app, scope, workflow, activation } => {
                let statement =
                    "UPDATE surefoot_activation SET enabled = 0 WHERE key = ?1 AND workflow =
                    (SELECT no FROM surefoot_workflow WHERE app = ?2 AND scope = ?3 AND key = ?4)";
                let query = sqlx::query(statement).bind(activation);
                let query = query.bind(app.to_string()).bind(scope.to_string());
                self.change(query.bind(workflow.to_string())).await
            }
            Tamper::MakeDryRun(run) => {
                let query = sqlx::query("UPDATE surefoot_run SET mode = 'dry_run' WHERE id = ?");
                self.change(query.bind(run.to_bytes().to_vec())).await
            }
            Tamper::MakeChild { run, parent } => {
                let statement =
                    "UPDATE surefoot_run SET root = ?2, parent_run = ?2, parent_step = 'steps.0',
                    parent_index = no, parent_depth = 1 WHERE id = ?1";
                let query = sqlx::query(statement).bind(run.to_bytes().to_vec());
                self.change(query.bind(parent.to_bytes().to_vec())).await
            }
            Tamper::EndChildrenUnseen(parent) => {
                let query = sqlx::query(
                    "UPDATE surefoot_child_group SET live = 0, held = 0 WHERE parent = ?",
                );
                self.change(query.bind(parent.to_bytes().to_vec())).await
            }
            Tamper::ReplaceFacts { run, seq, facts } => {
                let statement = "UPDATE surefoot_journal SET facts = ?3
                    WHERE run = (SELECT no FROM surefoot_run WHERE id = ?1) AND seq = ?2";
                let query = sqlx::query(statement).bind(run.to_bytes().to_vec());
                self.change(query.bind(i64::try_from(seq).unwrap()).bind(facts)).await
            }
            Tamper::RemoveFacts { run, seq } => {
                let statement = "DELETE FROM surefoot_journal
                    WHERE run = (SELECT no FROM surefoot_run WHERE id = ?1) AND seq = ?2";
                let query = sqlx::query(statement).bind(run.to_bytes().to_vec());
                self.change(query.bind(i64::try_from(seq).unwrap())).await
            }
        };
        match changed {
            Ok(true) => Tampered::Done,
            Ok(false) => Tampered::Unsupported,
            Err(_) => Tampered::Refused,
        }
    }
}
