//! Transactions of the application, transactional steps, fences.

use std::time::Duration;

use serde_json::json;
use sqlx::{Connection, Row, SqliteConnection};
use surefoot_kernel_core::{
    BoxFuture, Commit, EmitError, EventStore, Fact, FenceError, Locked, RenewRequest, Renewed,
    RowInput, Run, RunStore, StoreError, Timestamp, TxStore, TxWork, Work, decide_row,
};
use surefoot_store_sqlite::{SqliteTx, sqlx};

use crate::schema::raw;
use crate::support::{LEASE, World, emit, load, order, outcome, session, step};

async fn with_stock(world: &World) {
    let mut conn = raw(&world.path()).await;
    sqlx::query("CREATE TABLE stock (item TEXT)").execute(&mut conn).await.unwrap();
}

async fn stock(world: &World) -> i64 {
    let mut conn = raw(&world.path()).await;
    let row = sqlx::query("SELECT count(*) FROM stock").fetch_one(&mut conn).await.unwrap();
    row.get(0)
}

async fn book(conn: &mut SqliteConnection) {
    sqlx::query("INSERT INTO stock VALUES ('bolt')").execute(conn).await.unwrap();
}

/// Covers field fault 68.
/// Covers behaviour 83.
#[tokio::test]
async fn an_event_exists_exactly_if_the_domain_row_does() {
    let world = World::published().await;
    with_stock(&world).await;
    let event = || emit(order().dedupe_key("k1"));

    let mut tx = world.store.begin().await.unwrap();
    book(&mut tx).await;
    assert!(world.store.event_emit_in(&mut tx, event()).await.unwrap().new);
    tx.rollback().await;
    assert_eq!(stock(&world).await, 0);

    let mut tx = world.store.begin().await.unwrap();
    book(&mut tx).await;
    let emission = world.store.event_emit_in(&mut tx, event()).await.unwrap();
    assert!(emission.new, "the key is free again");
    drop(tx);
    assert_eq!(stock(&world).await, 0);
    assert!(run_of(&world, emission.runs[0]).await.is_none());

    let mut tx = world.store.begin().await.unwrap();
    book(&mut tx).await;
    let emission = world.store.event_emit_in(&mut tx, event()).await.unwrap();
    TxStore::commit(&world.store, tx).await.unwrap();
    assert_eq!(stock(&world).await, 1);
    assert!(run_of(&world, emission.runs[0]).await.is_some());
    let repeated = world.store.event_emit(event()).await.unwrap();
    assert_eq!((repeated.new, repeated.event), (false, emission.event));
}

async fn run_of(world: &World, run: surefoot_kernel_core::RunId) -> Option<Run> {
    let request = surefoot_kernel_core::LoadRequest { run, after: None };
    world.store.run_load(request).await.unwrap().map(|stored| stored.run)
}

#[tokio::test]
async fn a_bare_connection_is_refused() {
    let world = World::published().await;
    let mut conn = raw(&world.path()).await;
    let refused = world.store.event_emit_in(&mut conn, emit(order())).await;
    assert!(matches!(refused, Err(EmitError::Store(StoreError::NotInTransaction))));
    let run = world.claimed(1).await.remove(0);
    let fence = world.store.fence(run.id, run.generation);
    let refused = fence.hold(&mut conn).await;
    assert!(matches!(refused, Err(FenceError::Store(StoreError::NotInTransaction))));
}

/// What a transactional step does after it has booked one item.
enum Deed {
    Succeed,
    GiveUp,
    /// Ends the transaction that it was lent.
    EndIt,
    /// Never comes back.
    Hang,
    /// Runs a query that never ends, and ignores that it was stopped.
    Spin,
}

impl TxWork<SqliteTx> for Deed {
    fn work<'a>(&'a mut self, tx: &'a mut SqliteTx, locked: Locked) -> BoxFuture<'a, Work> {
        Box::pin(async move {
            book(tx).await;
            match self {
                Self::Succeed => {}
                Self::GiveUp => return Work::Rollback,
                Self::EndIt => drop(sqlx::query("ROLLBACK").execute(tx).await.unwrap()),
                Self::Hang => std::future::pending().await,
                Self::Spin => drop(sqlx::query(ENDLESS).fetch_one(tx).await),
            }
            done(&locked.run)
        })
    }
}

fn done(run: &Run) -> Work {
    Work::Commit(Box::new(outcome(run, json!("booked"))))
}

#[tokio::test]
async fn work_and_outcome_are_one_transaction() {
    let world = World::published().await;
    with_stock(&world).await;
    let run = world.claimed(1).await.remove(0);
    assert_eq!(world.store.run_transact(run.stamp(), &mut Deed::GiveUp).await.unwrap(), None);
    assert_eq!((stock(&world).await, load(&world.store, run.id).await.run), (0, run.clone()));
    let committed =
        world.store.run_transact(run.stamp(), &mut Deed::Succeed).await.unwrap().unwrap();
    assert_eq!((stock(&world).await, committed.run.seq), (1, 1));
    assert_eq!(load(&world.store, run.id).await.run, committed.run);
    let stale = world.store.run_transact(run.stamp(), &mut Deed::Succeed).await;
    assert!(matches!(stale, Err(StoreError::Conflict)));
    assert_eq!(stock(&world).await, 1, "the work was not called");
}

