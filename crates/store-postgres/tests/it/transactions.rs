//! Transactions of the application, transactional steps, fences, takeovers.

use std::time::Duration;

use serde_json::json;
use sqlx::{Connection, PgConnection, Row};
use surefoot_kernel_core::{
    BoxFuture, FenceError, Locked, RenewRequest, Renewed, Run, RunStore, StoreError,
    TakeOverRequest, TxStore, TxWork, Work,
};
use surefoot_store_postgres::{PostgresTx, sqlx};

use crate::support::{LEASE, World, load, outcome, session, step};

async fn with_stock(world: &World) {
    let mut conn = world.database.raw().await;
    sqlx::query("CREATE TABLE stock (item text UNIQUE)").execute(&mut conn).await.unwrap();
}

async fn stock(world: &World) -> i64 {
    let mut conn = world.database.raw().await;
    let row = sqlx::query("SELECT count(*) FROM stock").fetch_one(&mut conn).await.unwrap();
    row.get(0)
}

async fn book(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO stock VALUES ('bolt')").execute(conn).await.map(drop)
}

/// What a transactional step does after it has booked one item.
enum Deed {
    Succeed,
    GiveUp,
    /// Ends the transaction that it was lent.
    EndIt,
    /// Books a second time, and passes the error over.
    BookTwice,
    /// Never comes back.
    Hang,
}

impl TxWork<PostgresTx> for Deed {
    fn work<'a>(&'a mut self, tx: &'a mut PostgresTx, locked: Locked) -> BoxFuture<'a, Work> {
        Box::pin(async move {
            book(tx).await.unwrap();
            match self {
                Self::Succeed => {}
                Self::GiveUp => return Work::Rollback,
                Self::EndIt => drop(sqlx::query("ROLLBACK").execute(tx).await.unwrap()),
                Self::BookTwice => assert!(book(tx).await.is_err()),
                Self::Hang => std::future::pending().await,
            }
            Work::Commit(Box::new(outcome(&locked.run, json!("booked"))))
        })
    }
}

#[tokio::test]
async fn work_and_outcome_are_one_transaction() {
    let world = World::new().await;
    with_stock(&world).await;
    let run = world.claimed(1).await.remove(0);
    assert_eq!(world.store.run_transact(run.stamp(), &mut Deed::GiveUp).await.unwrap(), None);
    assert_eq!((stock(&world).await, load(&world.store, run.id).await.run), (0, run.clone()));
    let committed = world.store.run_transact(run.stamp(), &mut Deed::Succeed).await;
    let committed = committed.unwrap().unwrap();
    assert_eq!((stock(&world).await, committed.run.seq), (1, 1));
    assert_eq!(load(&world.store, run.id).await.run, committed.run);
    let stale = world.store.run_transact(run.stamp(), &mut Deed::Succeed).await;
    assert!(matches!(stale, Err(StoreError::Conflict)));
    assert_eq!(world.store.lent(), (0, 0));
}

#[tokio::test]
async fn what_ended_behind_our_back_is_never_half_committed() {
    let world = World::new().await;
    with_stock(&world).await;
    let run = world.claimed(1).await.remove(0);
    let answer = world.store.run_transact(run.stamp(), &mut Deed::EndIt).await;
    assert!(matches!(answer, Err(StoreError::UnknownOutcome(_))), "{answer:?}");
    assert_eq!(load(&world.store, run.id).await.run, run, "no outcome without its work");
    let mut tx = world.store.begin().await.unwrap();
    sqlx::query("COMMIT").execute(&mut *tx).await.unwrap();
    assert!(matches!(tx.commit().await, Err(StoreError::UnknownOutcome(_))));
    assert!(step(&world.store, &run).await.is_ok());
}

/// `COMMIT` after a failed statement answers well, and rolls back.
#[tokio::test]
async fn an_error_that_was_passed_over_is_no_commit() {
    let world = World::new().await;
    with_stock(&world).await;
    let run = world.claimed(1).await.remove(0);
    let answer = world.store.run_transact(run.stamp(), &mut Deed::BookTwice).await;
    assert!(matches!(answer, Err(StoreError::Refused(_))), "{answer:?}");
    assert_eq!((stock(&world).await, load(&world.store, run.id).await.run), (0, run));
    let mut tx = world.store.begin().await.unwrap();
    book(&mut tx).await.unwrap();
    assert!(book(&mut tx).await.is_err());
    let answer = tx.commit().await;
    assert!(matches!(answer, Err(StoreError::Refused(_))), "{answer:?}");
    assert_eq!(stock(&world).await, 0);
}

#[tokio::test]
async fn a_deferred_constraint_is_refused_at_commit() {
    let world = World::new().await;
    let mut conn = world.database.raw().await;
    let tables = "CREATE TABLE a (id int PRIMARY KEY);
        CREATE TABLE b (a int REFERENCES a (id) DEFERRABLE INITIALLY DEFERRED)";
    sqlx::raw_sql(tables).execute(&mut conn).await.unwrap();
    let mut tx = world.store.begin().await.unwrap();
    sqlx::query("INSERT INTO b VALUES (1)").execute(&mut *tx).await.unwrap();
    let refused = tx.commit().await;
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
}

#[tokio::test]
async fn a_step_that_lasts_too_long_is_rolled_back() {
    let limit = Duration::from_millis(200);
    let world = World::with(|options| options.transaction_limit(limit)).await;
    with_stock(&world).await;
    let run = world.claimed(1).await.remove(0);
    let answer = world.store.run_transact(run.stamp(), &mut Deed::Hang).await;
    assert!(matches!(answer, Err(StoreError::TransactionTimeout { limit_ms: 200 })), "{answer:?}");
    assert!(step(&world.store, &run).await.is_ok(), "the row is free again");
    assert_eq!((stock(&world).await, world.store.lent()), (0, (0, 0)));
}

