//! What `doctor` asks of the file.

use std::collections::BTreeSet;

use sqlx::{AssertSqlSafe, Connection, Row, SqlSafeStr, SqliteConnection};

use surefoot_kernel_core::StoreFact;

use crate::error::Fault;
use crate::migrate::MIGRATIONS;
use crate::sql;

/// How the store's tables, indexes and triggers are named.
const PREFIX: &str = "surefoot_";

/// The settings on which durability rests, and whether the file is sound. A damaged file is a finding, not an error.
pub(crate) async fn check(conn: &mut SqliteConnection) -> Result<Vec<StoreFact>, Fault> {
    let schema = said(schema(conn).await);
    let known = MIGRATIONS.len().to_string();
    let journal = said(pragma(conn, "journal_mode").await);
    let synchronous = said(pragma(conn, "synchronous").await);
    let foreign = said(pragma(conn, "foreign_keys").await);
    let sound = said(pragma(conn, "quick_check(1)").await);
    let missing = missing(conn).await;
    let backup = "restore the file from a backup";
    Ok(vec![
        fact("schema version", schema == known, schema, &format!("this program knows {known}")),
        fact("journal mode", journal == "wal", journal, "it must be wal"),
        fact(
            "synchronous",
            synchronous.parse::<i64>().is_ok_and(|level| level >= 2),
            synchronous,
            "2 (full) or more: with less, a power cut may take back what was acknowledged",
        ),
        fact("foreign keys", foreign == "1", foreign, "they must be on: 1"),
        match missing {
            Ok(missing) if missing.is_empty() => {
                fact("tables and triggers", true, "all there".to_owned(), backup)
            }
            Ok(missing) => fact(
                "tables and triggers",
                false,
                format!("lacking: {}", missing.join(", ")),
                backup,
            ),
            Err(Fault(error)) => fact("tables and triggers", false, chain(&error), backup),
        },
        fact("integrity", sound == "ok", sound, backup),
    ])
}

fn fact(name: &'static str, ok: bool, found: String, wanted: &str) -> StoreFact {
    StoreFact { name, ok, found, wanted: wanted.to_owned() }
}

fn said(found: Result<String, Fault>) -> String {
    found.unwrap_or_else(|Fault(error)| chain(&error))
}

/// An error with what is below it.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

async fn schema(conn: &mut SqliteConnection) -> Result<String, Fault> {
    Ok(sqlx::query(sql::META_SCHEMA).fetch_one(conn).await?.try_get("value")?)
}

async fn pragma(conn: &mut SqliteConnection, name: &str) -> Result<String, Fault> {
    let statement = AssertSqlSafe(format!("PRAGMA {name}")).into_sql_str();
    Ok(sqlx::query(statement).fetch_one(conn).await?.try_get_unchecked(0)?)
}

/// What the migrations make and the file does not have.
async fn missing(conn: &mut SqliteConnection) -> Result<Vec<String>, Fault> {
    let mut fresh = SqliteConnection::connect("sqlite::memory:").await?;
    for migration in MIGRATIONS {
        sqlx::raw_sql(*migration).execute(&mut fresh).await?;
    }
    let wanted = objects(&mut fresh).await?;
    fresh.close().await?;
    let there = objects(conn).await?;
    Ok(wanted.difference(&there).cloned().collect())
}

async fn objects(conn: &mut SqliteConnection) -> Result<BTreeSet<String>, Fault> {
    let rows = sqlx::query(sql::META_OBJECTS).bind(PREFIX).fetch_all(conn).await?;
    let read = rows.iter().map(|row| {
        let (kind, name): (&str, &str) = (row.try_get("type")?, row.try_get("name")?);
        Ok(format!("{kind} `{name}`"))
    });
    read.collect()
}
