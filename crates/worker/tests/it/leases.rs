//! Leases and heartbeats.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use surefoot_kernel_core::{Commit, Fact, RunState, RunStore};
use surefoot_worker::{Kernel, Tick};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::actions::{Actions, n};
use crate::plans::act;
use crate::store::{Op, Verdict, unavailable};
use crate::world::{APP, World, until};

fn sleeps(span: Duration) -> Actions {
    Actions::default().mail(move |_, config| async move {
        tokio::time::sleep(span).await;
        Ok(config)
    })
}

/// Covers behaviour 98.
/// Covers field fault 17.
/// Covers field fault 18.
#[tokio::test(start_paused = true)]
async fn an_hour_under_a_lease_of_thirty_seconds_is_one_execution() {
    let world = World::new(sleeps(Duration::from_secs(3600)));
    let run = world.start(vec![act("mail", n(1))]).await;
    let lease = Duration::from_secs(30);
    let running = world.builder().lease(lease).start().await.unwrap();
    until("the hook runs", || world.log().count("mail.run") == 1).await;
    let other = world.other().worker(world.module.clone()).lease(lease).start().await.unwrap();
    let ended = world.kernel.await_run(run).await.unwrap();
    assert_eq!((ended.state(), ended.attempt), (RunState::Succeeded, 1));
    assert_eq!(world.log().count("mail.run"), 1);
    // At a third of the lease, a little early.
    let renewals = world.store.count("renew");
    assert!((360..=450).contains(&renewals), "{renewals}");
    running.stop(Duration::ZERO).await;
    other.stop(Duration::ZERO).await;
}

/// Covers behaviour 99.
/// Covers field fault 44.
#[tokio::test(start_paused = true)]
async fn renewals_that_fail_or_panic_fire_the_token_before_the_lease_ends() {
    for panics in [false, true] {
        let told = Arc::new(std::sync::Mutex::new(None));
        let noted = told.clone();
        let world = World::new(Actions::default().mail(move |cx, config| {
            let noted = noted.clone();
            async move {
                if cx.attempt() == 1 {
                    cx.canceled().await;
                    *noted.lock().unwrap() = Some(Instant::now());
                    std::future::pending::<()>().await;
                }
                Ok(config)
            }
        }));
        let run = world.start(vec![act("mail", n(1))]).await;
        world.store.on(move |op| match op {
            Op::Renew(_) if panics => Verdict::Panic,
            Op::Renew(_) => Verdict::Fail(unavailable()),
            _ => Verdict::Go,
        });
        let began = Instant::now();
        let running = world.builder().start().await.unwrap();
        until("the token fires", || told.lock().unwrap().is_some()).await;
        let told = told.lock().unwrap().unwrap() - began;
        assert!(told >= Duration::from_secs(100) && told < Duration::from_secs(120), "{told:?}");
        // It was tried again and again, and nothing was released by it.
        assert!(world.store.count("renew") >= 5);
        assert_eq!(
            (world.state(run).await, world.run(run).await.generation),
            (RunState::Running, 1)
        );
        assert!(running.health().is_degraded());
        world.store.heal();
        assert_eq!(world.kernel.await_run(run).await.unwrap().state(), RunState::Succeeded);
        assert_eq!(world.log().count("mail.run"), 2);
        running.stop(Duration::ZERO).await;
    }
}

/// Covers behaviour 99.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_fails_for_a_while_costs_nothing() {
    let world = World::new(sleeps(Duration::from_secs(600)));
    let run = world.start(vec![act("mail", n(1))]).await;
    let mut failures = 4;
    world.store.on(move |op| match op {
        Op::Renew(_) if failures > 0 => {
            failures -= 1;
            Verdict::Fail(unavailable())
        }
        _ => Verdict::Go,
    });
    let running = world.builder().start().await.unwrap();
    let ended = world.kernel.await_run(run).await.unwrap();
    assert_eq!((ended.state(), ended.attempt), (RunState::Succeeded, 1));
    running.stop(Duration::ZERO).await;
}

/// Covers behaviour 100.
/// Covers field fault 44.
#[tokio::test(start_paused = true)]
async fn once_a_renewal_came_back_stale_nothing_more_is_written() {
    let world = World::new(Actions::default().mail(|cx, config| async move {
        cx.canceled().await;
        // It succeeds all the same.
        Ok(config)
    }));
    let run = world.start(vec![act("mail", n(1))]).await;
    let running = world.builder().start().await.unwrap();
    until("the hook runs", || world.log().count("mail.run") == 1).await;
    let commits = world.store.count("commit");
    let row = world.run(run).await;
    world.store.inner.run_commit(Commit::new(&row, &[Fact::FenceRaised])).await.unwrap();
    let before = world.run(run).await;
    until("the worker lets go", || running.health().busy == 0).await;
    assert_eq!((world.store.count("commit"), world.run(run).await), (commits, before));
    running.stop(Duration::ZERO).await;
}

