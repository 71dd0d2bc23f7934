//! Claims, releases and what a later claim finds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::{
    Code, EventStatus, EventStore, Fact, Micros, OperatorStore, RunState, StepKey,
};
use surefoot_language::Stop;
use surefoot_worker::Tick;
use tokio::sync::{Barrier, Notify};
use tokio::time::Instant;

use crate::actions::{Actions, n};
use crate::plans::{act, act_on, delay, plan, saved};
use crate::store::{Op, Verdict, unavailable, unknown};
use crate::world::{APP, SCOPE, World, until};

/// Covers behaviour 87.
#[tokio::test(start_paused = true)]
async fn two_workers_that_claim_at_once_get_different_runs() {
    let both = Arc::new(Barrier::new(2));
    let world = World::new(Actions::default().mail(move |_, config| {
        let both = both.clone();
        async move {
            both.wait().await;
            Ok(config)
        }
    }));
    world.publish("work", vec![act("mail", n(1))]).await;
    let runs = [world.emit("work").await, world.emit("work").await];
    let (a, b) = (world.worker(), world.other_worker());
    let (first, second) = tokio::join!(a.run_one(), b.run_one());
    let mut got = [first.unwrap().unwrap(), second.unwrap().unwrap()];
    got.sort();
    assert_eq!(got, runs);
}

/// Covers behaviour 88.
#[tokio::test(start_paused = true)]
async fn a_claim_raises_generation_and_attempt_and_keeps_the_first_start() {
    let calls = AtomicUsize::new(0);
    let world = World::new(Actions::default().mail(move |_, config| {
        let first = calls.fetch_add(1, Ordering::SeqCst) == 0;
        async move { if first { Err(Stop::retry("BUSY", "429")) } else { Ok(config) } }
    }));
    let run = world.start(vec![act("mail", n(1))]).await;
    assert_eq!(world.run(run).await.generation, 0);
    let worker = world.worker();
    worker.tick(Tick::max_runs(1)).await.unwrap();
    let released = world.run(run).await;
    assert_eq!((released.generation, released.attempt), (1, 1));
    assert!(released.claimable_at().unwrap() > world.store.inner.clock().now());
    world.settle(&worker, run).await;
    let ended = world.run(run).await;
    assert_eq!((ended.generation, ended.attempt), (2, 2));
    assert_eq!((ended.started_at, ended.last_failure), (released.started_at, None));
}

/// Covers behaviour 89.
/// Covers field fault 20.
/// Covers field fault 21.
#[tokio::test(start_paused = true)]
async fn what_a_worker_writes_after_another_has_claimed_changes_nothing() {
    let world = World::new(Actions::default());
    let run = world.start(vec![act("mail", n(1)), act("pay", n(2))]).await;
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    // The first worker is cut off while its outcome is on the way.
    world.store.on(move |op| match op {
        Op::Commit(_) if op.facts().contains("step_completed") => Verdict::Wait(held.clone()),
        Op::Renew(_) => Verdict::Fail(unavailable()),
        _ => Verdict::Go,
    });
    let slow = world.worker();
    let stale = tokio::spawn(async move { slow.tick(Tick::max_runs(1)).await });
    let other = world.other_worker();
    until("the first worker holds it", || world.log().count("mail.run") == 1).await;
    assert_eq!(world.settle(&other, run).await, RunState::Succeeded);
    let (before, facts) = (world.run(run).await, world.facts(run).await);
    gate.notify_one();
    stale.await.unwrap().unwrap();
    assert_eq!((world.run(run).await, world.facts(run).await), (before, facts));
    assert_eq!((world.log().count("mail.run"), world.log().count("pay.run")), (2, 1));
}

