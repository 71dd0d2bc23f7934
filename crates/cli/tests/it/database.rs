//! A database of one test. It needs a server: `DATABASE_URL` names a database of it, whose user may create others.
//! `cargo xtask test` starts one.

use std::str::FromStr;

use surefoot_store_postgres::sqlx::postgres::PgConnectOptions;
use surefoot_store_postgres::sqlx::{self, AssertSqlSafe, ConnectOptions};
use tokio::runtime::Builder;

/// An empty database; dropped with it.
pub(crate) struct Database {
    name: String,
    url: String,
}

impl Database {
    pub(crate) fn new() -> Self {
        let sql = "SELECT 'surefoot_cli_' || replace(gen_random_uuid()::text, '-', '')";
        let name = wait(async {
            let mut conn = server().connect().await.unwrap();
            let name: String = sqlx::query_scalar(sql).fetch_one(&mut conn).await.unwrap();
            let create = AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE template0"));
            sqlx::raw_sql(create).execute(&mut conn).await.unwrap();
            name
        });
        let url = server().database(&name).to_url_lossy().to_string();
        Self { name, url }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
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

fn wait<T>(done: impl Future<Output = T>) -> T {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(done)
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        wait(async {
            let mut conn = server().connect().await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut conn).await.unwrap();
        });
    }
}