/// Covers field fault 41.
#[test]
fn leases_are_renewed_while_every_thread_of_the_runtime_is_blocked() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(async {
        let renewals = Arc::new(AtomicUsize::new(0));
        let seen = renewals.clone();
        let world = World::new(Actions::default().mail(move |_, config| {
            let seen = seen.clone();
            async move {
                // Longer than the lease and never back to the runtime. The thread sleeps, since one that spins takes
                // the processor from the keeper's thread too, and that is not what this is about.
                let began = std::time::Instant::now();
                while began.elapsed() < Duration::from_secs(60) && seen.load(Ordering::SeqCst) < 5 {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok(config)
            }
        }));
        let store = world.store.fork();
        store.on(move |op| {
            if let Op::Renew(_) = op {
                renewals.fetch_add(1, Ordering::SeqCst);
            }
            Verdict::Go
        });
        // The clock of the system: so the keeper has a thread of its own.
        let kernel = Kernel::new(APP, store);
        world.publish("work", vec![act("mail", n(1))]).await;
        let runs = [world.emit("work").await, world.emit("work").await];
        // Long enough that a machine with much else to do does not lose it.
        let worker = kernel.worker(world.module.clone()).lease(Duration::from_secs(6));
        let running = worker.start().await.unwrap();
        for run in runs {
            let ended = kernel.await_run(run).await.unwrap();
            assert_eq!((ended.state(), ended.attempt), (RunState::Succeeded, 1));
        }
        assert_eq!(world.log().count("mail.run"), 2);
        running.stop(Duration::from_secs(1)).await;
    });
}

/// Covers field fault 42.
#[tokio::test(start_paused = true)]
async fn a_dead_workers_run_is_taken_up_a_second_after_its_lease() {
    let world = World::new(Actions::default().mail(|cx, config| async move {
        if cx.attempt() == 1 {
            std::future::pending::<()>().await;
        }
        Ok(config)
    }));
    let run = world.start(vec![act("mail", n(1))]).await;
    let doomed = world.worker();
    let began = Instant::now();
    let crash = tokio::spawn(async move { doomed.run_one().await });
    until("the hook runs", || world.log().count("mail.run") == 1).await;
    crash.abort();
    let running = world.other_worker().start().await.unwrap();
    world.kernel.await_run(run).await.unwrap();
    let took = began.elapsed();
    // The last second is that of the one who waits for it in another process.
    assert!(took >= Duration::from_secs(120) && took <= Duration::from_secs(122), "{took:?}");
    running.stop(Duration::ZERO).await;
}