/// Covers behaviour 90.
#[tokio::test(start_paused = true)]
async fn after_a_crash_a_recorded_step_is_restored_and_its_output_is_there() {
    let world = World::new(Actions::default().pay(|_, config| async move {
        std::future::pending::<()>().await;
        Ok(config)
    }));
    let steps =
        vec![saved(act("mail", n(7)), "mailed"), act_on("book", "mailed", ""), act("pay", n(1))];
    let run = world.start(steps).await;
    let doomed = world.worker();
    let crash = tokio::spawn(async move { doomed.run_one().await });
    until("the last step runs", || world.log().count("pay.run") == 1).await;
    crash.abort();
    let other = world.other_worker();
    tokio::time::advance(Duration::from_secs(121)).await;
    other.tick(Tick::max_runs(1)).await.unwrap();
    assert_eq!((world.log().count("mail.run"), world.log().count("book.run")), (1, 1));
    assert_eq!(world.outputs(run).await, [n(7), n(7)]);
    assert_eq!(world.log().count("pay.reconcile"), 1);
}

/// Covers behaviour 91.
#[tokio::test(start_paused = true)]
async fn after_a_crash_inside_a_step_it_runs_again_under_the_same_key() {
    let calls = Arc::new(AtomicUsize::new(0));
    let inside = calls.clone();
    let world = World::new(Actions::default().mail(move |_, config| {
        let first = inside.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if first {
                std::future::pending::<()>().await;
            }
            Ok(config)
        }
    }));
    let run = world.start(vec![act("compute", n(1)), act("mail", n(2))]).await;
    let doomed = world.worker();
    let crash = tokio::spawn(async move { doomed.run_one().await });
    until("the step runs", || calls.load(Ordering::SeqCst) == 1).await;
    crash.abort();
    let other = world.other_worker();
    assert_eq!(world.settle(&other, run).await, RunState::Succeeded);
    let lines = world.log().lines();
    let keys: Vec<&String> = lines.iter().filter(|line| line.starts_with("key")).collect();
    assert_eq!((keys.len(), keys[0]), (2, keys[1]));
    assert_eq!(
        (world.log().count("mail.run steps.1 #1"), world.log().count("mail.run steps.1 #2")),
        (1, 1)
    );
    // The pure step before it was durable before the hook was called.
    assert_eq!(world.log().count("compute.run"), 1);
}

/// Covers behaviour 91.
#[tokio::test(start_paused = true)]
async fn a_pure_step_whose_outcome_was_not_durable_runs_again() {
    let world = World::new(Actions::default());
    let run = world.start(vec![act("compute", n(1))]).await;
    let doomed = world.worker();
    // The process dies with the commit that would have recorded it.
    world.store.on(|op| match op {
        Op::Commit(_) => Verdict::Wait(Arc::default()),
        _ => Verdict::Go,
    });
    let crash = tokio::spawn(async move { doomed.run_one().await });
    until("the outcome is on the way", || world.store.count("commit") == 1).await;
    crash.abort();
    assert_eq!(world.settle(&world.other_worker(), run).await, RunState::Succeeded);
    assert_eq!(world.log().count("compute.run"), 2);
}

/// Covers behaviour 92.
/// Covers behaviour 93.
/// Covers field fault 10.
#[tokio::test(start_paused = true)]
async fn a_step_that_never_stops_failing_is_tried_eight_times_with_growing_pauses() {
    let times = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = times.clone();
    let world = World::new(Actions::default().mail(move |_, _| {
        noted.lock().unwrap().push(Instant::now());
        async { Err(Stop::retry("SUPPLIER_DOWN", "no answer")) }
    }));
    let run = world.start(vec![act("mail", n(1))]).await;
    assert_eq!(world.settle(&world.worker(), run).await, RunState::Failed);
    let error = world.error(run).await;
    assert_eq!(error.code, Code::RETRY_EXHAUSTED);
    assert!(error.message.contains("SUPPLIER_DOWN"), "{}", error.message);
    assert_eq!(error.step, Some(StepKey::from("steps.0")));
    let failed = |fact: &Fact| matches!(fact, Fact::StepFailed { error, .. } if error.code == Code::RETRY_EXHAUSTED);
    assert!(world.facts(run).await.iter().any(failed));
    let times = times.lock().unwrap();
    let pauses: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
    for (pause, nominal) in pauses.iter().zip([5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0]) {
        assert!(
            *pause >= 0.8 * nominal && *pause <= (1.2 * nominal).min(300.0) + 1.0,
            "{pauses:?}"
        );
    }
    assert_eq!(times.len(), 8);
}

