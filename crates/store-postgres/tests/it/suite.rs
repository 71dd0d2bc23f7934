//! The rules that every store keeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{Postgres, Row};
use surefoot_kernel_core::{Micros, StoreError, TxStore};
use surefoot_store_postgres::{PostgresStore, PostgresTx, sqlx};
use surefoot_testkit::suite::{StoreFactory, Tamper, Tampered};
use uuid::Uuid;

use crate::database::{Database, Server};

surefoot_testkit::store_suite!(postgres, crate::suite::OwnDatabase<{ crate::suite::NEWEST }>);
surefoot_testkit::store_suite!(postgres_15, crate::suite::OwnDatabase<{ crate::suite::OLDEST }>);
surefoot_testkit::task_suite!(postgres_tasks, crate::suite::OwnDatabase<{ crate::suite::NEWEST }>);
surefoot_testkit::task_suite!(
    postgres_15_tasks,
    crate::suite::OwnDatabase<{ crate::suite::OLDEST }>
);

pub(crate) const NEWEST: bool = true;
pub(crate) const OLDEST: bool = false;

/// A database of its own, on the newest or the oldest server, and the offset of its clock.
pub(crate) struct OwnDatabase<const IS_NEWEST: bool> {
    database: Database,
    offset: Arc<AtomicI64>,
}

impl<const IS_NEWEST: bool> OwnDatabase<IS_NEWEST> {
    /// Whether it changed a row.
    async fn change<'q>(
        &self,
        statement: Query<'q, Postgres, PgArguments>,
    ) -> Result<bool, sqlx::Error> {
        let mut conn = self.database.raw().await;
        Ok(statement.execute(&mut conn).await?.rows_affected() > 0)
    }
}

impl<const IS_NEWEST: bool> StoreFactory for OwnDatabase<IS_NEWEST> {
    type Store = PostgresStore;

    async fn fresh() -> Self {
        let server = if IS_NEWEST { Server::Newest } else { Server::Oldest };
        let database = Database::on(server).await;
        let fresh = Self { database, offset: Arc::new(AtomicI64::new(0)) };
        let table = "CREATE TABLE app_table (key text PRIMARY KEY, value text NOT NULL)";
        fresh.change(sqlx::query(table)).await.unwrap();
        fresh
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
        let statement = "INSERT INTO app_table (key, value) VALUES ($1, $2)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value";
        let written = sqlx::query(statement).bind(key).bind(value).execute(tx).await;
        written.map(drop).map_err(|error| {
            // What is wrong with the row is the caller's; a line that is gone, or a full disk, is nobody's.
            let code = error.as_database_error().and_then(|error| error.code());
            match code.is_some_and(|code| code.starts_with("22") || code.starts_with("23")) {
                true => StoreError::Refused(Box::new(error)),
                false => StoreError::Unavailable(Box::new(error)),
            }
        })
    }

    async fn read_row(store: &PostgresStore, key: &str) -> Option<String> {
        let mut tx = store.begin().await.unwrap();
        let query = sqlx::query("SELECT value FROM app_table WHERE key = $1").bind(key);
        let row = query.fetch_optional(&mut *tx).await.unwrap();
        tx.rollback().await;
        row.map(|row| row.get("value"))
    }

    async fn tamper(&self, tamper: Tamper) -> Tampered {
        let changed = match tamper {
            Tamper::UpdateVersion(version) => {
                let query = sqlx::query("UPDATE surefoot.version SET plan = '{}' WHERE id = $1");
                self.change(query.bind(Uuid::from_bytes(version.to_bytes()))).await
            }
            Tamper::BreakDispatch(event) => {
                let statement = r#"UPDATE surefoot.delivery
                    SET "authorization" = 'broken' || coalesce("authorization", '')
                    WHERE event = $1"#;
                let query = sqlx::query(statement);
                self.change(query.bind(Uuid::from_bytes(event.to_bytes()))).await
            }
            Tamper::MendDispatch(event) => {
                let statement = r#"UPDATE surefoot.delivery
                    SET "authorization" = nullif(substr("authorization", 7), '')
                    WHERE event = $1"#;
                let query = sqlx::query(statement);
                self.change(query.bind(Uuid::from_bytes(event.to_bytes()))).await
            }
            Tamper::DisableActivation { app, scope, workflow, activation } => {
                let statement =
                    "UPDATE surefoot.activation SET enabled = false WHERE key = $1 AND workflow =
                    (SELECT no FROM surefoot.workflow WHERE app = $2 AND scope = $3 AND key = $4)";
                let query = sqlx::query(statement).bind(activation);
                let query = query.bind(app.to_string()).bind(scope.to_string());
                self.change(query.bind(workflow.to_string())).await
            }
            Tamper::MakeDryRun(run) => {
                let query = sqlx::query("UPDATE surefoot.run SET mode = 'dry_run' WHERE id = $1");
                self.change(query.bind(Uuid::from_bytes(run.to_bytes()))).await
            }
            Tamper::MakeChild { run, parent } => {
                let statement =
                    "UPDATE surefoot.run SET root = $2, parent_run = $2, parent_step = 'steps.0',
                    parent_depth = 1, parent_index =
                        (SELECT count(*) FROM surefoot.run AS sibling WHERE sibling.parent_run = $2)
                    WHERE id = $1";
                let query = sqlx::query(statement).bind(Uuid::from_bytes(run.to_bytes()));
                self.change(query.bind(Uuid::from_bytes(parent.to_bytes()))).await
            }
            Tamper::EndChildrenUnseen(parent) => {
                let statement =
                    "UPDATE surefoot.child_group SET live = 0, held = 0 WHERE parent = $1";
                let query = sqlx::query(statement);
                self.change(query.bind(Uuid::from_bytes(parent.to_bytes()))).await
            }
            Tamper::ReplaceFacts { run, seq, facts } => {
                let statement =
                    "UPDATE surefoot.journal SET facts = $3 WHERE run = $1 AND seq = $2";
                let query = sqlx::query(statement).bind(Uuid::from_bytes(run.to_bytes()));
                self.change(query.bind(i64::try_from(seq).unwrap()).bind(facts)).await
            }
            Tamper::RemoveFacts { run, seq } => {
                let statement = "DELETE FROM surefoot.journal WHERE run = $1 AND seq = $2";
                let query = sqlx::query(statement).bind(Uuid::from_bytes(run.to_bytes()));
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
