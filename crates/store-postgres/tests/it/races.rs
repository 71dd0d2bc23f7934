//! Writers that meet: on a budget, on a signal, and with a server that ends their sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use surefoot_testkit::ClaimRows as _;

use serde_json::json;
use sqlx::Row;
use surefoot_kernel_core::{
    Amounts, Commit, Dependency, EventStore, Fact, Run, RunState, RunStore, SendSignal, Signal,
    StepCharge, StoreError, Timestamp, WakeBus,
};
use surefoot_store_postgres::{PostgresStore, sqlx};
use tokio::task::JoinSet;

use crate::support::{World, app, claim, load, next, outcome, scope, step};

fn uuid(run: &Run) -> sqlx::types::Uuid {
    sqlx::types::Uuid::from_bytes(run.id.to_bytes())
}

/// Charges of many runs to one root, in two processes: the cap holds, and the sum is exact.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn charges_of_many_writers_add_up() {
    let world = World::new().await;
    let other = world.other().await;
    let runs = world.claimed(60).await;
    let mut conn = world.database.raw().await;
    let root = uuid(&runs[0]);
    let one_root = "UPDATE surefoot.run SET root = $1";
    sqlx::query(one_root).bind(root).execute(&mut conn).await.unwrap();
    let cap = "INSERT INTO surefoot.root_budget VALUES ($1, 'mails', 0, 20000000)";
    sqlx::query(cap).bind(root).execute(&mut conn).await.unwrap();
    let mut charges = JoinSet::new();
    for (index, run) in runs.iter().enumerate() {
        let store = if index % 2 == 0 { world.store.clone() } else { other.clone() };
        let run = load(&world.store, run.id).await.run;
        let amounts = Amounts::of([("mails", 1.0), ("calls", 2.0)]).unwrap();
        let charge = StepCharge { step: "steps.0".into(), amounts };
        let commit = Commit::new(&run, &[Fact::Charged(charge)]);
        charges.spawn(async move { store.run_commit(commit).await });
    }
    let answers = charges.join_all().await;
    let refused = |it: &&Result<_, StoreError>| matches!(it, Err(StoreError::BudgetExceeded(_)));
    assert_eq!(answers.iter().filter(|it| it.is_ok()).count(), 20, "{answers:?}");
    assert_eq!(answers.iter().filter(refused).count(), 40, "{answers:?}");
    let used =
        "SELECT dimension, used FROM surefoot.root_budget WHERE root = $1 ORDER BY dimension";
    let rows = sqlx::query(used).bind(root).fetch_all(&mut conn).await.unwrap();
    let used: Vec<(String, i64)> = rows.iter().map(|it| (it.get(0), it.get(1))).collect();
    assert_eq!(used, [("calls".to_owned(), 40_000_000), ("mails".to_owned(), 20_000_000)]);
}

/// A signal is sent while a run parks on it: whichever comes later sees the other, without a pass of recovery.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_park_and_its_signal_never_miss_each_other() {
    let world = World::new().await;
    let other = world.other().await;
    for round in 0..60 {
        let run = world.claimed(1).await.remove(0);
        let on = Some(Dependency::on("approval", format!("{round}")));
        let at = Timestamp::from_micros(1);
        let park = Fact::Parked { step: "steps.0".into(), on, deadline: None, spins: 0, at };
        let signal = Signal::new("approval", format!("{round}")).check().unwrap();
        let send = SendSignal { app: app(), scope: Some(scope()), signal };
        let commit = Commit::new(&run, &[park]);
        let (parked, sent) = tokio::join!(world.store.run_commit(commit), other.signal_send(send));
        parked.unwrap();
        assert!(sent.unwrap().new);
        let row = load(&world.store, run.id).await.run;
        assert_eq!(row.state(), RunState::Queued, "round {round}");
        assert_eq!(world.store.claim_rows(claim(1, next())).await[0].id, run.id);
    }
}

/// Steps until the answer is not known; then what is there is looked at.
async fn walk(store: PostgresStore, mut run: Run, stop: Arc<AtomicBool>) -> (u64, u64) {
    let (mut known, mut unknown) = (0, 0);
    while !stop.load(Ordering::SeqCst) {
        match step(&store, &run).await {
            Ok(committed) => {
                known += 1;
                run = committed.run;
            }
            Err(error) => {
                let is_lost =
                    matches!(error, StoreError::UnknownOutcome(_) | StoreError::Unavailable(_));
                assert!(is_lost, "{error:?}");
                unknown += 1;
                let Some(stored) = reload(&store, &run).await else { continue };
                let moved = stored.seq - run.seq;
                let may_be = if matches!(error, StoreError::UnknownOutcome(_)) { 1 } else { 0 };
                assert!(moved <= may_be, "{error:?}, and {moved} steps are there");
                run = stored;
            }
        }
    }
    (known, unknown)
}

