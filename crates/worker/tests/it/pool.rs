//! Slots, wake-ups, stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use surefoot_kernel_core::{Micros, OperatorStore, RunState, WakeBus};
use surefoot_language::Stop;
use surefoot_worker::WorkerError;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::actions::{Actions, n};
use crate::plans::{act, delay, timed};
use crate::store::{Op, Verdict, unavailable};
use crate::world::{APP, World, until};

const MINUTE: Duration = Duration::from_secs(60);

/// A world with a run that waits for a day, so that its footprint is always wanted.
async fn quiet(actions: Actions) -> World {
    let world = World::new(actions);
    world.publish("day", vec![delay(86_400), act("mail", n(1))]).await;
    world.publish("work", vec![act("mail", n(1))]).await;
    world.emit("day").await;
    world.worker().run_one().await.unwrap();
    world
}

/// Covers behaviour 171.
#[tokio::test(start_paused = true)]
async fn a_blocked_run_does_not_hold_up_the_other_slot() {
    let world = World::new(Actions::default().mail(|_, config| async move {
        if config["n"] == 0 {
            std::future::pending::<()>().await;
        }
        Ok(config)
    }));
    world.publish("blocked", vec![act("mail", n(0))]).await;
    world.publish("work", vec![act("mail", n(1))]).await;
    let blocked = world.emit("blocked").await;
    let running = world.builder().concurrency(2).start().await.unwrap();
    for _ in 0..20 {
        let run = world.emit("work").await;
        assert_eq!(world.kernel.await_run(run).await.unwrap().state(), RunState::Succeeded);
    }
    assert_eq!(world.state(blocked).await, RunState::Running);
    assert_eq!((running.health().busy, running.health().slots), (1, 2));
    running.stop(Duration::ZERO).await;
}

/// Covers behaviour 172.
#[tokio::test(start_paused = true)]
async fn a_wake_during_an_empty_claim_is_followed_by_one_more_claim() {
    let world = quiet(Actions::default()).await;
    let running = world.builder().scan_every(MINUTE).start().await.unwrap();
    until("it is idle", || world.store.count("claim") >= 2).await;
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    let mut first = true;
    world.store.on(move |op| match op {
        Op::Claim if std::mem::replace(&mut first, false) => Verdict::Hold(held.clone()),
        _ => Verdict::Go,
    });
    let before = world.store.count("claim");
    running.notify();
    until("the claim is on the way", || world.store.count("claim") == before + 1).await;
    let run = world.emit_quietly("work").await;
    let began = Instant::now();
    running.notify();
    gate.notify_one();
    world.kernel.await_run(run).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    running.stop(Duration::ZERO).await;
}

/// Covers behaviour 173.
#[tokio::test(start_paused = true)]
async fn a_claim_that_fails_rests_until_the_next_wake_or_scan() {
    let world = quiet(Actions::default()).await;
    world.store.on(|op| match op {
        Op::Claim => Verdict::Fail(unavailable()),
        _ => Verdict::Go,
    });
    let before = world.store.count("claim");
    let running = world.builder().start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let claims = world.store.count("claim") - before;
    assert!((9..=16).contains(&claims), "{claims}");
    let health = running.health();
    assert!(health.is_degraded());
    let failing: Vec<_> = health.loops.iter().filter(|it| it.failing.is_some()).collect();
    assert_eq!((failing.len(), failing[0].name), (1, "claims"));
    world.store.heal();
    running.notify();
    until("it recovers", || !running.health().is_degraded()).await;
    running.stop(Duration::ZERO).await;
}

