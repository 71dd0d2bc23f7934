//! The schema: embedded, numbered, applied under the write lock.

use std::time::Instant;

use sqlx::sqlite::SqliteTransactionManager;
use sqlx::{ConnectOptions, Connection, Row, SqliteConnection};
use sqlx_core::transaction::TransactionManager;

use surefoot_kernel_core::StoreError;

use crate::error::{is_busy, store_error, unavailable};
use crate::options::SqliteOptions;
use crate::pool::CONNECT_BUSY;
use crate::sql;
use crate::writer::lock::{Pause, begin_immediate};

/// In order; the first is number 1. A migration that was released is never edited.
pub(crate) const MIGRATIONS: &[&str] = &[include_str!("../migrations/0001_kernel.sql")];

/// The table by which a file is known as a store.
const MARK: &str = "surefoot_meta";

/// Any number of processes may do this at once: one migrates, the others find it done.
pub(crate) async fn migrate(options: &SqliteOptions) -> Result<(), StoreError> {
    let mut pause = Pause::new(options.clock.now());
    let since = Instant::now();
    loop {
        match try_migrate(options).await {
            Err(StoreError::TransactionConflict(error)) => {
                if since.elapsed() >= options.lock_wait {
                    return Err(StoreError::Unavailable(error));
                }
                tokio::time::sleep(pause.next()).await;
            }
            done => return done,
        }
    }
}

async fn try_migrate(options: &SqliteOptions) -> Result<(), StoreError> {
    let mut conn = options.connect(CONNECT_BUSY).connect().await.map_err(store_error)?;
    let known = u32::try_from(options.migrations.len()).unwrap_or(u32::MAX);
    let found = version(&mut conn).await?;
    if found > known {
        return Err(StoreError::SchemaTooNew { found, known });
    }
    if found == 0 {
        check_free(&mut conn, options).await?;
    }
    // A copy that another program wrote, as `VACUUM INTO` does, has lost its mode.
    if found < known || journal_mode(&mut conn, "PRAGMA journal_mode").await? != "wal" {
        use_wal(&mut conn).await?;
    }
    if found < known {
        apply(&mut conn, &options.migrations).await?;
    }
    conn.close().await.map_err(store_error)
}

/// Whether a file without a store may become one: nobody else has it, or it is shared on purpose.
async fn check_free(
    conn: &mut SqliteConnection,
    options: &SqliteOptions,
) -> Result<(), StoreError> {
    let others = tables(conn).await?;
    if others.iter().any(|name| name == MARK) {
        // Somebody was faster.
        return Ok(());
    }
    let header = sqlx::query(sql::META_HEADER).fetch_one(&mut *conn).await.map_err(store_error)?;
    let is_taken: bool = header.try_get("is_taken").map_err(store_error)?;
    let is_foreign = is_taken || !others.is_empty();
    if is_foreign && !options.beside {
        return Err(StoreError::Unavailable(Box::new(Foreign { tables: others })));
    }
    if options.create { Ok(()) } else { Err(unavailable("the file holds no store")) }
}

/// A database of another program. It gets no table unless somebody wants that.
#[derive(Debug, thiserror::Error)]
#[error(
    "the file is a database of another program{}: it holds no store, and is left alone. Name another file; an \
     application that shares its own one on purpose opens it with `SqliteOptions::beside_other_tables`",
    with(.tables)
)]
struct Foreign {
    tables: Vec<String>,
}

fn with(tables: &[String]) -> String {
    if tables.is_empty() {
        String::new()
    } else {
        format!(" (with the tables {})", tables.join(", "))
    }
}

/// Some of the tables of a file, the store's mark first.
async fn tables(conn: &mut SqliteConnection) -> Result<Vec<String>, StoreError> {
    let rows = sqlx::query(sql::META_TABLES).fetch_all(conn).await.map_err(store_error)?;
    rows.iter().map(|row| row.try_get("name").map_err(store_error)).collect()
}

/// The number of the last migration; zero is a file without a store.
async fn version(conn: &mut SqliteConnection) -> Result<u32, StoreError> {
    if !tables(conn).await?.iter().any(|name| name == MARK) {
        return Ok(0);
    }
    let row = sqlx::query(sql::META_SCHEMA).fetch_optional(conn).await.map_err(store_error)?;
    let Some(row) = row else { return Ok(0) };
    let text: String = row.try_get("value").map_err(store_error)?;
    text.parse().map_err(|_| unavailable("the file's schema version is not a number"))
}

async fn journal_mode(
    conn: &mut SqliteConnection,
    pragma: &'static str,
) -> Result<String, StoreError> {
    let row = sqlx::query(pragma).fetch_one(conn).await.map_err(store_error)?;
    row.try_get(0).map_err(store_error)
}

/// Readers and the writer do not wait for each other. It stays so in the file.
async fn use_wal(conn: &mut SqliteConnection) -> Result<(), StoreError> {
    if journal_mode(conn, "PRAGMA journal_mode = WAL").await? == "wal" {
        Ok(())
    } else {
        Err(unavailable("the file cannot be used with a write-ahead log: is it on a local disk?"))
    }
}

async fn apply(conn: &mut SqliteConnection, migrations: &[&'static str]) -> Result<(), StoreError> {
    let known = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
    begin_immediate(conn).await.map_err(store_error)?;
    // Somebody else may have been here between the first look and the lock.
    let found = version(conn).await?;
    if found > known {
        return Err(StoreError::SchemaTooNew { found, known });
    }
    let done = usize::try_from(found).unwrap_or(usize::MAX);
    for migration in migrations.iter().skip(done) {
        sqlx::raw_sql(*migration).execute(&mut *conn).await.map_err(store_error)?;
    }
    sqlx::query(sql::META_SET_SCHEMA)
        .bind(known.to_string())
        .execute(&mut *conn)
        .await
        .map_err(store_error)?;
    SqliteTransactionManager::commit(conn).await.map_err(|error| {
        if is_busy(&error) { store_error(error) } else { StoreError::Unavailable(Box::new(error)) }
    })
}
