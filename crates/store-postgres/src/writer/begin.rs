//! Transactions of the kernel's own connections: each way of it is one message to the server.

use sqlx::{AssertSqlSafe, PgConnection, Row};

const BEGIN: &str = "BEGIN; SELECT surefoot.clock() AS now";
/// `COMMIT` alone would succeed, and roll back, where an earlier statement failed; the `SELECT` fails then.
const COMMIT: &str = "SELECT; COMMIT";
/// The family of advisory locks that keep operations apart which are the same.
const ALONE: i32 = 1_668_047_209;
const ROLLBACK: &str = "ROLLBACK";

/// Begins a transaction, and answers what the database's clock says.
pub(crate) async fn begin(conn: &mut PgConnection) -> Result<i64, sqlx::Error> {
    let rows = sqlx::raw_sql(BEGIN).fetch_all(conn).await?;
    rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get("now")
}

/// Begins a transaction that waits until every other one with this key has ended; what it reads is from then.
pub(crate) async fn begin_alone(conn: &mut PgConnection, key: i32) -> Result<i64, sqlx::Error> {
    let begin = format!(
        "BEGIN; SELECT pg_advisory_xact_lock({ALONE}, {key}); SELECT surefoot.clock() AS now"
    );
    let rows = sqlx::raw_sql(AssertSqlSafe(begin)).fetch_all(conn).await?;
    rows.last().ok_or(sqlx::Error::RowNotFound)?.try_get("now")
}

pub(crate) async fn commit(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(COMMIT).execute(conn).await.map(drop)
}

pub(crate) async fn rollback(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(ROLLBACK).execute(conn).await.map(drop)
}
