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
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    let found = version(&mut conn).await?;
    if found > known {
        return Err(StoreError::SchemaTooNew { found, known });
    }
    if found == 0 && !options.create {
        return Err(unavailable("the file holds no store: a database of another program?"));
    }
    if found < known {
        use_wal(&mut conn).await?;
        apply(&mut conn, known).await?;
    }
    conn.close().await.map_err(store_error)
}

/// The number of the last migration; zero is an empty file.
async fn version(conn: &mut SqliteConnection) -> Result<u32, StoreError> {
    let row =
        sqlx::query(sql::META_EXISTS).fetch_optional(&mut *conn).await.map_err(store_error)?;
    if row.is_none() {
        return Ok(0);
    }
    let row = sqlx::query(sql::META_SCHEMA).fetch_optional(conn).await.map_err(store_error)?;
    let Some(row) = row else { return Ok(0) };
    let text: String = row.try_get("value").map_err(store_error)?;
    text.parse().map_err(|_| unavailable("the file's schema version is not a number"))
}

/// Readers and the writer do not wait for each other. It stays so in the file.
async fn use_wal(conn: &mut SqliteConnection) -> Result<(), StoreError> {
    let row = sqlx::query("PRAGMA journal_mode = WAL").fetch_one(conn).await;
    let row = row.map_err(store_error)?;
    let mode: String = row.try_get(0).map_err(store_error)?;
    if mode == "wal" {
        Ok(())
    } else {
        Err(unavailable("the file cannot be used with a write-ahead log: is it on a local disk?"))
    }
}

async fn apply(conn: &mut SqliteConnection, known: u32) -> Result<(), StoreError> {
    begin_immediate(conn).await.map_err(store_error)?;
    // Somebody else may have been here between the first look and the lock.
    let found = version(conn).await?;
    if found > known {
        return Err(StoreError::SchemaTooNew { found, known });
    }
    let done = usize::try_from(found).unwrap_or(usize::MAX);
    for migration in MIGRATIONS.iter().skip(done) {
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
