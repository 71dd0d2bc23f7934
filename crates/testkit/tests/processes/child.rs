//! What a child process does, until it is killed.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::Event;
use surefoot_store_sqlite::{SqliteOptions, SqliteStore, sqlx};
use surefoot_testkit::{FaultPlan, FaultyStore, When};
use surefoot_worker::Kernel;

use crate::app::{APP, LEASE, Place, SCOPE, WORKFLOW, module};

/// What to do; absent in an ordinary run of the tests.
pub(crate) const ROLE: &str = "SUREFOOT_TEST_ROLE";
/// Where the store is.
pub(crate) const FOLDER: &str = "SUREFOOT_TEST_FOLDER";
/// At which call to the store, and on which side of it, the child kills itself: `12 before`.
pub(crate) const DIES: &str = "SUREFOOT_TEST_DIES";

type Store = FaultyStore<SqliteStore>;

/// Says what was acknowledged, to a parent that reads on after the kill.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // A parent that is gone needs no answer.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// The child's part.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let place = Place::new(std::env::var(FOLDER).unwrap());
    if role == "retire" {
        return crate::retire::retire(&place).await;
    }
    let options = SqliteOptions::new(place.store()).readers(2);
    let store = SqliteStore::open_with(options).await.unwrap();
    let faults = FaultPlan::new();
    if let Ok(point) = std::env::var(DIES) {
        let (nth, side) = point.split_once(' ').unwrap();
        let when = if side == "before" { When::Before } else { When::After };
        let stop = faults.stop_at(nth.parse().unwrap(), when);
        tokio::spawn(async move {
            stop.reached().await;
            kill_myself();
        });
    }
    let kernel = Kernel::new(APP, FaultyStore::new(store, faults));
    let worker = kernel.worker(module(&place)).lease(LEASE).scan_every(Duration::from_millis(20));
    let worker = worker.name("the one").build().unwrap();
    let running = worker.start().await.unwrap();
    say("ready");
    match role.as_str() {
        "load" => {
            std::thread::spawn(|| {
                until_told();
                std::process::exit(0);
            });
            load(&kernel).await;
        }
        "work" => {
            tokio::task::spawn_blocking(until_told).await.unwrap();
            running.stop(Duration::ZERO).await;
            say("stopped");
        }
        other => panic!("no such role: {other}"),
    }
}

/// Until the parent ends it, or is gone itself.
fn until_told() {
    while std::io::stdin().lines().next().is_some_and(|line| line.is_ok()) {}
}

fn kill_myself() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}

/// Emits, in both ways, and tells of everything that was acknowledged.
async fn load(kernel: &Kernel<Store>) {
    let count = Arc::new(AtomicU64::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let (kernel, count) = (kernel.clone(), count.clone());
        tasks.spawn(async move {
            loop {
                order(&kernel, count.fetch_add(1, Ordering::SeqCst)).await;
            }
        });
    }
    while tasks.join_next().await.is_some() {}
}

async fn order(kernel: &Kernel<Store>, nth: u64) {
    let name = format!("{}-{nth}", std::process::id());
    let event = Event::start(WORKFLOW, json!({})).dedupe_key(name.clone());
    let scope = kernel.scope(SCOPE);
    let emission = if nth.is_multiple_of(2) {
        scope.emit(event).await.unwrap()
    } else {
        let mut tx = kernel.begin().await.unwrap();
        let insert = "INSERT INTO booked (run, step) VALUES (?, 'order')";
        sqlx::query(insert).bind(&name).execute(&mut *tx).await.unwrap();
        let emission = scope.emit_in(&mut tx, event).await.unwrap();
        kernel.commit(tx).await.unwrap();
        say(&format!("row {name}"));
        emission.committed()
    };
    let run = emission.runs[0];
    say(&format!("run {run}"));
    let ended = kernel.await_run(run).await.unwrap();
    say(&format!("ended {run} {}", ended.state()));
}
