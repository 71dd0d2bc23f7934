//! The schema: embedded, numbered, applied under an advisory lock.

use sqlx::{Connection, PgConnection, Row};

use surefoot_kernel_core::StoreError;

use crate::error::{IN_BETWEEN, store_error, unavailable};
use crate::options::PostgresOptions;
use crate::pool::{Connect, Use};
use crate::sql;
use crate::writer::begin::commit;

/// In order; the first is number 1. A migration that was released is never edited.
pub(crate) const MIGRATIONS: &[&str] = &[include_str!("../migrations/0001_kernel.sql")];

/// The oldest server that is known to work.
const SERVER_MIN: i32 = 150_000;

/// Any number of processes may do this at once: one migrates, the others find it done.
pub(crate) async fn migrate(options: &PostgresOptions) -> Result<(), StoreError> {
    let mut conn = Connect::new(options, Use::Kernel).open().await?;
    check_server(&mut conn).await?;
    let known = u32::try_from(options.migrations.len()).unwrap_or(u32::MAX);
    let found = version(&mut conn).await?;
    if found > known {
        return Err(StoreError::SchemaTooNew { found, known });
    }
    if found == 0 && !options.create {
        return Err(unavailable("the database holds no store: is it another program's?"));
    }
    if found < known {
        apply(&mut conn, &options.migrations).await?;
    }
    // Whatever becomes of the connection now, the schema is there.
    drop(conn.close().await);
    Ok(())
}

async fn check_server(conn: &mut PgConnection) -> Result<(), StoreError> {
    let row = sqlx::query(sql::META_SERVER).fetch_one(conn).await.map_err(store_error)?;
    let version: i32 = row.try_get("version").map_err(store_error)?;
    if !row.try_get::<bool, _>("is_ours").map_err(store_error)? {
        return Err(unavailable(IN_BETWEEN));
    }
    if version >= SERVER_MIN {
        Ok(())
    } else {
        Err(unavailable("the server is older than PostgreSQL 15: upgrade it"))
    }
}

/// The number of the last migration; zero is a database without a store.
async fn version(conn: &mut PgConnection) -> Result<u32, StoreError> {
    let row = sqlx::query(sql::META_EXISTS).fetch_one(&mut *conn).await.map_err(store_error)?;
    if !row.try_get::<bool, _>("exists").map_err(store_error)? {
        return Ok(0);
    }
    let row = sqlx::query(sql::META_SCHEMA).fetch_optional(conn).await.map_err(store_error)?;
    let Some(row) = row else { return Ok(0) };
    let text: String = row.try_get("value").map_err(store_error)?;
    text.parse().map_err(|_| unavailable("the store's schema version is not a number"))
}

async fn apply(conn: &mut PgConnection, migrations: &[&'static str]) -> Result<(), StoreError> {
    let known = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
    // The clock that comes with `begin` may not exist yet.
    sqlx::raw_sql("BEGIN").execute(&mut *conn).await.map_err(store_error)?;
    sqlx::query(sql::META_LOCK).execute(&mut *conn).await.map_err(store_error)?;
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
    // Whatever became of a COMMIT whose answer was lost: whoever opens the store again finds it.
    commit(conn).await.map_err(|error| StoreError::Unavailable(Box::new(error)))
}
