//! The load on PostgreSQL, in a database of its own.

use std::str::FromStr as _;
use std::time::Duration;

use surefoot::postgres::sqlx::postgres::PgConnectOptions;
use surefoot::postgres::sqlx::{self, ConnectOptions as _, Connection, PgConnection};
use surefoot::prelude::*;

use crate::load::{self, AddOnce, AddPure, AddRemote, Begin, Sum};
use crate::measure::{self, Counted};
use crate::{Args, Failed, Workload, backlog, claim, emit, fence, fill, limit, look, soak};

/// How long a worker may take to stop.
const STOP: Duration = Duration::from_secs(5);

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
    // What fills a database takes long, and that is nothing to warn of.
    let options = PgConnectOptions::from_str(url)?.disable_statement_logging();
    let mut conn = options.connect().await?;
    let tally = "CREATE TABLE tally (slot integer PRIMARY KEY, count bigint NOT NULL) WITH (fillfactor = 50)";
    sqlx::query(tally).execute(&mut conn).await?;
    let fill = "INSERT INTO tally SELECT slot, 0 FROM generate_series(0, 99999) AS slot";
    sqlx::query(fill).execute(&mut conn).await?;
    if args.workload == Workload::Limit {
        sqlx::query("CHECKPOINT").execute(&mut conn).await?;
        let (measured, counted) = limit::run(args, url).await?;
        return measured.line("limit-postgres", args, &counted);
    }
    let kernel = Kernel::new(load::APP, PostgresStore::open(url).await?);
    let module = module()?;
    measure::publish(args, &kernel, &module).await?;
    match args.workload {
        Workload::Claim => claims(args, &kernel, &mut conn).await,
        Workload::Fence => fence::run(args, &kernel, module).await,
        Workload::Soak => soak(args, &kernel, module, &mut conn).await,
        Workload::Look => look::run(args, &kernel, module, &mut conn).await,
        Workload::Steps | Workload::Backlog | Workload::Emit | Workload::Limit => {
            load(args, &kernel, module, &mut conn).await
        }
    }
}

fn module() -> Result<Module<On<PostgresTx>>, Failed> {
    let builder = Module::builder(load::APP, 1).trigger::<Begin>();
    let builder = builder.pure(AddPure).idempotent(AddOnce).ambiguous(AddRemote);
    Ok(fence::with(builder.transactional(AddRow)).build()?)
}

async fn load(
    args: &Args,
    kernel: &Kernel<PostgresStore>,
    module: Module<On<PostgresTx>>,
    conn: &mut PgConnection,
) -> Result<String, Failed> {
    if args.stored > 0 {
        let worker = kernel.worker(self::module()?).concurrency(1).start().await?;
        let run = measure::one_run(kernel).await?;
        worker.stop(STOP).await;
        fill::ended(conn, run, args.stored / args.steps.max(1)).await?;
    }
    sqlx::query("CHECKPOINT").execute(&mut *conn).await?;
    let (before, were) = (written(conn).await?, count(conn, 0).await?);
    let measured = match args.workload {
        Workload::Emit => emit::run(args, kernel).await?,
        Workload::Backlog => backlog::run(args, kernel, module).await?,
        Workload::Steps
        | Workload::Claim
        | Workload::Limit
        | Workload::Soak
        | Workload::Fence
        | Workload::Look => measure::run(args, kernel, module).await?,
    };
    let wal_bytes = written(conn).await? - before;
    let counted = count(conn, wal_bytes).await?;
    let ended = match args.workload {
        Workload::Emit => queued(conn).await?,
        Workload::Steps
        | Workload::Backlog
        | Workload::Claim
        | Workload::Limit
        | Workload::Soak
        | Workload::Fence
        | Workload::Look => counted.ended - were.ended,
    };
    let (rows, facts) = (counted.rows - were.rows, counted.facts - were.facts);
    measured.line("surefoot-postgres", args, &Counted { rows, facts, ended, ..counted })
}

async fn claims(
    args: &Args,
    kernel: &Kernel<PostgresStore>,
    conn: &mut PgConnection,
) -> Result<String, Failed> {
    let emitted = kernel.scope(load::SCOPE).emit(Begin { start: 1 }.event()).await?;
    let run = *emitted.runs.first().ok_or("the event started no run")?;
    fill::queued(conn, run, args.queued.saturating_sub(1), 0, false).await?;
    if args.foreign > 0 {
        fill::queued(conn, run, args.foreign, args.queued, true).await?;
    }
    claim::run("surefoot-postgres", args, kernel.store(), run).await
}

async fn soak(
    args: &Args,
    kernel: &Kernel<PostgresStore>,
    module: Module<On<PostgresTx>>,
    conn: &mut PgConnection,
) -> Result<String, Failed> {
    let worker = kernel.worker(module).concurrency(soak::SLOTS).start().await?;
    let mut soaked = soak::run(kernel, conn, args.minutes).await?;
    worker.stop(STOP).await;
    soaked.warnings = crate::log::warnings();
    Ok(soaked.figures().to_string())
}

/// Runs that nobody has taken yet.
async fn queued(conn: &mut PgConnection) -> Result<i64, sqlx::Error> {
    let sql = "SELECT count(*) FROM surefoot.run WHERE state = 'queued'";
    sqlx::query_scalar(sql).fetch_one(conn).await
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
    let durability = durability(conn).await?;
    Ok(Counted { rows, facts, ended, wal_bytes: Some(wal_bytes), durability })
}

/// What the server says of its own durability.
pub(crate) async fn durability(conn: &mut PgConnection) -> Result<String, sqlx::Error> {
    let sql = "SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings \
               WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes')";
    sqlx::query_scalar(sql).fetch_one(conn).await
}
