//! The load on SQLite.

use surefoot::prelude::*;
use surefoot::sqlite::sqlx::{self, Connection, SqliteConnection};

use crate::load::{self, AddOnce, AddPure, AddRemote, Begin, Sum};
use crate::measure::{self, Counted};
use crate::{Args, Failed, Workload, backlog, emit};

/// A statement of the application in each step: one row, so that it is always the same work.
#[derive(Debug, Clone, Copy)]
struct AddRow;

impl Transactional<SqliteTx> for AddRow {
    const NAME: &'static str = "addRow";
    const ABOUT: &'static str = "Adds, and counts it in a table.";
    type Input = Sum;
    type Output = i64;

    async fn run(&self, cx: &mut TransactionalCx<'_, SqliteTx>, sum: Sum) -> ActionResult<i64> {
        let slot = sum.total() % 1_000;
        let sql = "UPDATE tally SET count = count + 1 WHERE slot = ?";
        sqlx::query(sql).bind(slot).execute(cx.tx()).await?;
        Ok(sum.total())
    }

    async fn plan(&self, _: &StepCx, _: &Sum) -> PlanResult<i64> {
        Ok(Planned::new("Add"))
    }
}

pub(crate) async fn run(args: &Args, file: &str) -> Result<String, Failed> {
    let store = SqliteStore::open(file).await?;
    let mut conn = SqliteConnection::connect(&format!("sqlite:{file}")).await?;
    sqlx::query("CREATE TABLE tally (slot INTEGER PRIMARY KEY, count INTEGER NOT NULL)")
        .execute(&mut conn)
        .await?;
    let fill = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999) \
                INSERT INTO tally SELECT i, 0 FROM n";
    sqlx::query(fill).execute(&mut conn).await?;
    let module = Module::builder(load::APP, 1)
        .trigger::<Begin>()
        .pure(AddPure)
        .idempotent(AddOnce)
        .ambiguous(AddRemote)
        .transactional(AddRow)
        .build()?;
    let kernel = Kernel::new(load::APP, store);
    measure::publish(args, &kernel, &module).await?;
    let measured = match args.workload {
        Workload::Steps => measure::run(args, &kernel, module).await?,
        Workload::Emit => emit::run(args, &kernel).await?,
        Workload::Backlog => backlog::run(args, &kernel, module).await?,
        Workload::Claim | Workload::Limit | Workload::Soak | Workload::Fence | Workload::Look => {
            return Err("this workload is for PostgreSQL only".into());
        }
    };
    let state = if args.workload == Workload::Emit { "queued" } else { "succeeded" };
    let counted = count(&mut conn, state).await?;
    measured.line("surefoot-sqlite", args, &counted)
}

/// What is in the file, seen by somebody else.
async fn count(conn: &mut SqliteConnection, state: &str) -> Result<Counted, sqlx::Error> {
    let (rows, facts): (i64, i64) =
        sqlx::query_as("SELECT count(*), coalesce(sum(count), 0) FROM surefoot_journal")
            .fetch_one(&mut *conn)
            .await?;
    let (ended,): (i64,) = sqlx::query_as("SELECT count(*) FROM surefoot_run WHERE state = ?")
        .bind(state)
        .fetch_one(conn)
        .await?;
    let durability = "synchronous=FULL".to_owned();
    Ok(Counted { rows, facts, ended, wal_bytes: None, durability })
}
