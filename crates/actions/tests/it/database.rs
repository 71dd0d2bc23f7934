//! Stores of one test: a file, and a database of the shared server.

use std::str::FromStr;

use surefoot_store_postgres::sqlx::postgres::PgConnectOptions;
use surefoot_store_postgres::sqlx::{
    self, AssertSqlSafe, ConnectOptions, Connection, PgConnection, Row,
};
use surefoot_store_postgres::{PostgresOptions, PostgresStore};
use surefoot_store_sqlite::SqliteStore;

/// A database of one test; dropped with it.
pub(crate) struct Database {
    name: String,
}

fn server() -> PgConnectOptions {
    let url = std::env::var("DATABASE_URL").unwrap_or_default();
    assert!(
        !url.is_empty(),
        "DATABASE_URL is not set: run `cargo xtask test`, or give the URL of a PostgreSQL server"
    );
    PgConnectOptions::from_str(&url).unwrap().disable_statement_logging()
}

impl Database {
    pub(crate) async fn new() -> Self {
        let mut conn = server().connect().await.unwrap();
        let row = sqlx::query("SELECT gen_random_uuid()::text AS id").fetch_one(&mut conn).await;
        let id: String = row.unwrap().get("id");
        let name = format!("surefoot_test_{}", id.replace('-', ""));
        run(&mut conn, format!("CREATE DATABASE {name} TEMPLATE template0")).await;
        Self { name }
    }

    pub(crate) fn options(&self) -> PostgresOptions {
        PostgresOptions::of(server().database(&self.name))
    }

    pub(crate) async fn open(&self) -> PostgresStore {
        PostgresStore::open_with(self.options()).await.unwrap()
    }
}

async fn run(conn: &mut PgConnection, statement: String) {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(conn).await.unwrap();
}

impl Drop for Database {
    fn drop(&mut self) {
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        // A test may drop it inside of its own runtime.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let mut conn = server().connect().await.unwrap();
                run(&mut conn, statement).await;
                conn.close().await.unwrap();
            });
        });
        drop(dropped.join());
    }
}

const BOOKS: &str = "CREATE TABLE booking (item TEXT NOT NULL, pieces BIGINT NOT NULL)";

/// With a table of the application.
pub(crate) async fn sqlite() -> SqliteStore {
    use surefoot_kernel_core::TxStore as _;
    let store = SqliteStore::in_memory().await.unwrap();
    let mut tx = store.begin().await.unwrap();
    sqlx::query(BOOKS).execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
    store
}

pub(crate) struct Shared {
    pub(crate) store: PostgresStore,
    // Behind the store: it is dropped after it.
    _database: Database,
}

/// With a table of the application.
pub(crate) async fn postgres() -> Shared {
    use surefoot_kernel_core::TxStore as _;
    let database = Database::new().await;
    let store = database.open().await;
    let mut tx = store.begin().await.unwrap();
    sqlx::query(BOOKS).execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
    Shared { store, _database: database }
}
