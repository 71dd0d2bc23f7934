//! Transactional steps: all or nothing, with the outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use surefoot_kernel_core::{Code, Dependency, Fact, Micros, RunState, StoreError};
use surefoot_language::Stop;
use surefoot_testkit::MemoryConflict;
use surefoot_worker::Tick;

use crate::actions::{Actions, n};
use crate::plans::{act, saved, set, timed};
use crate::store::{Op, Verdict, unavailable, unknown};
use crate::world::{World, until};

fn books(after: fn() -> Result<(), Stop>) -> Actions {
    Actions::default().book(move |cx, config| {
        let booked = cx.tx().table().get("bolt").map_or(0, |it| it.parse::<i64>().unwrap());
        cx.tx().table().insert("bolt".to_owned(), (booked + 1).to_string());
        Box::pin(async move {
            after()?;
            Ok(config)
        })
    })
}

fn booked(world: &World) -> Option<String> {
    world.store.inner.table_row("bolt")
}

/// Covers behaviour 127.
#[tokio::test(start_paused = true)]
async fn what_a_failing_or_waiting_step_wrote_is_gone() {
    type After = fn() -> Result<(), Stop>;
    let cases: [(After, RunState); 4] = [
        (|| Err(Stop::fail("SOLD_OUT", "none left")), RunState::Failed),
        (|| Err(Stop::retry("BUSY", "later")), RunState::Queued),
        (|| Err(Stop::wait_for(Dependency::on("approval", "7"))), RunState::Waiting),
        (|| panic!("a defect"), RunState::Failed),
    ];
    for (after, state) in cases {
        let world = World::new(books(after));
        let run = world.start(vec![act("book", n(1))]).await;
        world.worker().run_one().await.unwrap();
        assert_eq!((world.state(run).await, booked(&world)), (state, None));
    }
}

/// What was pending is written in the same transaction: one commit for inputs, variable, work, outcome and the end.
#[tokio::test(start_paused = true)]
async fn pending_facts_are_written_with_the_outcome() {
    let world = World::new(books(|| Ok(())));
    let run = world.start(vec![set("x", n(1)), saved(act("book", n(2)), "y")]).await;
    world.worker().run_one().await.unwrap();
    assert_eq!(
        (world.state(run).await, booked(&world).as_deref()),
        (RunState::Succeeded, Some("1"))
    );
    assert_eq!((world.store.count("transact"), world.store.count("commit")), (1, 0));
    assert_eq!(world.outputs(run).await, [n(1), n(2)]);
}

/// Covers behaviour 128.
/// Covers field fault 38.
#[tokio::test(start_paused = true)]
async fn a_transaction_that_loses_is_tried_three_times_in_place_then_released() {
    // Once the database says so to a statement of the action, once at the commit.
    for by_statement in [true, false] {
        let world = World::new(if by_statement {
            books(|| Err(MemoryConflict)?)
        } else {
            books(|| Ok(()))
        });
        if !by_statement {
            world.store.on(|op| match op {
                Op::Transact => Verdict::Fail(StoreError::TransactionConflict("40001".into())),
                _ => Verdict::Go,
            });
        }
        let run = world.start(vec![act("book", n(1))]).await;
        let worker = world.worker();
        worker.run_one().await.unwrap();
        let released = world.run(run).await;
        assert_eq!((released.state(), booked(&world)), (RunState::Queued, None));
        assert_eq!(released.last_failure.unwrap().code, Code::TRANSACTION_CONFLICT);
        assert_eq!(world.store.count("transact"), 4);
        if !by_statement {
            world.store.heal();
            assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
            assert_eq!(booked(&world).as_deref(), Some("1"));
        }
    }
}

/// Covers behaviour 128.
#[tokio::test(start_paused = true)]
async fn a_conflict_that_passes_costs_no_failure() {
    let calls = AtomicUsize::new(0);
    let world = World::new(Actions::default().book(move |_, config| {
        let lost = calls.fetch_add(1, Ordering::SeqCst) < 2;
        Box::pin(async move {
            if lost {
                Err(MemoryConflict)?;
            }
            Ok(config)
        })
    }));
    let run = world.start(vec![act("book", n(1))]).await;
    world.worker().run_one().await.unwrap();
    assert_eq!((world.state(run).await, world.run(run).await.attempt), (RunState::Succeeded, 1));
    assert_eq!(world.log().count("book.run"), 3);
}