/// Covers behaviour 174.
/// Covers behaviour 179.
#[tokio::test(start_paused = true)]
async fn a_stop_drains_accepted_runs_and_claims_nothing_more() {
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    let world = World::new(Actions::default().mail(move |_, config| {
        let held = held.clone();
        async move {
            held.notified().await;
            Ok(config)
        }
    }));
    let accepted = world.start(vec![act("mail", n(1))]).await;
    let worker = world.builder().concurrency(1).build().unwrap();
    let running = worker.start().await.unwrap();
    until("it is accepted", || world.log().count("mail.run") == 1).await;
    assert!(matches!(worker.start().await, Err(WorkerError::AlreadyStarted)));
    let waiting = world.emit("work").await;
    let claims = world.store.count("claim");
    let waker = world.kernel.waker();
    let stopping = tokio::spawn(running.stop(MINUTE));
    tokio::time::sleep(Duration::from_secs(1)).await;
    gate.notify_one();
    stopping.await.unwrap();
    assert_eq!(world.state(accepted).await, RunState::Succeeded);
    waker.wake();
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.state(waiting).await, RunState::Queued);
    assert_eq!(world.store.count("claim"), claims);
    assert!(world.store.session_list(&APP.into()).await.unwrap().is_empty());

    let running = worker.start().await.unwrap();
    until("it is accepted", || world.log().count("mail.run") == 2).await;
    gate.notify_one();
    assert_eq!(world.kernel.await_run(waiting).await.unwrap().state(), RunState::Succeeded);
    running.stop(MINUTE).await;
}

/// Covers behaviour 174.
#[tokio::test(start_paused = true)]
async fn past_the_grace_a_run_is_handed_over_at_its_next_step() {
    let world = World::new(Actions::default().mail(|cx, config| async move {
        cx.canceled().await;
        Ok(config)
    }));
    let run = world.start(vec![act("mail", n(1)), act("pay", n(2))]).await;
    let running = world.builder().start().await.unwrap();
    until("the hook runs", || world.log().count("mail.run") == 1).await;
    let began = Instant::now();
    running.stop(Duration::from_secs(20)).await;
    assert_eq!(began.elapsed().as_secs(), 20);
    let left = world.run(run).await;
    // The outcome is kept, nothing was counted, and another worker can go on at once.
    assert_eq!((left.state(), left.failures, left.last_failure), (RunState::Queued, 0, None));
    assert_eq!(world.outputs(run).await, [n(1)]);
    assert_eq!(world.settle(&world.other_worker(), run).await, RunState::Succeeded);
    assert_eq!((world.log().count("mail.run"), world.log().count("pay.run")), (1, 1));
}

/// A hook that gives up because the worker stops has not failed.
#[tokio::test(start_paused = true)]
async fn an_error_of_a_hook_that_was_told_to_leave_is_no_failure() {
    for action in ["mail", "book"] {
        let world = World::new(
            Actions::default()
                .mail(|cx, config| async move {
                    cx.canceled().await;
                    Err(std::io::Error::other("interrupted"))?;
                    Ok(config)
                })
                .book(|cx, config| {
                    let told = cx.canceled();
                    Box::pin(async move {
                        told.await;
                        Err(Stop::fail("INTERRUPTED", config.to_string()))
                    })
                }),
        );
        let run = world.start(vec![act(action, n(1))]).await;
        let running = world.builder().start().await.unwrap();
        until("the hook runs", || world.log().count(&format!("{action}.run")) == 1).await;
        running.stop(Duration::from_secs(20)).await;
        let left = world.run(run).await;
        assert_eq!((left.state(), left.failures, left.last_failure), (RunState::Queued, 0, None));
        // Another attempt, since the hand-over was not counted, is the first again.
        assert_eq!(left.step_attempt, 0);
    }
}

/// Covers behaviour 174.
#[tokio::test(start_paused = true)]
async fn past_the_second_grace_a_hook_is_dropped_and_its_lease_lapses() {
    let world = World::new(Actions::default().mail(|cx, config| async move {
        if cx.attempt() == 1 {
            std::future::pending::<()>().await;
        }
        Ok(config)
    }));
    let run = world.start(vec![act("mail", n(1))]).await;
    let running = world.builder().start().await.unwrap();
    until("the hook runs", || world.log().count("mail.run") == 1).await;
    let began = Instant::now();
    running.stop(Duration::from_secs(20)).await;
    assert_eq!(began.elapsed().as_secs(), 40);
    assert_eq!(world.state(run).await, RunState::Running);
    assert_eq!(world.settle(&world.other_worker(), run).await, RunState::Succeeded);
}