async fn reload(store: &PostgresStore, run: &Run) -> Option<Run> {
    let request = surefoot_kernel_core::LoadRequest { run: run.id, after: None };
    store.run_load(request).await.ok().flatten().map(|stored| stored.run)
}

/// The server ends sessions at any moment: what was acknowledged is there, and nothing is there by half.
///
/// Covers behaviour 129.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_are_killed_tear_nothing() {
    let world = World::new().await;
    let runs = world.claimed(20).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut walks = JoinSet::new();
    for run in runs.clone() {
        walks.spawn(walk(world.store.clone(), run, stop.clone()));
    }
    let mut conn = world.database.raw().await;
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
        ORDER BY random() LIMIT 1) AS one";
    for _ in 0..60 {
        sqlx::query(kill).fetch_one(&mut conn).await.unwrap();
        // So that the rest has time to get somewhere.
        for run in &runs[..3] {
            reload(&world.store, run).await;
        }
    }
    stop.store(true, Ordering::SeqCst);
    let walked = walks.join_all().await;
    let known: u64 = walked.iter().map(|(known, _)| known).sum();
    let unknown: u64 = walked.iter().map(|(_, unknown)| unknown).sum();
    assert!(known > 0 && unknown > 0, "{known} steps, {unknown} lost answers");
    let other = world.other().await;
    for run in runs {
        let stored = load(&other, run.id).await;
        let journal = stored.journal.unwrap();
        assert_eq!(journal.len(), usize::try_from(stored.run.seq).unwrap());
        assert_eq!(stored.run.revision, run.revision + stored.run.seq);
    }
}

/// One announcement is heard by the other process, also one that came between two calls.
#[tokio::test]
async fn what_one_process_announces_another_hears() {
    let world = World::new().await;
    let (here, there) = (world.store.wake_bus(), world.other().await.wake_bus());
    // The first news is that the connection is there.
    there.heard("inventory").await;
    here.announce("inventory").await;
    there.heard("inventory").await;
    let (heard, ()) = tokio::join!(there.heard("inventory"), here.announce("inventory"));
    assert_eq!(heard, ());
    here.announce("another").await;
    let nothing = std::time::Duration::from_millis(200);
    assert!(tokio::time::timeout(nothing, there.heard("inventory")).await.is_err());
}

/// The session that listens is ended again and again: it comes back each time, and is the only one.
///
/// Covers field fault 70.
#[tokio::test]
async fn a_listener_that_is_killed_comes_back_and_leaves_nothing_behind() {
    let world = World::new().await;
    let (here, there) = (world.store.wake_bus(), world.other().await.wake_bus());
    there.heard("inventory").await;
    let mut conn = world.database.raw().await;
    let kill =
        "SELECT count(*) AS listeners, count(*) FILTER (WHERE pg_terminate_backend(pid)) AS killed
        FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'";
    for round in 0..100 {
        let row = sqlx::query(kill).fetch_one(&mut conn).await.unwrap();
        assert!(row.get::<i64, _>("listeners") <= 1, "round {round}");
        if row.get::<i64, _>("killed") == 1 {
            // That it was lost, and that it is back.
            there.heard("inventory").await;
        }
    }
    let listens = "SELECT count(*) AS listeners FROM pg_stat_activity
        WHERE datname = current_database() AND query LIKE 'LISTEN%'";
    loop {
        let row = sqlx::query(listens).fetch_one(&mut conn).await.unwrap();
        if row.get::<i64, _>("listeners") == 1 {
            break;
        }
        tokio::task::yield_now().await;
    }
    here.announce("inventory").await;
    there.heard("inventory").await;
}

/// A commit of a batch that concerns a budget may break a rule of the schema like any other: it fails alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_culprit_of_a_transaction_fails_alone() {
    let world = World::with(|options| options.committers(1)).await;
    let runs = world.claimed(16).await;
    let mut tasks = JoinSet::new();
    for (index, run) in runs.into_iter().enumerate() {
        let amounts = Amounts::of([("mails", 1.0)]).unwrap();
        let charge = Fact::Charged(StepCharge { step: "steps.0".into(), amounts });
        let mut commit = Commit::new(&run, &[charge]);
        if index == 5 {
            // No text of the database has that character.
            commit.journal.as_mut().unwrap().facts = "\0".into();
        }
        let store = world.store.clone();
        tasks.spawn(async move { (index, run, store.run_commit(commit).await) });
    }
    for (index, run, answer) in tasks.join_all().await {
        if index == 5 {
            assert!(matches!(answer, Err(StoreError::Refused(_))), "{answer:?}");
            assert!(world.store.run_commit(outcome(&run, json!(1))).await.is_ok());
        } else {
            assert!(answer.is_ok(), "{index}: {answer:?}");
        }
    }
}