#[tokio::test]
async fn what_ended_behind_our_back_is_never_half_committed() {
    let world = World::published().await;
    with_stock(&world).await;
    let run = world.claimed(1).await.remove(0);
    let answer = world.store.run_transact(run.stamp(), &mut Deed::EndIt).await;
    assert!(matches!(answer, Err(StoreError::UnknownOutcome(_))), "{answer:?}");
    assert_eq!(load(&world.store, run.id).await.run, run, "no outcome without its work");
    let mut tx = world.store.begin().await.unwrap();
    sqlx::query("ROLLBACK").execute(&mut *tx).await.unwrap();
    assert!(matches!(tx.commit().await, Err(StoreError::UnknownOutcome(_))));
    assert!(step(&world.store, &run).await.is_ok());
}

#[tokio::test]
async fn a_deferred_constraint_is_refused_at_commit() {
    let world = World::published().await;
    let mut conn = raw(&world.path()).await;
    let tables = "CREATE TABLE a (id INTEGER PRIMARY KEY);
        CREATE TABLE b (a INTEGER REFERENCES a (id) DEFERRABLE INITIALLY DEFERRED)";
    sqlx::raw_sql(tables).execute(&mut conn).await.unwrap();
    let mut tx = world.store.begin().await.unwrap();
    sqlx::query("INSERT INTO b VALUES (1)").execute(&mut *tx).await.unwrap();
    let refused = tx.commit().await;
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
    let mut tx = world.store.begin().await.unwrap();
    sqlx::query("INSERT INTO a VALUES (1)").execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
}

