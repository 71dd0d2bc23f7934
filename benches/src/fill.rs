//! What is in a database before the load begins: copies of one run, made by the database itself.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use surefoot::RunId;
use surefoot::postgres::sqlx::{self, AssertSqlSafe, PgConnection};

/// A key by the number of the copy: in order, like those that the kernel makes.
const COPY: &str = "('00000000-0000-7000-8000-' || lpad(to_hex(copy), 12, '0'))::uuid";

/// Copies a run that has ended, with its journal and what it was started with.
pub(crate) async fn ended(
    conn: &mut PgConnection,
    of: RunId,
    copies: usize,
) -> Result<(), sqlx::Error> {
    copy(conn, of, 1..=copies, "run", &[("id", COPY), ("root", COPY)]).await?;
    copy(conn, of, 1..=copies, "run_payload", &[("run", COPY)]).await?;
    copy(conn, of, 1..=copies, "run_result", &[("run", COPY)]).await?;
    copy(conn, of, 1..=copies, "journal", &[("run", COPY)]).await?;
    settle(conn).await
}

/// Copies a run that waits for a worker, numbered behind others; `foreign` ones wait for a module that nobody has.
pub(crate) async fn queued(
    conn: &mut PgConnection,
    of: RunId,
    copies: usize,
    behind: usize,
    foreign: bool,
) -> Result<(), sqlx::Error> {
    let mut set = vec![("id", COPY), ("root", COPY), ("claimable_at", "claimable_at + copy")];
    if foreign {
        set.push(("footprint", "'foreign'"));
    }
    copy(conn, of, behind + 1..=behind + copies, "run", &set).await?;
    settle(conn).await
}

/// Copies rows of a table that belong to a run; `set` says which columns of the copies differ.
async fn copy(
    conn: &mut PgConnection,
    of: RunId,
    copies: RangeInclusive<usize>,
    table: &str,
    set: &[(&str, &str)],
) -> Result<(), sqlx::Error> {
    let key = if table == "run" { "id" } else { "run" };
    let (first, last) = (copies.start(), copies.end());
    let from = format!(
        "surefoot.{table} CROSS JOIN generate_series({first}, {last}) AS copy WHERE {key} = encode($1, 'hex')::uuid"
    );
    let statement = copying(conn, table, set, &from).await?;
    let key = of.to_bytes().to_vec();
    sqlx::query(AssertSqlSafe(statement)).bind(key).execute(conn).await.map(drop)
}

/// A statement that copies rows of a table; `set` says which columns of the copies differ, `from` which rows are copied.
pub(crate) async fn copying(
    conn: &mut PgConnection,
    table: &str,
    set: &[(&str, &str)],
    from: &str,
) -> Result<String, sqlx::Error> {
    let asked = "SELECT column_name::text FROM information_schema.columns \
                 WHERE table_schema = 'surefoot' AND table_name = $1 ORDER BY ordinal_position";
    let columns: Vec<String> = sqlx::query_scalar(asked).bind(table).fetch_all(conn).await?;
    let (mut names, mut values) = (String::new(), String::new());
    for column in &columns {
        let other = set.iter().find(|(name, _)| name == column).map(|(_, value)| *value);
        let comma = if names.is_empty() { "" } else { ", " };
        let _ = write!(names, "{comma}\"{column}\"");
        let _ = match other {
            Some(value) => write!(values, "{comma}{value}"),
            None => write!(values, "{comma}\"{column}\""),
        };
    }
    Ok(format!("INSERT INTO surefoot.{table} ({names}) SELECT {values} FROM {from}"))
}

/// As a database is that was not filled a moment ago.
async fn settle(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql("VACUUM (ANALYZE) surefoot.run").execute(&mut *conn).await?;
    sqlx::raw_sql("VACUUM (ANALYZE) surefoot.journal").execute(&mut *conn).await?;
    sqlx::raw_sql("CHECKPOINT").execute(conn).await.map(drop)
}
