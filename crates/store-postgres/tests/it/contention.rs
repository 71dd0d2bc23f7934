//! Many handles and many processes on one database.

use std::process::{Command, Stdio};
use surefoot_testkit::ClaimRows as _;

use surefoot_kernel_core::{
    ClaimRequest, Commit, End, EventStore, Fact, OperatorStore, RunFilter, RunState, RunStore,
    SessionId, TxStore,
};
use surefoot_store_postgres::PostgresStore;
use tokio::task::JoinSet;

use crate::database::options_of;
use crate::published::{claim, emit, order, published};
use crate::support::step;

/// Emits, claims and commits until every run of the database has ended.
async fn work(store: PostgresStore, who: u8, emits: u32) -> u32 {
    for _ in 0..emits {
        store.event_emit(emit(order())).await.unwrap();
    }
    let mut ended = 0;
    let session = SessionId::from_bytes([who; 16]);
    loop {
        let request = ClaimRequest { session, ..claim(4) };
        let claimed = store.claim_rows(request).await;
        if claimed.is_empty() {
            return ended;
        }
        for run in claimed {
            let stepped = step(&store, &run).await.unwrap();
            let end = Fact::Ended { end: End::Canceled, at: stepped.now };
            store.run_commit(Commit::new(&stepped.run, &[end])).await.unwrap();
            ended += 1;
        }
    }
}

/// Covers field fault 161.
/// Covers behaviour 87.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_workers_on_four_handles_do_each_run_once() {
    let world = published().await;
    let mut stores = vec![world.store.clone()];
    for _ in 0..3 {
        stores.push(world.other().await);
    }
    let mut workers = JoinSet::new();
    for who in 0..16_u8 {
        workers.spawn(work(stores[usize::from(who) % 4].clone(), who, 10));
    }
    let mut ended: u32 = workers.join_all().await.into_iter().sum();
    ended += work(world.store.clone(), 99, 0).await;
    assert_eq!(ended, 160, "each run was claimed by one worker and ended once");
}

const CHILD_DATABASE: &str = "SUREFOOT_TEST_CHILD_DATABASE";

/// What each process of the test below does; nothing when it is run by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_process() {
    let Ok(name) = std::env::var(CHILD_DATABASE) else { return };
    let who = u8::try_from(std::process::id() % 251).unwrap();
    let store = PostgresStore::open_with(options_of(&name)).await.unwrap();
    work(store, who, 20).await;
}

/// Covers field fault 161.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_processes_share_one_database() {
    let world = published().await;
    let test = std::env::current_exe().unwrap();
    let children: Vec<_> = (0..8)
        .map(|_| {
            Command::new(&test)
                .args(["--exact", "contention::child_process", "--nocapture"])
                .env(CHILD_DATABASE, world.database.name())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let output = tokio::task::spawn_blocking(|| child.wait_with_output()).await.unwrap();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    work(world.store.clone(), 99, 0).await;
    let filter = |states| RunFilter { states, limit: 1_000, ..RunFilter::default() };
    let ended = world.store.run_list(filter(vec![RunState::Canceled])).await.unwrap();
    let all = world.store.run_list(filter(Vec::new())).await.unwrap();
    assert_eq!((ended.rows.len(), all.rows.len()), (160, 160));
    assert!(ended.rows.iter().all(|row| row.run.seq == 2 && row.run.generation == 1));
}

/// Transactions of the application, and the kernel's writes, do not wait for each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_transaction_of_the_application_stops_nobody() {
    let world = published().await;
    let mut tx = world.store.begin().await.unwrap();
    world.store.event_emit_in(&mut tx, emit(order())).await.unwrap();
    let ended =
        tokio::time::timeout(std::time::Duration::from_secs(120), work(world.store.clone(), 1, 50));
    assert_eq!(ended.await.unwrap(), 50, "what is not committed is not claimed either");
    tx.commit().await.unwrap();
    assert_eq!(work(world.store.clone(), 1, 0).await, 1);
}
