//! What `doctor` asks of the file.

use sqlx::{AssertSqlSafe, Row, SqlSafeStr, SqliteConnection};

use surefoot_kernel_core::StoreFact;

use crate::error::Fault;
use crate::migrate::MIGRATIONS;
use crate::sql;

/// The settings on which durability rests, and whether the file is sound.
pub(crate) async fn check(conn: &mut SqliteConnection) -> Result<Vec<StoreFact>, Fault> {
    let row = sqlx::query(sql::META_SCHEMA).fetch_one(&mut *conn).await?;
    let schema: String = row.try_get("value")?;
    let known = MIGRATIONS.len().to_string();
    let journal: String = pragma(conn, "journal_mode").await?.try_get(0)?;
    let synchronous: i64 = pragma(conn, "synchronous").await?.try_get(0)?;
    let foreign: bool = pragma(conn, "foreign_keys").await?.try_get(0)?;
    let sound: String = pragma(conn, "quick_check(1)").await?.try_get(0)?;
    Ok(vec![
        fact("schema version", schema == known, schema, &format!("this program knows {known}")),
        fact("journal mode", journal == "wal", journal, "it must be wal"),
        fact(
            "synchronous",
            synchronous >= 2,
            synchronous.to_string(),
            "2 (full) or more: with less, a power cut may take back what was acknowledged",
        ),
        fact("foreign keys", foreign, foreign.to_string(), "they must be on"),
        fact("integrity", sound == "ok", sound, "restore the file from a backup"),
    ])
}

fn fact(name: &'static str, ok: bool, found: String, wanted: &str) -> StoreFact {
    StoreFact { name, ok, found, wanted: wanted.to_owned() }
}

async fn pragma(conn: &mut SqliteConnection, name: &str) -> Result<sqlx::sqlite::SqliteRow, Fault> {
    let statement = AssertSqlSafe(format!("PRAGMA {name}")).into_sql_str();
    Ok(sqlx::query(statement).fetch_one(conn).await?)
}