/// Covers behaviour 94.
#[tokio::test(start_paused = true)]
async fn a_success_sets_the_count_of_failures_back() {
    let calls = AtomicUsize::new(0);
    let world = World::new(Actions::default().mail(move |_, config| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        // Three failures, a success, seven failures, a success.
        let fails = call < 3 || (4..11).contains(&call);
        async move { if fails { Err(Stop::retry("BUSY", "429")) } else { Ok(config) } }
    }));
    let run = world.start(vec![act("mail", n(1)), act("mail", n(2))]).await;
    assert_eq!(world.settle(&world.worker(), run).await, RunState::Succeeded);
    assert_eq!(world.log().count("mail.run"), 12);
}

/// Covers behaviour 95.
#[tokio::test(start_paused = true)]
async fn a_stream_of_fresh_runs_does_not_starve_one_whose_backoff_is_over() {
    let world = World::new(Actions::default().mail(|cx, config| async move {
        if config["n"] == 1 && cx.attempt() == 1 {
            return Err(Stop::retry("BUSY", "429"));
        }
        Ok(config)
    }));
    world.publish("fresh", vec![act("mail", n(2))]).await;
    let late = world.start(vec![act("mail", n(1))]).await;
    let worker = world.builder().concurrency(1).build().unwrap();
    worker.run_one().await.unwrap();
    for _ in 0..10 {
        world.emit_quietly("fresh").await;
    }
    tokio::time::advance(Duration::from_secs(7)).await;
    let mut claims = 0;
    while world.state(late).await != RunState::Succeeded {
        world.emit_quietly("fresh").await;
        worker.run_one().await.unwrap();
        claims += 1;
        assert!(claims <= 11, "it starves");
    }
}

/// Covers behaviour 96.
#[tokio::test(start_paused = true)]
async fn a_worker_touches_nothing_of_another_app() {
    let world = World::new(Actions::default().mail(|_, config| async move {
        std::future::pending::<()>().await;
        Ok(config)
    }));
    let bank = world.other_app("bank");
    let steps = || vec![act("mail", n(1))];
    for (workflow, steps) in [("now", steps()), ("later", steps()), ("wait", vec![delay(1)])] {
        let plan = plan(world.module.manifest(), steps);
        world.publish_plan("bank", workflow, plan).await;
    }
    world.publish("work", steps()).await;
    let scope = bank.scope(SCOPE);
    let event = |workflow: &str| surefoot_kernel_core::Event::start(workflow, json!({}));
    let queued = scope.emit(event("now")).await.unwrap().runs[0];
    let deferred = scope.emit(event("later").deferred()).await.unwrap().event;
    let waiting = scope.emit(event("wait")).await.unwrap().runs[0];
    let banker = bank.worker(world.module.clone()).build().unwrap();
    // The first is dropped in its hook and canceled; the last parks.
    let doomed = banker.clone();
    let crash = tokio::spawn(async move { doomed.run_one().await });
    until("the hook runs", || world.log().count("mail.run") == 1).await;
    crash.abort();
    banker.run_one().await.unwrap();
    bank.cancel(queued, "no need").await.unwrap();
    tokio::time::advance(Duration::from_secs(300)).await;

    let ticked = world.worker().tick(Tick::max_runs(10)).await.unwrap();
    assert_eq!(
        (ticked.runs.len(), ticked.woken, ticked.finalised, ticked.dispatched),
        (0, 0, 0, 0)
    );
    assert_eq!(world.state(queued).await, RunState::Running);
    assert_eq!(world.state(waiting).await, RunState::Waiting);
    let filter = surefoot_kernel_core::EventFilter { limit: 10, ..Default::default() };
    let events = world.store.event_list(filter).await.unwrap().rows;
    let pending = events.iter().find(|row| row.event == deferred).unwrap();
    assert_eq!(pending.status, EventStatus::Pending);
}

