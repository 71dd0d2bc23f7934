//! A load that goes on for minutes, at a part of what is possible: whether anything grows that should not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use surefoot::postgres::sqlx::{self, PgConnection, Row};
use surefoot::prelude::*;
use tokio::sync::{Mutex, Semaphore};

use crate::Failed;
use crate::measure::{mark, one_run};
use crate::verdict::{Histogram, Minute, Soaked, Table};

/// How long it is measured what is possible, and with how many runs at once.
const TRIAL: Duration = Duration::from_secs(60);
const AT_ONCE: usize = 50;
/// Slots of the worker.
pub(crate) const SLOTS: usize = 200;
/// Of that, what the load is.
const LOAD_PERCENT: u32 = 70;
/// More runs at once than begin within so long are a load that was not kept up with. Shorter than that, a disk that
/// writes back what the system has kept for half a minute may keep everybody waiting.
const BEHIND_MAX: Duration = Duration::from_secs(5);
/// How often runs are started, and how often it is looked at memory and tables.
const BEAT: Duration = Duration::from_millis(10);
const LOOK: Duration = Duration::from_secs(5);

/// Runs the load and says what became of memory, latencies and tables.
pub(crate) async fn run<S: TxStore + Clone>(
    kernel: &Kernel<S>,
    conn: &mut PgConnection,
    minutes: usize,
) -> Result<Soaked, Failed> {
    let possible = trial(kernel).await?;
    let rate = possible * f64::from(LOAD_PERCENT) / 100.0;
    eprintln!("== {possible:.0} runs a second are possible; {rate:.0} for {minutes} minutes");
    mark("start");
    let mut soaked = Soaked::default();
    for minute in 1..=minutes {
        let one = one_minute(kernel, conn, rate).await?;
        eprintln!("== minute {minute}: {one}");
        soaked.minutes.push(one);
    }
    mark("end");
    Ok(soaked)
}

/// Runs a second, so many at a time.
async fn trial<S: TxStore + Clone>(kernel: &Kernel<S>) -> Result<f64, Failed> {
    let until = Instant::now() + TRIAL;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..AT_ONCE {
        let kernel = kernel.clone();
        tasks.spawn(async move {
            let mut done = 0_u32;
            while Instant::now() < until {
                one_run(&kernel).await?;
                done += 1;
            }
            Ok::<u32, Failed>(done)
        });
    }
    let mut done = 0.0;
    while let Some(some) = tasks.join_next().await {
        done += f64::from(some??);
    }
    Ok(done / TRIAL.as_secs_f64())
}

/// Starts runs at an even pace, whether those before have ended or not.
async fn one_minute<S: TxStore + Clone>(
    kernel: &Kernel<S>,
    conn: &mut PgConnection,
    rate: f64,
) -> Result<Minute, Failed> {
    let most = (rate * BEHIND_MAX.as_secs_f64()) as usize;
    let (began, open) = (Instant::now(), Arc::new(Semaphore::new(most)));
    let seen = Arc::new(Mutex::new(Histogram::default()));
    let (mut tasks, mut minute) = (tokio::task::JoinSet::new(), Minute::default());
    let (mut started, mut looked) = (0.0, began);
    while began.elapsed() < Duration::from_secs(60) {
        while started < began.elapsed().as_secs_f64() * rate {
            let seat = open.clone().try_acquire_owned();
            let seat = seat.map_err(|_| format!("{most} runs are open: too much load"))?;
            let (kernel, seen) = (kernel.clone(), seen.clone());
            started += 1.0;
            tasks.spawn(async move {
                let began = Instant::now();
                one_run(&kernel).await?;
                seen.lock().await.add(began.elapsed());
                drop(seat);
                Ok::<(), Failed>(())
            });
        }
        while let Some(done) = tasks.try_join_next() {
            done??;
        }
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            minute.memory.push(memory_kib()?);
            minute.tables = tables(conn).await?;
        }
        tokio::time::sleep(BEAT).await;
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    minute.latencies = std::mem::take(&mut *seen.lock().await);
    Ok(minute)
}

/// What this process has in memory.
fn memory_kib() -> Result<u64, Failed> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("the system does not say how much memory is used")?.parse()?)
}

async fn tables(conn: &mut PgConnection) -> Result<Vec<Table>, Failed> {
    let sql = "SELECT relname::text AS name, n_live_tup AS live, n_dead_tup AS dead \
               FROM pg_stat_user_tables WHERE schemaname = 'surefoot' ORDER BY relname";
    let rows = sqlx::query(sql).fetch_all(conn).await?;
    rows.iter()
        .map(|row| {
            let (live, dead) = (row.try_get("live")?, row.try_get("dead")?);
            Ok(Table { name: row.try_get("name")?, live, dead })
        })
        .collect()
}
