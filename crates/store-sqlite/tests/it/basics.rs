//! Publish, emit, claim, commit, load.

use serde_json::json;
use surefoot_kernel_core::{
    Commit, End, Fact, OperatorStore as _, Phase, RunState, RunStore, Scan, StoreError,
    TakeOverRequest, TxStore as _,
};
use surefoot_store_sqlite::SqliteStore;
use surefoot_testkit::ClaimRows as _;

use crate::support::{LEASE, World, app, claim, load, next, order, outcome, session, step};

#[tokio::test]
async fn a_run_goes_from_its_event_to_its_end() {
    let world = World::published().await;
    let emission = world.emit(order()).await;
    assert!(emission.new);
    assert_eq!((emission.matched, emission.runs.len()), (1, 1));
    let claimed = world.store.claim_rows(claim(10, next())).await;
    assert_eq!(claimed.len(), 1);
    let run = &claimed[0];
    assert_eq!(run.id, emission.runs[0]);
    assert_eq!((run.generation, run.revision, run.attempt, run.failures), (1, 1, 1, 1));

    let first = step(&world.store, run).await.unwrap();
    let second = step(&world.store, &first.run).await.unwrap();
    let result = json!({"done": [1, 2.5, "x"]});
    let end = End::Succeeded { result: result.clone(), message: None, step: None };
    let end = Fact::Ended { end, at: second.now };
    let ended = world.store.run_commit(Commit::new(&second.run, &[end])).await.unwrap();

    let stored = load(&world.store, run.id).await;
    assert_eq!(stored.run, ended.run);
    assert_eq!(stored.run.phase, Phase::Succeeded { result, message: None });
    let journal = stored.journal.unwrap();
    assert_eq!(journal.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [0, 1, 2]);
    let invocation = stored.invocation.unwrap();
    assert_eq!(invocation.trigger, json!({"item": "bolt", "count": 3}));
    assert!(world.store.claim_rows(claim(10, next())).await.is_empty());
}

/// Nobody else would ever see what is written to it.
#[tokio::test]
async fn a_file_that_is_gone_from_its_place_is_neither_read_nor_written() {
    let folder = tempfile::tempdir().unwrap();
    let (path, aside) = (folder.path().join("store.db"), folder.path().join("aside.db"));
    let store = SqliteStore::open(&path).await.unwrap();
    let is_told = async || {
        let read = store.app_list().await.err().map(|error| chain(&error));
        let written = store.run_recover(Scan { app: app(), limit: 1 }).await.err();
        let begun = store.begin().await.err();
        let all = [read, written.map(|error| chain(&error)), begun.map(|error| chain(&error))];
        all.iter().all(|said| {
            said.as_ref().is_some_and(|said| said.contains("moved, replaced or deleted"))
        })
    };
    assert!(store.app_list().await.is_ok() && !is_told().await);
    std::fs::rename(&path, &aside).unwrap();
    assert!(is_told().await && !path.exists());
    std::fs::copy(&aside, &path).unwrap();
    assert!(is_told().await);
    // No other one was begun in its place meanwhile, and the right one is taken as it was.
    std::fs::rename(&aside, &path).unwrap();
    assert!(store.app_list().await.is_ok());
}

fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[tokio::test]
async fn a_stale_commit_writes_nothing() {
    let world = World::published().await;
    let run = world.claimed(1).await.remove(0);
    let stale = outcome(&run, json!(1));
    step(&world.store, &run).await.unwrap();
    assert!(matches!(world.store.run_commit(stale.clone()).await, Err(StoreError::Conflict)));
    let request = TakeOverRequest {
        run: run.id,
        generation: run.generation,
        session: session(),
        lease: LEASE,
    };
    let taken = world.store.run_take_over(request).await.unwrap().unwrap();
    assert_eq!(taken.generation, 2);
    assert!(matches!(world.store.run_commit(stale).await, Err(StoreError::LeaseLost)));
    assert_eq!(load(&world.store, run.id).await.journal.unwrap().len(), 1);
}

#[tokio::test]
async fn a_repeated_claim_finds_what_it_claimed() {
    let world = World::published().await;
    world.emit(order()).await;
    let nonce = next();
    let first = world.store.claim_rows(claim(10, nonce)).await;
    world.emit(order()).await;
    assert_eq!(world.store.claim_rows(claim(10, nonce)).await, first);
    let other = world.store.claim_rows(claim(10, next())).await;
    assert_eq!(other.len(), 1);
    assert_ne!(other[0].id, first[0].id);
}

#[tokio::test]
async fn a_lapsed_lease_is_claimed_again() {
    let world = World::published().await;
    let run = world.claimed(1).await.remove(0);
    assert!(world.store.claim_rows(claim(1, next())).await.is_empty());
    world.pass(LEASE);
    let again = world.store.claim_rows(claim(1, next())).await;
    assert_eq!((again[0].id, again[0].generation, again[0].failures), (run.id, 2, 2));
    let scan = Scan { app: app(), limit: 10 };
    assert_eq!(world.store.run_recover(scan).await.unwrap(), Default::default());
    assert_eq!(again[0].state(), RunState::Running);
}
