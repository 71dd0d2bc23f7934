//! Effects done twice, or not at all: what must not happen.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::{Event, Fact, OperatorStore, RunFilter, RunState};
use surefoot_worker::Tick;
use tokio::sync::Notify;

use crate::actions::{Actions, n};
use crate::plans::{act, act_on, saved};
use crate::store::{Op, Verdict, unavailable};
use crate::world::{SCOPE, World, until};

/// Covers field fault 13.
#[tokio::test(start_paused = true)]
async fn a_start_with_recovery_leaves_a_run_alone_that_the_same_process_runs() {
    let world = World::new(Actions::default().mail(|_, config| async move {
        tokio::time::sleep(Duration::from_secs(1_000)).await;
        Ok(config)
    }));
    let run = world.start(vec![act("mail", n(1))]).await;
    let first = world.builder().start().await.unwrap();
    until("the hook runs", || world.log().count("mail.run") == 1).await;
    let second = world.builder().start().await.unwrap();
    let ended = world.kernel.await_run(run).await.unwrap();
    assert_eq!((ended.state(), ended.attempt), (RunState::Succeeded, 1));
    assert_eq!(world.log().count("mail.run"), 1);
    first.stop(Duration::ZERO).await;
    second.stop(Duration::ZERO).await;
}

/// Covers field fault 13.
#[tokio::test(start_paused = true)]
async fn a_process_that_claims_its_own_lapsed_run_waits_for_the_body_that_still_runs() {
    let inside = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (now, seen) = (inside.clone(), most.clone());
    let world = World::new(Actions::default().mail(move |_, config| {
        let (now, seen) = (now.clone(), seen.clone());
        async move {
            struct Leave(Arc<AtomicUsize>);
            impl Drop for Leave {
                fn drop(&mut self) {
                    self.0.fetch_sub(1, Ordering::SeqCst);
                }
            }
            seen.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let _leave = Leave(now);
            tokio::time::sleep(Duration::from_secs(150)).await;
            Ok(config)
        }
    }));
    let run = world.start(vec![act("mail", n(1))]).await;
    let mut cut = true;
    let healed = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_healed = healed.clone();
    world.store.on(move |op| {
        cut &= !is_healed.load(Ordering::SeqCst);
        match op {
            Op::Renew(_) if cut => Verdict::Fail(unavailable()),
            _ => Verdict::Go,
        }
    });
    let running = world.builder().start().await.unwrap();
    until("it was claimed again", || world.log().count("mail.run") == 2).await;
    healed.store(true, Ordering::SeqCst);
    let ended = world.kernel.await_run(run).await.unwrap();
    assert_eq!((ended.state(), ended.attempt), (RunState::Succeeded, 2));
    assert_eq!(most.load(Ordering::SeqCst), 1);
    running.stop(Duration::ZERO).await;
}

/// Covers field fault 17.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_body_that_blocks_its_thread_past_its_lease_is_not_joined_by_a_second_one() {
    let inside = Arc::new(AtomicUsize::new(0));
    let gate = Arc::new((std::sync::Mutex::new(false), std::sync::Condvar::new()));
    let (now, opened) = (inside.clone(), gate.clone());
    let world = World::new(Actions::default().mail(move |_, config| {
        let (now, opened) = (now.clone(), opened.clone());
        async move {
            assert_eq!(now.fetch_add(1, Ordering::SeqCst), 0, "two bodies at once");
            let open = opened.0.lock().unwrap();
            drop(opened.1.wait_while(open, |open| !*open).unwrap());
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(config)
        }
    }));
    let run = world.start(vec![act("mail", n(1))]).await;
    // The clock of store and process is moved by hand; leases pass at once.
    let store = world.store.fork();
    store.on(|op| match op {
        Op::Renew(_) => Verdict::Fail(unavailable()),
        _ => Verdict::Go,
    });
    let clock = world.store.inner.clock().clone();
    let kernel = surefoot_worker::Kernel::builder(crate::world::APP, store).clock(clock.clone());
    let worker = kernel.build().worker(world.module.clone());
    let running = worker.scan_every(Duration::from_millis(10)).start().await.unwrap();
    until("the body runs", || inside.load(Ordering::SeqCst) == 1).await;
    clock.advance(surefoot_kernel_core::Micros::from_secs(130));
    until("it is claimed again", || running.health().busy == 2).await;
    assert_eq!(world.run(run).await.generation, 2);
    for _ in 0..100 {
        tokio::task::yield_now().await;
        assert_eq!(inside.load(Ordering::SeqCst), 1);
    }
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    let ended = world.kernel.await_run(run).await.unwrap();
    assert_eq!((ended.state(), ended.attempt), (RunState::Succeeded, 2));
    assert_eq!(world.log().count("mail.run"), 2);
    running.stop(Duration::from_secs(1)).await;
}