/// Covers field fault 43.
#[tokio::test(start_paused = true)]
async fn ten_thousand_heartbeats_a_second_are_two_writes() {
    let world = World::new(Actions::default().mail(|cx, config| async move {
        for _ in 0..10 {
            for _ in 0..10_000 {
                cx.heartbeat().await?;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok(config)
    }));
    let run = world.start(vec![act("mail", n(1))]).await;
    let running = world.builder().start().await.unwrap();
    let ended = world.kernel.await_run(run).await.unwrap();
    assert_eq!(ended.state(), RunState::Succeeded);
    let renewals = world.store.count("renew");
    assert!((5..=20).contains(&renewals), "{renewals}");
    running.stop(Duration::ZERO).await;
}

/// Covers field fault 45.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_races_the_end_of_a_run_harms_nobody() {
    let world = World::new(sleeps(Duration::from_secs(50)));
    let run = world.start(vec![act("mail", n(1))]).await;
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    // The renewal is on its way while the run ends.
    world.store.on(move |op| match op {
        Op::Renew(_) => Verdict::Wait(held.clone()),
        _ => Verdict::Go,
    });
    let running = world.builder().start().await.unwrap();
    let ended = world.kernel.await_run(run).await.unwrap();
    gate.notify_one();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((world.run(run).await, ended.state()), (ended, RunState::Succeeded));
    assert!(!running.health().is_degraded());
    running.stop(Duration::ZERO).await;
}

/// Covers field fault 22.
#[tokio::test(start_paused = true)]
async fn a_claim_that_came_late_is_renewed_before_anything_begins_or_given_up() {
    for (late, begins) in [(70, true), (115, false)] {
        let world = World::new(Actions::default());
        let renewed = Arc::new(AtomicUsize::new(0));
        let run = world.start(vec![act("mail", n(1))]).await;
        let gate = Arc::new(Notify::new());
        let (held, seen) = (gate.clone(), renewed.clone());
        world.store.on(move |op| match op {
            Op::Claim => Verdict::Hold(held.clone()),
            Op::Renew(_) if !begins => Verdict::Fail(unavailable()),
            Op::Renew(_) => {
                seen.fetch_add(1, Ordering::SeqCst);
                Verdict::Go
            }
            _ => Verdict::Go,
        });
        let worker = world.worker();
        let driving = tokio::spawn(async move { worker.run_one().await });
        tokio::time::sleep(Duration::from_secs(late)).await;
        gate.notify_one();
        driving.await.unwrap().unwrap();
        assert_eq!(world.log().count("mail.run"), usize::from(begins));
        assert_eq!(renewed.load(Ordering::SeqCst) > 0, begins);
        let state = if begins { RunState::Succeeded } else { RunState::Running };
        assert_eq!(world.state(run).await, state);
    }
}

/// Covers field fault 23.
#[tokio::test(start_paused = true)]
async fn workers_that_all_lose_the_store_for_three_leases_do_nothing_twice() {
    let world = World::new(sleeps(Duration::from_secs(100)).pay(|_, config| async move {
        tokio::time::sleep(Duration::from_secs(20)).await;
        Ok(config)
    }));
    let steps = vec![act("compute", n(0)), act("book", n(1)), act("pay", n(2)), act("book", n(3))];
    world.publish("work", steps).await;
    let mut runs = Vec::new();
    for _ in 0..6 {
        runs.push(world.emit("work").await);
    }
    let kernels = [world.other(), world.other(), world.other()];
    let mut workers = Vec::new();
    for kernel in &kernels {
        workers.push(kernel.worker(world.module.clone()).concurrency(2).start().await.unwrap());
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    for kernel in &kernels {
        kernel.store().on(|_| Verdict::Fail(unavailable()));
    }
    tokio::time::sleep(Duration::from_secs(360)).await;
    for kernel in &kernels {
        kernel.store().heal();
        tokio::time::sleep(Duration::from_secs(50)).await;
    }
    for run in runs {
        assert!(world.kernel.await_run(run).await.is_ok());
        assert!(matches!(world.state(run).await, RunState::Succeeded | RunState::NeedsAttention));
        // Called once at most; one whose answer could not be recorded was asked about.
        let marks = world.facts(run).await.into_iter();
        assert_eq!(marks.filter(|fact| matches!(fact, Fact::CallMarked { .. })).count(), 1);
    }
    assert_eq!(world.log().count("pay.run"), 6);
    for worker in workers {
        worker.stop(Duration::ZERO).await;
    }
}

/// The fence of an action's own transaction keeps renewals away for as long as it is open.
#[tokio::test(start_paused = true)]
async fn a_held_fence_is_no_error_for_the_keeper() {
    let store = crate::store::TestStore::new();
    let inner = store.inner.clone();
    let actions = Actions::default().mail(move |cx, config| {
        let inner = inner.clone();
        async move {
            let mut tx = surefoot_kernel_core::TxStore::begin(&inner).await?;
            cx.heartbeat_in(&mut tx).await?;
            cx.heartbeat().await?;
            tokio::time::sleep(Duration::from_secs(60)).await;
            cx.heartbeat().await?;
            tx.table().insert("bolt".to_owned(), "1".to_owned());
            surefoot_kernel_core::TxStore::commit(&inner, tx).await?;
            Ok(config)
        }
    });
    let world = World::on(store, actions);
    let run = world.start(vec![act("mail", n(1))]).await;
    let worker = world.worker();
    worker.tick(Tick::max_runs(1)).await.unwrap();
    assert_eq!(world.state(run).await, RunState::Succeeded);
    assert_eq!(world.store.inner.table_row("bolt").as_deref(), Some("1"));
    assert!(world.store.count("renew") >= 2);
}

/// Covers field fault 39.
#[tokio::test(start_paused = true)]
async fn a_worker_that_is_started_again_at_once_does_not_own_what_it_left() {
    let world = World::new(Actions::default().mail(|cx, config| async move {
        if cx.attempt() == 1 {
            std::future::pending::<()>().await;
        }
        Ok(config)
    }));
    let run = world.start(vec![act("mail", n(1))]).await;
    let named = |world: &World| world.builder().name("worker-1").build().unwrap();
    let doomed = named(&world);
    let crash = tokio::spawn(async move { doomed.run_one().await });
    until("the hook runs", || world.log().count("mail.run") == 1).await;
    crash.abort();
    let running = named(&world).start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(world.run(run).await.attempt, 1);
    assert_eq!(world.kernel.await_run(run).await.unwrap().state(), RunState::Succeeded);
    running.stop(Duration::ZERO).await;
}
