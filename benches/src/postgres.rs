//! The load on PostgreSQL, in a database of its own.

use surefoot::postgres::sqlx::{self, Connection, PgConnection};
use surefoot::prelude::*;

use crate::load::{self, AddOnce, AddPure, AddRemote, Begin, Sum};
use crate::measure::{self, Counted};
use crate::{Args, Failed};

/// A statement of the application in each step: one row, so that it is always the same work.
#[derive(Debug, Clone, Copy)]
struct AddRow;

impl Transactional<PostgresTx> for AddRow {
    const NAME: &'static str = "addRow";
    const ABOUT: &'static str = "Adds, and counts it in a table.";
    type Input = Sum;
    type Output = i64;

    async fn run(&self, cx: &mut TransactionalCx<'_, PostgresTx>, sum: Sum) -> ActionResult<i64> {
        // A row of its own for nearly every run, so that runs do not wait for each other.
        let slot = i32::try_from(u128::from_be_bytes(cx.run_id().to_bytes()) % 100_000)?;
        let sql = "UPDATE tally SET count = count + 1 WHERE slot = $1";
        sqlx::query(sql).bind(slot).execute(cx.tx()).await?;
        Ok(sum.total())
    }

    async fn plan(&self, _: &StepCx, _: &Sum) -> PlanResult<i64> {
        Ok(Planned::new("Add"))
    }
}

pub(crate) async fn run(args: &Args, admin: &str) -> Result<String, Failed> {
    let name = format!("surefoot_bench_{}", std::process::id());
    let mut conn = PgConnection::connect(admin).await?;
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}")))
        .execute(&mut conn)
        .await?;
    let done = in_database(args, &beside(admin, &name)).await;
    let drop = format!("DROP DATABASE {name} WITH (FORCE)");
    sqlx::raw_sql(sqlx::AssertSqlSafe(drop)).execute(&mut conn).await?;
    done
}

/// The same server, another database.
fn beside(admin: &str, name: &str) -> String {
    let (server, _) = admin.rsplit_once('/').unwrap_or((admin, ""));
    format!("{server}/{name}")
}

async fn in_database(args: &Args, url: &str) -> Result<String, Failed> {
    let store = PostgresStore::open(url).await?;
    let mut conn = PgConnection::connect(url).await?;
    let tally = "CREATE TABLE tally (slot integer PRIMARY KEY, count bigint NOT NULL) WITH (fillfactor = 50)";
    sqlx::query(tally).execute(&mut conn).await?;
    let fill = "INSERT INTO tally SELECT slot, 0 FROM generate_series(0, 99999) AS slot";
    sqlx::query(fill).execute(&mut conn).await?;
    sqlx::query("CHECKPOINT").execute(&mut conn).await?;
    let module = Module::builder(load::APP, 1)
        .trigger::<Begin>()
        .pure(AddPure)
        .idempotent(AddOnce)
        .ambiguous(AddRemote)
        .transactional(AddRow)
        .build()?;
    let before = written(&mut conn).await?;
    let measured = measure::run(args, store, module).await?;
    let wal_bytes = written(&mut conn).await? - before;
    let counted = count(&mut conn, wal_bytes).await?;
    measured.line("surefoot-postgres", args, &counted)
}

/// Bytes of the server's log so far.
async fn written(conn: &mut PgConnection) -> Result<i64, sqlx::Error> {
    let sql = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint";
    sqlx::query_scalar(sql).fetch_one(conn).await
}

/// What is in the database, seen by somebody else.
async fn count(conn: &mut PgConnection, wal_bytes: i64) -> Result<Counted, sqlx::Error> {
    let sql = "SELECT count(*), coalesce(sum(count), 0)::bigint FROM surefoot.journal";
    let (rows, facts): (i64, i64) = sqlx::query_as(sql).fetch_one(&mut *conn).await?;
    let sql = "SELECT count(*) FROM surefoot.run WHERE state = 'succeeded'";
    let ended = sqlx::query_scalar(sql).fetch_one(&mut *conn).await?;
    let sql = "SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings \
               WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes')";
    let durability = sqlx::query_scalar(sql).fetch_one(conn).await?;
    Ok(Counted { rows, facts, ended, wal_bytes: Some(wal_bytes), durability })
}
