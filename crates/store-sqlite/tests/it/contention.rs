//! Many handles and many processes on one file.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use surefoot_testkit::ClaimRows as _;

use surefoot_kernel_core::{
    ClaimRequest, Commit, End, EventStore, Fact, OperatorStore, RunFilter, RunState, RunStore,
    SessionId, TxStore, WakeBus,
};
use surefoot_store_sqlite::SqliteStore;
use tokio::task::JoinSet;

use crate::support::{World, claim, emit, next, order, step};

/// Emits, claims and commits until every run of the file has ended.
async fn work(store: SqliteStore, who: u8, emits: u32) -> u32 {
    for _ in 0..emits {
        store.event_emit(emit(order())).await.unwrap();
    }
    let mut ended = 0;
    let session = SessionId::from_bytes([who; 16]);
    loop {
        let request = ClaimRequest { session, ..claim(4, next()) };
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
async fn sixteen_workers_on_four_handles_see_no_lock() {
    let world = World::published().await;
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

const CHILD_FILE: &str = "SUREFOOT_TEST_CHILD_FILE";

/// What each process of the test below does; nothing when it is run by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_process() {
    let Ok(file) = std::env::var(CHILD_FILE) else { return };
    let who = u8::try_from(std::process::id() % 251).unwrap();
    let store = SqliteStore::open(file).await.unwrap();
    work(store, who, 20).await;
}

/// Covers field fault 161.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_processes_share_one_file() {
    let world = World::published().await;
    let path = world.path();
    let test = std::env::current_exe().unwrap();
    let children: Vec<_> = (0..8)
        .map(|_| {
            Command::new(&test)
                .args(["--exact", "contention::child_process", "--nocapture"])
                .env(CHILD_FILE, &path)
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_of_the_application_gets_its_turn_under_load() {
    let world = World::published().await;
    let load = tokio::spawn(work(world.store.clone(), 1, 200));
    let mut longest = Duration::ZERO;
    for _ in 0..20 {
        let since = Instant::now();
        let tx = world.store.begin().await.unwrap();
        longest = longest.max(since.elapsed());
        tx.commit().await.unwrap();
    }
    assert_eq!(load.await.unwrap(), 200);
    assert!(longest < Duration::from_secs(1), "{longest:?}");
}

#[tokio::test]
async fn a_commit_of_another_process_is_heard() {
    let world = World::published().await;
    let other = world.other().await;
    let bus = world.store.wake_bus();
    // What happened before the first call is not news.
    let nothing = tokio::time::timeout(Duration::from_millis(60), bus.heard("inventory")).await;
    assert!(nothing.is_err());
    let ((), emission) = tokio::join!(bus.heard("inventory"), other.event_emit(emit(order())));
    assert!(emission.unwrap().new);
    // A commit between two calls is heard by the second.
    other.event_emit(emit(order())).await.unwrap();
    bus.heard("inventory").await;
    let ((), emission) = tokio::join!(world.store.changed(), async {
        other.event_emit(emit(order())).await.unwrap();
        other.event_emit(emit(order())).await.unwrap()
    });
    assert!(emission.new);
}

#[tokio::test]
async fn a_store_in_memory_lives_as_long_as_its_handles() {
    let store = SqliteStore::in_memory().await.unwrap();
    let second = store.clone();
    drop(store);
    assert!(second.event_emit(emit(order())).await.unwrap().new);
}