/// A query that runs for hours if nobody stops it.
const ENDLESS: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
    SELECT count(*) FROM n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_holds_the_lock_too_long_is_rolled_back() {
    let world = World::published().await;
    with_stock(&world).await;
    let run = world.claimed(1).await.remove(0);
    let answer = world.store.run_transact(run.stamp(), &mut Deed::Hang).await;
    assert!(matches!(answer, Err(StoreError::TransactionTimeout { limit_ms: 2_000 })));
    let answer = world.store.run_transact(run.stamp(), &mut Deed::Spin).await;
    assert!(matches!(answer, Err(StoreError::TransactionTimeout { limit_ms: 2_000 })));
    assert_eq!((stock(&world).await, world.store.lent()), (0, (0, 0)));
    // The lock is free again, and the writer with it.
    assert!(step(&world.store, &run).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_of_the_application_has_two_seconds() {
    let world = World::published().await;
    let mut tx = world.store.begin().await.unwrap();
    let error = sqlx::query(ENDLESS).fetch_one(&mut *tx).await.unwrap_err();
    assert_eq!(error.as_database_error().unwrap().code().as_deref(), Some("9"));
    let ended = tx.commit().await;
    assert!(matches!(ended, Err(StoreError::TransactionTimeout { limit_ms: 2_000 })));
    let tx = world.store.begin().await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_fence_holds_the_run_until_its_transaction_ends() {
    let world = World::published().await;
    let runs = world.claimed(2).await;
    let fence = world.store.fence(runs[0].id, runs[0].generation);
    let mut conn = raw(&world.path()).await;
    for commits in [true, false] {
        let mut tx = conn.begin().await.unwrap();
        fence.hold(&mut tx).await.unwrap();
        let request =
            RenewRequest { session: session(), runs: vec![runs[0].stamp()], lease: LEASE };
        let renewed = world.store.lease_renew(request.clone()).await.unwrap();
        assert_eq!(renewed, [(runs[0].id, Renewed::FenceHeld)]);
        if commits {
            tx.commit().await.unwrap();
        } else {
            tx.rollback().await.unwrap();
        }
        let renewed = world.store.lease_renew(request).await.unwrap();
        assert!(matches!(renewed[0].1, Renewed::Held { .. }), "{renewed:?}");
    }
    // A connection that is dropped with a fence on it lets go of it as well.
    let mut dropped = raw(&world.path()).await;
    let mut tx = dropped.begin().await.unwrap();
    fence.hold(&mut tx).await.unwrap();
    drop(tx);
    dropped.close().await.unwrap();
    let request = RenewRequest { session: session(), runs: vec![runs[0].stamp()], lease: LEASE };
    let renewed = world.store.lease_renew(request).await.unwrap();
    assert!(matches!(renewed[0].1, Renewed::Held { .. }), "{renewed:?}");
}

#[tokio::test]
async fn one_transaction_holds_several_fences() {
    let world = World::published().await;
    let runs = world.claimed(2).await;
    let stamps = vec![runs[0].stamp(), runs[1].stamp()];
    let request = RenewRequest { session: session(), runs: stamps, lease: LEASE };
    for ends in ["commit", "rollback", "drop"] {
        let mut tx = world.store.begin().await.unwrap();
        for run in &runs {
            world.store.fence(run.id, run.generation).hold(&mut tx).await.unwrap();
        }
        let renewed = world.store.lease_renew(request.clone()).await.unwrap();
        assert!(renewed.iter().all(|(_, it)| *it == Renewed::FenceHeld), "{ends}: {renewed:?}");
        match ends {
            "commit" => tx.commit().await.unwrap(),
            "rollback" => tx.rollback().await,
            _ => drop(tx),
        }
        let renewed = world.store.lease_renew(request.clone()).await.unwrap();
        let is_held = |it: &Renewed| matches!(it, Renewed::Held { .. });
        assert!(renewed.iter().all(|(_, it)| is_held(it)), "{ends}: {renewed:?}");
    }
}

#[tokio::test]
async fn a_fence_refuses_before_any_write() {
    let world = World::published().await;
    let runs = world.claimed(2).await;
    let mut conn = raw(&world.path()).await;
    let mut tx = conn.begin().await.unwrap();
    let stale = world.store.fence(runs[0].id, 0);
    assert!(matches!(stale.hold(&mut tx).await, Err(FenceError::LeaseLost)));
    tx.rollback().await.unwrap();

    let cancel = RowInput::Cancel { actor: "mia".to_owned(), reason: "wrong".to_owned() };
    let facts = decide_row(&runs[0], cancel, Timestamp::default()).unwrap();
    world.store.run_commit(Commit::new(&runs[0], &facts)).await.unwrap();
    let mut tx = conn.begin().await.unwrap();
    let canceled = world.store.fence(runs[0].id, runs[0].generation);
    assert!(matches!(canceled.hold(&mut tx).await, Err(FenceError::Canceled)));
    tx.rollback().await.unwrap();

    let why = surefoot_kernel_core::ReleaseReason::HandOver;
    let released = Fact::Released { ready_at: Timestamp::default(), why };
    world.store.run_commit(Commit::new(&runs[1], &[released])).await.unwrap();
    let mut tx = conn.begin().await.unwrap();
    let gone = world.store.fence(runs[1].id, runs[1].generation);
    assert!(matches!(gone.hold(&mut tx).await, Err(FenceError::LeaseLost)));
}

/// Covers field fault 161.
#[tokio::test]
async fn a_lost_race_is_called_a_conflict_wherever_it_hides() {
    let world = World::published().await;
    with_stock(&world).await;
    let mut reader = raw(&world.path()).await;
    let mut tx = reader.begin().await.unwrap();
    sqlx::query("SELECT * FROM stock").fetch_all(&mut *tx).await.unwrap();
    world.emit(order()).await;
    // Deferred, read, then write: 517 at once, whatever the timeout is.
    let error = sqlx::query("INSERT INTO stock VALUES ('nut')").execute(&mut *tx).await;
    let error = error.unwrap_err();
    assert_eq!(error.as_database_error().unwrap().code().as_deref(), Some("517"));
    assert!(world.store.is_transaction_conflict(&error));

    #[derive(Debug, thiserror::Error)]
    #[error("booking failed")]
    struct Booking(#[source] sqlx::Error);
    assert!(world.store.is_transaction_conflict(&Booking(error)));
    let other = Booking(sqlx::Error::RowNotFound);
    assert!(!world.store.is_transaction_conflict(&other));
    tx.rollback().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_holds_the_lock_delays_the_others_and_no_lease_is_lost() {
    let world = World::published().await;
    let runs = world.claimed(3).await;
    let mut conn = raw(&world.path()).await;
    let tx = conn.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let stamps = runs.iter().map(Run::stamp).collect();
    let request = RenewRequest { session: session(), runs: stamps, lease: LEASE };
    let store = world.store.clone();
    let renewal = tokio::spawn(async move { store.lease_renew(request).await });
    let store = world.store.clone();
    let run = runs[0].clone();
    let mut commit = tokio::spawn(async move { step(&store, &run).await });
    let waited = tokio::time::timeout(Duration::from_millis(1_500), &mut commit).await;
    assert!(waited.is_err(), "nobody writes while the lock is held");
    tx.rollback().await.unwrap();
    let renewed = renewal.await.unwrap().unwrap();
    assert!(renewed.iter().all(|(_, renewed)| matches!(renewed, Renewed::Held { .. })));
    assert!(commit.await.unwrap().is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_is_never_let_go_of_makes_the_store_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let options = surefoot_store_sqlite::SqliteOptions::new(&path);
    let options = options.lock_wait(Duration::from_millis(200));
    let store = surefoot_store_sqlite::SqliteStore::open_with(options).await.unwrap();
    let mut conn = raw(&path).await;
    let tx = conn.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let refused = store.event_emit(emit(order())).await;
    assert!(matches!(refused, Err(EmitError::Store(StoreError::Unavailable(_)))), "{refused:?}");
    assert!(matches!(store.begin().await, Err(StoreError::Unavailable(_))));
    tx.rollback().await.unwrap();
    assert!(store.event_emit(emit(order())).await.unwrap().new);
}