/// A row that is never let go of does not keep others waiting for ever, nor those behind it.
#[tokio::test]
async fn a_lock_that_is_never_let_go_of_makes_its_run_unavailable_and_no_other() {
    let wait = Duration::from_millis(100);
    let world = World::with(|options| options.lock_wait(wait)).await;
    let runs = world.claimed(2).await;
    let mut conn = world.database.raw().await;
    let mut tx = conn.begin().await.unwrap();
    world.store.fence(runs[0].id, runs[0].generation).hold(&mut tx).await.unwrap();
    let (held, free) = tokio::join!(step(&world.store, &runs[0]), step(&world.store, &runs[1]));
    assert!(matches!(held, Err(StoreError::Unavailable(_))), "{held:?}");
    assert!(free.is_ok(), "{free:?}");
    tx.rollback().await.unwrap();
    assert!(step(&world.store, &runs[0]).await.is_ok());
}

#[tokio::test]
async fn one_transaction_holds_several_fences() {
    let world = World::new().await;
    let runs = world.claimed(2).await;
    let stamps = vec![runs[0].stamp(), runs[1].stamp()];
    let request = RenewRequest { session: session(), runs: stamps, lease: LEASE };
    for commits in [true, false] {
        let mut tx = world.store.begin().await.unwrap();
        for run in &runs {
            world.store.fence(run.id, run.generation).hold(&mut tx).await.unwrap();
        }
        let renewed = world.store.lease_renew(request.clone()).await.unwrap();
        assert!(renewed.iter().all(|(_, it)| *it == Renewed::FenceHeld), "{renewed:?}");
        if commits {
            tx.commit().await.unwrap();
        } else {
            tx.rollback().await;
        }
        let renewed = world.store.lease_renew(request.clone()).await.unwrap();
        let is_held = |it: &Renewed| matches!(it, Renewed::Held { .. });
        assert!(renewed.iter().all(|(_, it)| is_held(it)), "{renewed:?}");
    }
}

#[tokio::test]
async fn a_bare_connection_is_refused() {
    let world = World::new().await;
    let mut conn = world.database.raw().await;
    let run = world.claimed(1).await.remove(0);
    let refused = world.store.fence(run.id, run.generation).hold(&mut conn).await;
    assert!(matches!(refused, Err(FenceError::Store(StoreError::NotInTransaction))));
}

/// A takeover waits for a commit in doubt, and then tells of all that it wrote: the row, and the journal of it.
#[tokio::test]
async fn a_takeover_that_waited_sees_the_journal_of_what_it_waited_for() {
    let world = World::new().await;
    let run = world.claimed(1).await.remove(0);
    let mut conn = world.database.raw().await;
    let mut tx = conn.begin().await.unwrap();
    write_behind(&mut tx, &run).await;
    let request = TakeOverRequest { run: run.id, generation: 1, session: session(), lease: LEASE };
    let store = world.store.clone();
    let takeover = tokio::spawn(async move { store.run_take_over(request).await });
    wait_for_lock(&world).await;
    assert!(!takeover.is_finished());
    tx.commit().await.unwrap();
    let taken = takeover.await.unwrap().unwrap().unwrap();
    assert_eq!((taken.generation, taken.seq), (2, run.seq + 1));
    let stored = load(&world.store, run.id).await;
    assert_eq!((stored.journal.unwrap().len(), stored.run), (1, taken));
}

/// One step, written as a commit of somebody who is not answered.
async fn write_behind(conn: &mut PgConnection, run: &Run) {
    let id = sqlx::types::Uuid::from_bytes(run.id.to_bytes());
    let commit = outcome(run, json!(1));
    let facts = commit.journal.unwrap().facts;
    let row = "UPDATE surefoot.run SET revision = revision + 1, seq = seq + 1 WHERE id = $1";
    sqlx::query(row).bind(id).execute(&mut *conn).await.unwrap();
    let journal = "INSERT INTO surefoot.journal (run, seq, count, generation, at, facts)
        VALUES ($1, 0, 1, 1, 0, $2)";
    sqlx::query(journal).bind(id).bind(facts).execute(conn).await.unwrap();
}

/// Until somebody waits for a lock of this database.
async fn wait_for_lock(world: &World) {
    let mut conn = world.database.raw().await;
    let waiting = "SELECT count(*) AS waiting FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    loop {
        let row = sqlx::query(waiting).fetch_one(&mut conn).await.unwrap();
        if row.get::<i64, _>("waiting") > 0 {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_lost_race_is_called_a_conflict_wherever_it_hides() {
    let world = World::new().await;
    with_stock(&world).await;
    let (mut one, mut two) = (world.database.raw().await, world.database.raw().await);
    book(&mut one).await.unwrap();
    let mut tx = two.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    sqlx::query("SELECT FROM stock").fetch_all(&mut *tx).await.unwrap();
    sqlx::query("UPDATE stock SET item = 'nut'").execute(&mut one).await.unwrap();
    let error = sqlx::query("UPDATE stock SET item = 'cog'").execute(&mut *tx).await.unwrap_err();
    assert_eq!(error.as_database_error().unwrap().code().as_deref(), Some("40001"));
    assert!(world.store.is_transaction_conflict(&error));

    #[derive(Debug)]
    struct Booking(sqlx::Error);
    impl std::fmt::Display for Booking {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("booking failed")
        }
    }
    impl std::error::Error for Booking {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    assert!(world.store.is_transaction_conflict(&Booking(error)));
    assert!(!world.store.is_transaction_conflict(&Booking(sqlx::Error::RowNotFound)));
}