/// Covers behaviour 129.
/// Covers field fault 26.
#[tokio::test(start_paused = true)]
async fn a_connection_that_is_lost_at_commit_is_no_conflict_and_nothing_is_done_twice() {
    for landed in [true, false] {
        let world = World::new(books(|| Ok(())));
        let run = world.start(vec![act("book", n(1)), act("mail", n(2))]).await;
        let mut lost = false;
        world.store.on(move |op| match op {
            Op::Transact if !lost => {
                lost = true;
                if landed { Verdict::Lose(unknown()) } else { Verdict::Fail(unknown()) }
            }
            _ => Verdict::Go,
        });
        world.worker().run_one().await.unwrap();
        assert_eq!(
            (world.state(run).await, booked(&world).as_deref()),
            (RunState::Succeeded, Some("1"))
        );
        assert_eq!(world.store.count("take_over"), 1);
        assert_eq!(world.log().count("book.run"), 1);
        let failed = |fact: &Fact| matches!(fact, Fact::StepFailed { .. });
        assert!(!world.facts(run).await.iter().any(failed));
    }
}

/// A transaction that was open for too long is rolled back, and is a failure that may pass.
#[tokio::test(start_paused = true)]
async fn a_transaction_timeout_is_tried_again() {
    let world = World::new(books(|| Ok(())));
    let mut slow = true;
    world.store.on(move |op| match op {
        Op::Transact if slow => {
            slow = false;
            Verdict::Fail(StoreError::TransactionTimeout { limit_ms: 2_000 })
        }
        _ => Verdict::Go,
    });
    let run = world.start(vec![act("book", n(1))]).await;
    let worker = world.worker();
    worker.run_one().await.unwrap();
    let code = world.run(run).await.last_failure.unwrap().code;
    assert_eq!(code, Code::TRANSACTION_TIMEOUT);
    assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
}

/// The future is dropped after its grace, and with it everything that it wrote.
#[tokio::test(start_paused = true)]
async fn a_transactional_step_past_its_time_is_rolled_back() {
    let world = World::new(Actions::default().book(|cx, config| {
        cx.tx().table().insert("bolt".to_owned(), "1".to_owned());
        Box::pin(async move {
            std::future::pending::<()>().await;
            Ok(config)
        })
    }));
    let run = world.start(vec![timed(act("book", n(1)), Micros::from_secs(5))]).await;
    world.worker().run_one().await.unwrap();
    let row = world.run(run).await;
    assert_eq!((row.last_failure.unwrap().code, booked(&world)), (Code::TIMEOUT, None));
}

/// A store that is away for a moment costs time, not a failure.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_is_waited_for_while_the_lease_lives() {
    let world = World::new(books(|| Ok(())));
    let run = world.start(vec![act("book", n(1)), act("mail", n(1))]).await;
    let mut away = 6;
    world.store.on(move |op| match op {
        Op::Transact | Op::Commit(_) if away > 0 => {
            away -= 1;
            Verdict::Fail(unavailable())
        }
        _ => Verdict::Go,
    });
    world.worker().run_one().await.unwrap();
    let row = world.run(run).await;
    assert_eq!((row.state(), row.attempt), (RunState::Succeeded, 1));
}

/// A store that stays away gets its run back by the end of the lease, and nothing is lost.
#[tokio::test(start_paused = true)]
async fn a_store_that_stays_away_ends_the_work_with_the_lease() {
    let world = World::new(books(|| Ok(())));
    let run = world.start(vec![act("book", n(1))]).await;
    world.store.on(|op| match op {
        Op::Transact | Op::Commit(_) | Op::Renew(_) => Verdict::Fail(unavailable()),
        _ => Verdict::Go,
    });
    let began = tokio::time::Instant::now();
    world.worker().run_one().await.unwrap();
    assert!(began.elapsed() <= Duration::from_secs(123), "{:?}", began.elapsed());
    assert_eq!(world.settle(&world.other_worker(), run).await, RunState::Succeeded);
    assert_eq!(booked(&world).as_deref(), Some("1"));
}

/// Covers field fault 15.
#[tokio::test(start_paused = true)]
async fn a_cancel_request_between_reading_and_the_transaction_is_seen_inside_it() {
    let world = World::new(books(|| Ok(())));
    let run = world.start(vec![act("book", n(1))]).await;
    let gate = Arc::new(tokio::sync::Notify::new());
    let held = gate.clone();
    world.store.on(move |op| match op {
        Op::Transact => Verdict::Wait(held.clone()),
        _ => Verdict::Go,
    });
    let worker = world.worker();
    let driving = tokio::spawn(async move { worker.tick(Tick::max_runs(1)).await });
    until("the transaction is asked for", || world.store.count("transact") == 1).await;
    world.other().cancel(run, "stop it").await.unwrap();
    gate.notify_one();
    driving.await.unwrap().unwrap();
    assert_eq!((world.state(run).await, booked(&world)), (RunState::Canceled, None));
    assert_eq!(world.log().count("book"), 0);
}