/// Covers behaviour 174.
#[tokio::test(start_paused = true)]
async fn a_worker_that_is_dropped_lets_its_runs_end() {
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    let world = World::new(Actions::default().mail(move |_, config| {
        let held = held.clone();
        async move {
            held.notified().await;
            Ok(config)
        }
    }));
    let run = world.start(vec![act("mail", n(1))]).await;
    let running = world.builder().start().await.unwrap();
    until("the hook runs", || world.log().count("mail.run") == 1).await;
    drop(running);
    let later = world.emit("work").await;
    tokio::time::sleep(Duration::from_secs(200)).await;
    gate.notify_one();
    assert_eq!(world.kernel.await_run(run).await.unwrap().state(), RunState::Succeeded);
    assert_eq!(world.state(later).await, RunState::Queued);
}

/// Covers behaviour 174.
#[tokio::test(start_paused = true)]
async fn a_drain_ends_when_nothing_is_ready() {
    let world = World::new(Actions::default());
    world.publish("day", vec![delay(86_400)]).await;
    world.publish("work", vec![act("mail", n(1)), act("book", n(2))]).await;
    let day = world.emit("day").await;
    let mut runs = Vec::new();
    for _ in 0..30 {
        runs.push(world.emit("work").await);
    }
    let running = world.builder().start().await.unwrap();
    running.drain().await.unwrap();
    for run in runs {
        assert_eq!(world.state(run).await, RunState::Succeeded);
    }
    assert_eq!(world.state(day).await, RunState::Waiting);
}

/// Covers behaviour 175.
/// Covers field fault 46.
#[tokio::test(start_paused = true)]
async fn a_worker_that_cannot_work_is_not_built() {
    let world = World::new(Actions::default());
    let no_slots = world.builder().concurrency(0).build();
    assert!(matches!(no_slots, Err(WorkerError::NoSlots)));
    for lease in
        [Duration::ZERO, Duration::from_millis(1), Duration::from_secs(86_401), Duration::MAX]
    {
        let bad = world.builder().lease(lease).build();
        assert!(matches!(bad, Err(WorkerError::BadLease { .. })), "{lease:?}");
    }
    for scan in [Duration::ZERO, Duration::MAX] {
        let bad = world.builder().scan_every(scan).build();
        assert!(matches!(bad, Err(WorkerError::BadScan { .. })), "{scan:?}");
    }
    let twice = world.builder().module(world.module.clone()).build();
    assert!(matches!(twice, Err(WorkerError::SameModuleTwice { version: 1, .. })));
    assert!(world.builder().module(world.actions.module_version(2)).build().is_ok());
}

/// Covers behaviour 176.
#[tokio::test(start_paused = true)]
async fn a_run_that_nobody_told_of_is_claimed_within_about_a_second() {
    let world = quiet(Actions::default()).await;
    let running = world.builder().start().await.unwrap();
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(2_345)).await;
        let run = world.emit_quietly("work").await;
        let began = Instant::now();
        world.kernel.await_run(run).await.unwrap();
        assert!(began.elapsed() <= Duration::from_millis(1_050), "{:?}", began.elapsed());
    }
    running.stop(Duration::ZERO).await;
}

/// Covers behaviour 177.
#[tokio::test(start_paused = true)]
async fn a_hundred_wakes_during_a_pass_are_one_more_pass() {
    let world = quiet(Actions::default()).await;
    let running = world.builder().scan_every(MINUTE).start().await.unwrap();
    until("it is idle", || world.store.count("claim") >= 2).await;
    tokio::time::sleep(Duration::from_secs(200)).await;
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    let mut first = true;
    world.store.on(move |op| match op {
        Op::Due if std::mem::replace(&mut first, false) => Verdict::Hold(held.clone()),
        _ => Verdict::Go,
    });
    let before = world.store.count("due");
    running.notify();
    until("the pass is on the way", || world.store.count("due") == before + 1).await;
    let claims = world.store.count("claim");
    for _ in 0..100 {
        running.notify();
    }
    gate.notify_one();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.store.count("due"), before + 2);
    assert!(world.store.count("claim") - claims <= 2);
    running.stop(Duration::ZERO).await;
}

/// A broker that is down in every way at once.
struct Broken(AtomicUsize);

#[async_trait::async_trait]
impl WakeBus for Broken {
    async fn announce(&self, _: &str) {
        match self.0.fetch_add(1, Ordering::SeqCst) % 2 {
            0 => panic!("the broker's client has a defect"),
            _ => std::future::pending().await,
        }
    }
    async fn heard(&self, _: &str) {}
}

