//! Transactions of the kernel's own connections: each way of it is one message to the server.

use sqlx::{PgConnection, Row};

const BEGIN: &str = "BEGIN; SELECT surefoot.clock() AS now";
/// `COMMIT` alone would succeed, and roll back, where an earlier statement failed; the `SELECT` fails then.
const COMMIT: &str = "SELECT; COMMIT";
const ROLLBACK: &str = "ROLLBACK";

/// Begins a transaction, and answers what the database's clock says.
pub(crate) async fn begin(conn: &mut PgConnection) -> Result<i64, sqlx::Error> {
    let rows = sqlx::raw_sql(BEGIN).fetch_all(conn).await?;
    rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get("now")
}

pub(crate) async fn commit(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(COMMIT).execute(conn).await.map(drop)
}

pub(crate) async fn rollback(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(ROLLBACK).execute(conn).await.map(drop)
}