/// Covers field fault 19.
#[tokio::test(start_paused = true)]
async fn one_event_is_one_run_and_one_body_whoever_dispatches() {
    for workers in 1..=5 {
        let world = World::new(Actions::default());
        world.publish("work", vec![act("mail", n(1))]).await;
        let event = || Event::start("work", json!({})).dedupe_key("monday");
        let scope = world.kernel.scope(SCOPE);
        scope.emit(event().deferred()).await.unwrap();
        // One dies in the middle of its pass, its dispatch on the way.
        let doomed = world.other();
        doomed.store().on(|op| match op {
            Op::Claim => Verdict::Hold(Arc::default()),
            _ => Verdict::Go,
        });
        let worker = doomed.worker(world.module.clone()).build().unwrap();
        let crash = tokio::spawn(async move { worker.tick(Tick::max_runs(5)).await });
        until("it claims", || doomed.store().count("claim") == 1).await;
        crash.abort();
        let mut running = Vec::new();
        for _ in 0..workers {
            running.push(world.other_worker().start().await.unwrap());
        }
        let emission = scope.emit(event()).await.unwrap();
        assert_eq!((emission.new, emission.runs.len()), (false, 1));
        world.kernel.await_run(emission.runs[0]).await.unwrap();
        let all =
            world.store.run_list(RunFilter { limit: 10, ..Default::default() }).await.unwrap();
        assert_eq!((all.rows.len(), world.log().count("mail.run")), (1, 1));
        for running in running {
            running.stop(Duration::ZERO).await;
        }
    }
}

/// Covers field fault 24.
#[tokio::test(start_paused = true)]
async fn a_crash_between_the_answer_and_its_commit_is_what_the_class_promises() {
    for (action, runs, reconciles, booked) in [
        ("compute", 2, 0, None),
        ("book", 2, 0, Some("1")),
        ("mail", 2, 0, None),
        ("pay", 1, 1, None),
    ] {
        let world = World::new(
            Actions::default()
                .book(|cx, config| {
                    let booked =
                        cx.tx().table().get("bolt").map_or(0, |it| it.parse::<i64>().unwrap());
                    cx.tx().table().insert("bolt".to_owned(), (booked + 1).to_string());
                    Box::pin(async { Ok(config) })
                })
                .find(
                    |_, config| async move { Ok(surefoot_language::Reconciled::Succeeded(config)) },
                ),
        );
        let run =
            world.start(vec![saved(act(action, n(7)), "out"), act_on("mail", "out", "m")]).await;
        world.store.on(move |op| match op {
            Op::Commit(_) if op.facts().contains("step_completed") => Verdict::Wait(Arc::default()),
            // The process dies inside the transaction.
            Op::Transact => Verdict::Hold(Arc::default()),
            _ => Verdict::Go,
        });
        let doomed = world.worker();
        let crash = tokio::spawn(async move { doomed.run_one().await });
        until("it answered", || world.log().count(&format!("{action}.run")) == 1).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        crash.abort();
        assert_eq!(world.settle(&world.other_worker(), run).await, RunState::Succeeded);
        assert_eq!(world.log().count("pay.reconcile"), reconciles, "{action}");
        let called = world.log().count(&format!("{action}.run"));
        // The transaction had committed before its process died: its outcome is there.
        let expected = match action {
            "book" => 1,
            "mail" => runs + 1,
            _ => runs,
        };
        assert_eq!(called, expected, "{action}");
        assert_eq!(world.store.inner.table_row("bolt").as_deref(), booked);
        assert_eq!(world.outputs(run).await[0], n(7));
    }
}

/// Covers field fault 15.
#[tokio::test(start_paused = true)]
async fn a_decision_on_a_stale_copy_is_made_again_and_the_action_is_not() {
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    let world = World::new(Actions::default());
    let run = world.start(vec![act("pay", n(1)), act("mail", n(2))]).await;
    let mut first = true;
    world.store.on(move |op| match op {
        Op::Commit(_)
            if op.facts().contains("step_completed") && std::mem::replace(&mut first, false) =>
        {
            Verdict::Wait(held.clone())
        }
        _ => Verdict::Go,
    });
    let worker = world.worker();
    let driving = tokio::spawn(async move { worker.run_one().await });
    until("the outcome is on the way", || world.log().count("pay.run") == 1).await;
    // Anybody else's write between reading and writing; here a request that an operator takes back is not possible,
    // so it is a cancel.
    world.other().cancel(run, "stop it").await.unwrap();
    gate.notify_one();
    driving.await.unwrap().unwrap();
    assert_eq!((world.log().count("pay.run"), world.log().count("pay.reconcile")), (1, 0));
    let facts = world.facts(run).await;
    let done = facts.iter().filter(|fact| matches!(fact, Fact::StepCompleted { .. })).count();
    assert_eq!((done, world.state(run).await), (1, RunState::Canceled));
    assert!(world.run(run).await.effect().is_none());
}