/// Covers behaviour 178.
#[tokio::test(start_paused = true)]
async fn a_broken_wake_bus_hurts_nobody() {
    let world = quiet(Actions::default()).await;
    let worker = world.builder().scan_every(MINUTE).wake_bus(Broken(AtomicUsize::new(0)));
    let running = worker.start().await.unwrap();
    for _ in 0..5 {
        let began = Instant::now();
        let run = world.emit("work").await;
        world.kernel.await_run(run).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        tokio::time::sleep(Duration::from_secs(7)).await;
    }
    running.stop(Duration::ZERO).await;
}

/// Two processes and what carries wake-ups between them.
#[derive(Clone, Default)]
struct Wire(Arc<Notify>, Arc<AtomicBool>);

#[async_trait::async_trait]
impl WakeBus for Wire {
    async fn announce(&self, app: &str) {
        assert_eq!(app, APP);
        self.1.store(true, Ordering::SeqCst);
        self.0.notify_waiters();
    }
    async fn heard(&self, _: &str) {
        self.0.notified().await;
    }
}

/// Covers field fault 34.
#[tokio::test(start_paused = true)]
async fn another_process_hears_of_work_over_the_bus_with_the_scan_far_away() {
    let world = quiet(Actions::default()).await;
    let wire = Wire::default();
    let hears = world.builder().scan_every(MINUTE).wake_bus(wire.clone()).start().await.unwrap();
    // The other process cannot run it itself: its worker has another module.
    let other = world.other();
    let module = surefoot_language::Module::builder("payroll", 1).build().unwrap();
    let tells = other.worker(module).scan_every(MINUTE).wake_bus(wire).start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let began = Instant::now();
    let event = surefoot_kernel_core::Event::start("work", serde_json::json!({}));
    let run = other.scope(crate::world::SCOPE).emit(event).await.unwrap().runs[0];
    world.kernel.await_run(run).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    hears.stop(Duration::ZERO).await;
    tells.stop(Duration::ZERO).await;
}

/// Covers field fault 9.
#[tokio::test(start_paused = true)]
async fn a_loop_that_panics_is_started_again_and_the_others_live() {
    for broken in ["claim", "due", "report", "renew"] {
        let world = quiet(Actions::default()).await;
        let mut panics = 3;
        world.store.on(move |op| {
            if op.name() == broken && panics > 0 {
                panics -= 1;
                return Verdict::Panic;
            }
            Verdict::Go
        });
        let running = world.builder().start().await.unwrap();
        let run = world.emit_quietly("work").await;
        assert_eq!(world.kernel.await_run(run).await.unwrap().state(), RunState::Succeeded);
        if broken != "renew" {
            until("it was restarted", || {
                running.health().loops.iter().any(|one| one.restarts >= 3)
            })
            .await;
            until("it is well", || !running.health().is_degraded()).await;
        }
        running.stop(Duration::ZERO).await;
    }
}

/// A hook that blocks its thread hears of its timeout all the same, keeps its slot, and health shows it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_does_not_return_is_shown_as_stuck() {
    let gate = Arc::new((std::sync::Mutex::new(false), std::sync::Condvar::new()));
    let opened = gate.clone();
    let actions = Actions::default().mail(move |cx, config| {
        let opened = opened.clone();
        async move {
            while !cx.is_canceled() {
                std::thread::yield_now();
            }
            let open = opened.0.lock().unwrap();
            drop(opened.1.wait_while(open, |open| !*open).unwrap());
            Ok(config)
        }
    });
    // On the real clock: only there the keeper has a thread of its own, which nothing blocks.
    let world = World::new(actions);
    let kernel = surefoot_worker::Kernel::new(APP, world.store.fork());
    let run = world.start(vec![timed(act("mail", n(1)), Micros::from_millis(20))]).await;
    let running = kernel.worker(world.module.clone()).start().await.unwrap();
    until("the hook runs", || world.log().count("mail.run") == 1).await;
    until("it is stuck", || running.health().stuck == 1).await;
    assert!(running.health().is_degraded() && running.health().busy == 1);
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    assert_eq!(world.kernel.await_run(run).await.unwrap().state(), RunState::Succeeded);
    assert_eq!(running.health().stuck, 0);
    running.stop(Duration::from_secs(1)).await;
}