/// Covers behaviour 101.
#[tokio::test(start_paused = true)]
async fn an_end_whose_commit_is_unknown_is_not_sent_again_when_it_landed() {
    let world = World::new(Actions::default());
    let run = world.start(vec![act("mail", n(1))]).await;
    world.store.on(|op| match op {
        Op::Commit(_) if op.facts().contains("ended") => Verdict::Lose(unknown()),
        _ => Verdict::Go,
    });
    let worker = world.worker();
    worker.run_one().await.unwrap();
    assert_eq!(world.state(run).await, RunState::Succeeded);
    assert_eq!(world.store.count("take_over"), 1);
    let ends = world.facts(run).await.into_iter().filter(|fact| matches!(fact, Fact::Ended { .. }));
    assert_eq!((ends.count(), world.log().count("mail.run")), (1, 1));
}

/// Covers behaviour 101.
#[tokio::test(start_paused = true)]
async fn an_outcome_whose_commit_is_unknown_is_recorded_after_a_takeover() {
    for landed in [true, false] {
        let world = World::new(Actions::default());
        let run = world.start(vec![act("mail", n(1)), act("pay", n(2))]).await;
        let mut lost = false;
        world.store.on(move |op| match op {
            Op::Commit(_) if op.facts().contains("step_completed") && !lost => {
                lost = true;
                if landed { Verdict::Lose(unknown()) } else { Verdict::Fail(unknown()) }
            }
            _ => Verdict::Go,
        });
        let worker = world.worker();
        worker.run_one().await.unwrap();
        assert_eq!(world.state(run).await, RunState::Succeeded);
        // The answer was in hand, so the action was not asked a second time.
        assert_eq!((world.log().count("mail.run"), world.log().count("pay.run")), (1, 1));
        let ended = world.run(run).await;
        assert_eq!((ended.generation, ended.attempt, world.store.count("take_over")), (2, 1, 1));
    }
}

/// Covers behaviour 101.
#[tokio::test(start_paused = true)]
async fn a_takeover_waits_for_a_store_that_is_away() {
    let world = World::new(Actions::default());
    let run = world.start(vec![act("pay", n(2))]).await;
    let (mut lost, mut away) = (false, 5);
    world.store.on(move |op| match op {
        Op::Commit(_) if op.facts().contains("call_marked") && !lost => {
            lost = true;
            Verdict::Lose(unknown())
        }
        Op::TakeOver if away > 0 => {
            away -= 1;
            Verdict::Fail(unavailable())
        }
        _ => Verdict::Go,
    });
    let worker = world.worker();
    assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
    // The mark landed, and the call that it announced was never made: nothing has to be asked.
    assert_eq!((world.log().count("pay.run"), world.log().count("pay.reconcile")), (1, 0));
    assert_eq!(world.store.count("take_over"), 6);
}

/// Covers behaviour 102.
#[tokio::test(start_paused = true)]
async fn a_parked_run_is_not_renewed() {
    let world = World::new(Actions::default());
    let run = world.start(vec![delay(600)]).await;
    let renewed = Arc::new(AtomicUsize::new(0));
    let seen = renewed.clone();
    world.store.on(move |op| {
        if let Op::Renew(request) = op {
            seen.fetch_add(request.runs.len(), Ordering::SeqCst);
        }
        Verdict::Go
    });
    let running = world.builder().start().await.unwrap();
    until("it parks", || world.store.count("commit") == 1).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!((world.state(run).await, renewed.load(Ordering::SeqCst)), (RunState::Waiting, 0));
    running.stop(Duration::ZERO).await;
}

/// Covers behaviour 103.
#[tokio::test(start_paused = true)]
async fn a_deadline_that_wakes_a_run_before_its_worker_hears_of_the_park_is_normal() {
    let world = World::new(Actions::default());
    let run = world.start(vec![delay(1), act("mail", n(1))]).await;
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    world.store.on(move |op| match op {
        Op::Commit(_) if op.facts().contains("deadline_set") => Verdict::Hold(held.clone()),
        _ => Verdict::Go,
    });
    let parking = world.worker();
    let late = tokio::spawn(async move { parking.run_one().await });
    until("it parks", || world.store.count("commit") == 1).await;
    assert_eq!(world.settle(&world.other_worker(), run).await, RunState::Succeeded);
    gate.notify_one();
    assert_eq!(late.await.unwrap().unwrap(), Some(run));
    assert_eq!((world.state(run).await, world.log().count("mail.run")), (RunState::Succeeded, 1));
}

