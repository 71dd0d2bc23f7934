//! Where the shop of a test has its store: a database of its own.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use surefoot::postgres::PostgresOptions;
use surefoot_inventory::store::AppStore;
use surefoot_inventory::store::sqlx::postgres::PgConnectOptions;
use surefoot_inventory::store::sqlx::{self, AssertSqlSafe, ConnectOptions};

/// A database; dropped with it.
pub(crate) struct Place {
    name: String,
}

impl Place {
    pub(crate) async fn new() -> Self {
        let mut conn = server().connect().await.unwrap();
        let sql = "SELECT 'inventory_test_' || replace(gen_random_uuid()::text, '-', '')";
        let name: String = sqlx::query_scalar(sql).fetch_one(&mut conn).await.unwrap();
        let create = AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE template0"));
        sqlx::raw_sql(create).execute(&mut conn).await.unwrap();
        Self { name }
    }

    pub(crate) async fn open(&self, clock: Arc<AtomicI64>) -> AppStore {
        let options = PostgresOptions::of(server().database(&self.name)).clock_offset(clock);
        AppStore::open_with(options).await.unwrap()
    }
}

fn server() -> PgConnectOptions {
    let url = std::env::var("DATABASE_URL").unwrap_or_default();
    assert!(
        !url.is_empty(),
        "DATABASE_URL is not set: run `cargo xtask test`, or give the URL of a PostgreSQL server"
    );
    PgConnectOptions::from_str(&url).unwrap().disable_statement_logging()
}

impl Drop for Place {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        // A test may drop it inside of its own runtime.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let mut conn = server().connect().await.unwrap();
                sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut conn).await.unwrap();
            });
        });
        let _ = dropped.join();
    }
}
