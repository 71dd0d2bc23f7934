//! The least that transactional steps cost: what we compare ours to. Not a kernel: it has no leases and no events.
//!
//! Each step is BEGIN, one statement of the application, one statement that moves the run and writes its journal if it is
//! still where it was, and COMMIT, on as many connections as a store has for transactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use surefoot::postgres::sqlx::{self, Connection, PgConnection};
use tokio::sync::{Mutex, mpsc};

use crate::measure::{Counted, Measured, mark};
use crate::{Args, Failed};

/// The default of our store.
const CONNECTIONS: usize = 8;

const SCHEMA: &str = "
CREATE TABLE limit_run (id bigint PRIMARY KEY, generation bigint NOT NULL, position bigint NOT NULL,
    state smallint NOT NULL) WITH (fillfactor = 60);
CREATE TABLE limit_journal (run bigint NOT NULL, seq bigint NOT NULL, facts text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (run, seq))";
const START: &str = "INSERT INTO limit_run VALUES ($1, 1, 0, 0)";
const WORK: &str = "UPDATE tally SET count = count + 1 WHERE slot = $1";
const COMMIT: &str = "WITH moved AS (
    UPDATE limit_run AS run SET position = x.seq, state = x.state
    FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::text[]) AS x (id, seq, state, facts)
    WHERE run.id = x.id AND run.generation = 1 AND run.position = x.seq - 1 RETURNING x.id, x.seq, x.facts
) INSERT INTO limit_journal (run, seq, facts) SELECT id, seq, facts FROM moved";

/// Connections that wait for a borrower.
type Idle = (mpsc::UnboundedSender<PgConnection>, Mutex<mpsc::UnboundedReceiver<PgConnection>>);

pub(crate) async fn run(args: &Args, url: &str) -> Result<(Measured, Counted), Failed> {
    let mut conn = PgConnection::connect(url).await?;
    sqlx::raw_sql(SCHEMA).execute(&mut conn).await?;
    let (give, take) = mpsc::unbounded_channel();
    for _ in 0..CONNECTIONS {
        let mut idle = PgConnection::connect(url).await?;
        sqlx::raw_sql("SET enable_seqscan = off").execute(&mut idle).await?;
        give.send(idle)?;
    }
    let idle: Arc<Idle> = Arc::new((give, Mutex::new(take)));
    mark("start");
    let began = Instant::now();
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..args.concurrency.min(args.runs) {
        tasks.spawn(one_after_another(idle.clone(), next.clone(), args.runs, args.steps));
    }
    let mut latencies = Vec::with_capacity(args.runs);
    while let Some(done) = tasks.join_next().await {
        latencies.extend(done??);
    }
    let took = began.elapsed();
    mark("end");
    latencies.sort_unstable();
    Ok((Measured { took, latencies }, count(&mut conn).await?))
}

async fn one_after_another(
    idle: Arc<Idle>,
    next: Arc<AtomicUsize>,
    runs: usize,
    steps: usize,
) -> Result<Vec<Duration>, Failed> {
    let mut latencies = Vec::new();
    loop {
        let run = next.fetch_add(1, Ordering::Relaxed);
        if run >= runs {
            return Ok(latencies);
        }
        let began = Instant::now();
        let run = i64::try_from(run)?;
        let mut conn = borrow(&idle).await?;
        sqlx::query(START).bind(run).execute(&mut conn).await?;
        idle.0.send(conn)?;
        for seq in 1..=i64::try_from(steps)? {
            let mut conn = borrow(&idle).await?;
            step(&mut conn, run, seq, usize::try_from(seq)? == steps).await?;
            idle.0.send(conn)?;
        }
        latencies.push(began.elapsed());
    }
}

async fn borrow(idle: &Idle) -> Result<PgConnection, Failed> {
    Ok(idle.1.lock().await.recv().await.ok_or("no connection is left")?)
}

async fn step(conn: &mut PgConnection, run: i64, seq: i64, is_last: bool) -> Result<(), Failed> {
    let mut tx = conn.begin().await?;
    let slot = i32::try_from(run % 100_000)?;
    sqlx::query(WORK).bind(slot).execute(&mut *tx).await?;
    let facts = format!("{{\"ok\": true, \"value\": {seq}}}");
    let done = sqlx::query(COMMIT)
        .bind([run])
        .bind([seq])
        .bind([i16::from(is_last)])
        .bind([facts])
        .execute(&mut *tx)
        .await?;
    if done.rows_affected() != 1 {
        return Err(format!("step {seq} of run {run} was not written").into());
    }
    Ok(tx.commit().await?)
}

async fn count(conn: &mut PgConnection) -> Result<Counted, Failed> {
    let rows: i64 =
        sqlx::query_scalar("SELECT count(*) FROM limit_journal").fetch_one(&mut *conn).await?;
    let ended = "SELECT count(*) FROM limit_run WHERE state = 1";
    let ended = sqlx::query_scalar(ended).fetch_one(&mut *conn).await?;
    let durability = crate::postgres::durability(conn).await?;
    Ok(Counted { rows, facts: rows, ended, wal_bytes: None, durability })
}