/// Covers behaviour 142.
#[tokio::test(start_paused = true)]
async fn a_plan_that_no_module_can_run_is_not_claimed_until_a_fitting_worker_comes() {
    let world = World::new(Actions::default());
    let mut changed = plan(world.module.manifest(), vec![act("mail", n(1))]);
    changed.footprint.uses.insert("action/mail".to_owned(), "another".to_owned());
    world.publish_plan(APP, "work", changed).await;
    let run = world.emit("work").await;
    let running = world.builder().start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let queued = world.run(run).await;
    assert_eq!((queued.state(), queued.generation, queued.revision), (RunState::Queued, 0, 0));
    assert_eq!(world.store.count("renew"), 0);
    let health = world.store.app_health(&APP.into()).await.unwrap();
    assert_eq!(health.due_by_footprint[0].0, queued.origin.footprint);
    running.stop(Duration::ZERO).await;
}

/// Covers field fault 3.
#[tokio::test(start_paused = true)]
async fn a_claim_that_fails_again_and_again_is_repeated_within_a_scan() {
    let world = World::new(Actions::default());
    world.publish("work", vec![act("mail", n(1))]).await;
    let mut failures = 5;
    world.store.on(move |op| match op {
        Op::Claim if failures > 0 => {
            failures -= 1;
            Verdict::Fail(unavailable())
        }
        _ => Verdict::Go,
    });
    let running = world.builder().start().await.unwrap();
    let began = Instant::now();
    let run = world.emit("work").await;
    world.kernel.await_run(run).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(7), "{:?}", began.elapsed());
    running.stop(Duration::ZERO).await;
}

/// A claim whose answer was lost is found again by its name, without a wait for the lease to end.
#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_was_lost_is_found_again() {
    let world = World::new(Actions::default());
    world.publish("work", vec![act("mail", n(1))]).await;
    let run = world.emit_quietly("work").await;
    let mut lost = false;
    world.store.on(move |op| match op {
        Op::Claim if !lost => {
            lost = true;
            Verdict::Lose(unknown())
        }
        _ => Verdict::Go,
    });
    let began = Instant::now();
    let running = world.builder().start().await.unwrap();
    let ended = world.kernel.await_run(run).await.unwrap();
    assert_eq!((ended.state(), ended.attempt), (RunState::Succeeded, 1));
    assert!(Micros::from(began.elapsed()) < Micros::from_secs(5));
    running.stop(Duration::ZERO).await;
}

/// Its lease is over by then: it is no claim any more, and the next one brings the run.
#[tokio::test(start_paused = true)]
async fn a_claim_that_is_found_again_after_its_lease_does_not_stop_the_run() {
    let world = World::new(Actions::default());
    world.publish("work", vec![act("mail", n(1))]).await;
    let run = world.emit_quietly("work").await;
    let mut lost = false;
    world.store.on(move |op| match op {
        Op::Claim if !lost => {
            lost = true;
            Verdict::Lose(unknown())
        }
        _ => Verdict::Go,
    });
    let worker = world.worker();
    assert!(worker.tick(Tick::max_runs(5)).await.is_err());
    assert_eq!(world.state(run).await, RunState::Running);
    tokio::time::advance(Duration::from_secs(121)).await;
    assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
    assert_eq!((world.log().count("mail.run"), world.run(run).await.attempt), (1, 2));
}

/// The event of a deferred emit gets its runs by the scan, or at once when the worker is told.
#[tokio::test(start_paused = true)]
async fn a_deferred_event_is_dispatched_by_a_worker() {
    let world = World::new(Actions::default());
    world.publish("work", vec![act("mail", n(1))]).await;
    let event = surefoot_kernel_core::Event::start("work", json!({})).deferred();
    let emission = world.kernel.scope(SCOPE).emit(event).await.unwrap();
    assert!(emission.runs.is_empty());
    let ticked = world.worker().tick(Tick::max_runs(5)).await.unwrap();
    assert_eq!((ticked.dispatched, ticked.runs.len()), (1, 1));
    assert_eq!(world.state(ticked.runs[0]).await, RunState::Succeeded);
    let again = world.store.inner.event_dispatch(&APP.into(), 10).await.unwrap();
    assert!(again.dispatched.is_empty());
}
