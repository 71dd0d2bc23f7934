//! Waits, signals and deadlines.

use std::time::Duration;

use serde_json::{Value, json};
use surefoot_kernel_core::{
    Dependency, Micros, Phase, RowInput, Run, RunId, RunState, Signal, Wake,
};
use surefoot_language::Stop;
use surefoot_worker::Tick;

use crate::actions::{Actions, n};
use crate::plans::{act, delay, wait_for};
use crate::world::{SCOPE, World, until};

fn approval(world: &World) -> surefoot_worker::Scoped<crate::store::TestStore> {
    world.kernel.scope(SCOPE)
}

/// Covers behaviour 143.
#[tokio::test(start_paused = true)]
async fn a_signal_wakes_exactly_who_waits_for_it() {
    let world = World::new(Actions::default().mail(|cx, config| async move {
        if cx.resumed() {
            return Ok(config);
        }
        Err(Stop::wait_for(Dependency::on("approval", "7").app_wide()))
    }));
    let scoped = world.start(vec![wait_for("approval", "7", None)]).await;
    world.publish("other", vec![wait_for("approval", "8", None)]).await;
    world.publish("kind", vec![wait_for("refusal", "7", None)]).await;
    world.publish("wide", vec![act("mail", n(1))]).await;
    let (other, kind, wide) =
        (world.emit("other").await, world.emit("kind").await, world.emit("wide").await);
    let worker = world.worker();
    worker.tick(Tick::max_runs(10)).await.unwrap();
    for run in [scoped, other, kind, wide] {
        assert_eq!(world.state(run).await, RunState::Waiting);
    }
    let elsewhere =
        world.kernel.scope("hamburg").signal(Signal::new("approval", "7")).await.unwrap();
    assert_eq!((elsewhere.new, elsewhere.woken.len()), (true, 0));
    let app_wide = world.kernel.signal(Signal::new("approval", "7")).await.unwrap();
    assert_eq!(app_wide.woken, [wide]);
    let here = approval(&world).signal(Signal::new("approval", "7")).await.unwrap();
    assert_eq!(here.woken, [scoped]);
    worker.tick(Tick::max_runs(10)).await.unwrap();
    assert_eq!(world.state(other).await, RunState::Waiting);
    assert_eq!(world.state(kind).await, RunState::Waiting);
    assert_eq!(world.state(wide).await, RunState::Succeeded);
    assert_eq!(world.outputs(scoped).await, [json!({ "signaled": true, "data": null })]);
}

/// Covers behaviour 144.
/// Covers field fault 27.
/// Covers field fault 33.
#[tokio::test(start_paused = true)]
async fn a_signal_that_came_first_ends_the_wait_at_once() {
    let world = World::new(Actions::default());
    let signal = Signal::new("approval", "7").data("first");
    approval(&world).signal(signal).await.unwrap();
    let again = approval(&world).signal(Signal::new("approval", "7").data("second")).await.unwrap();
    assert!(!again.new);
    tokio::time::advance(Duration::from_secs(3600)).await;
    let run = world.start(vec![wait_for("approval", "7", None)]).await;
    let running = world.builder().start().await.unwrap();
    let began = tokio::time::Instant::now();
    let ended = world.kernel.await_run(run).await.unwrap();
    assert_eq!(ended.state(), RunState::Succeeded);
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(world.outputs(run).await, [json!({ "signaled": true, "data": "first" })]);
    running.stop(Duration::ZERO).await;
}

/// Covers behaviour 145.
#[tokio::test(start_paused = true)]
async fn eight_wakes_at_once_are_one_resume() {
    let world = World::new(Actions::default());
    let run = world.start(vec![wait_for("approval", "7", None), act("mail", n(1))]).await;
    let worker = world.worker();
    worker.run_one().await.unwrap();
    let mut sending = tokio::task::JoinSet::new();
    for number in 0..8 {
        let scope = world.other().scope(SCOPE);
        sending.spawn(async move { scope.signal(Signal::new("approval", "7").data(number)).await });
    }
    let sent: Vec<_> = sending.join_all().await.into_iter().map(Result::unwrap).collect();
    assert_eq!(sent.iter().filter(|sent| sent.new).count(), 1);
    assert_eq!(sent.iter().map(|sent| sent.woken.len()).sum::<usize>(), 1);
    assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
    assert_eq!((world.run(run).await.generation, world.log().count("mail.run")), (2, 1));
}

/// Covers behaviour 146.
#[tokio::test(start_paused = true)]
async fn a_deadline_runs_the_step_again_under_the_same_key() {
    let world = World::new(Actions::default().mail(|cx, _| async move {
        if cx.resumed() {
            assert_eq!(cx.signal(), None);
            return Ok(json!("gave up waiting"));
        }
        let on = Dependency::on("reply", "7").deadline_in(Duration::from_secs(60));
        Err(Stop::wait_for(on))
    }));
    let run = world.start(vec![act("mail", n(1))]).await;
    let worker = world.worker();
    worker.run_one().await.unwrap();
    let parked = world.run(run).await;
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
    let ended = world.run(run).await;
    assert!(ended.generation > parked.generation);
    assert_eq!(world.outputs(run).await, [json!("gave up waiting")]);
    let lines = world.log().lines();
    let keys: Vec<&String> = lines.iter().filter(|line| line.starts_with("key")).collect();
    assert_eq!((keys.len(), keys[0]), (2, keys[1]));
}

/// Covers behaviour 147.
#[tokio::test(start_paused = true)]
async fn a_deadline_that_fires_late_is_ignored() {
    let world = World::new(Actions::default());
    let limit = Some(Micros::from_secs(60));
    let run = world.start(vec![wait_for("approval", "7", limit), delay(1000)]).await;
    let worker = world.worker();
    worker.run_one().await.unwrap();
    approval(&world).signal(Signal::new("approval", "7")).await.unwrap();
    worker.run_one().await.unwrap();
    // It waits for something else by now.
    tokio::time::advance(Duration::from_secs(100)).await;
    let before = world.run(run).await;
    assert_eq!(worker.tick(Tick::max_runs(5)).await.unwrap().woken, 0);
    let late = RowInput::Wake { wake: Wake::Deadline, at_once: false };
    assert!(world.act_on(run, late).await.is_err());
    assert_eq!(world.run(run).await, before);
}

/// Covers behaviour 148.
#[tokio::test(start_paused = true)]
async fn a_thousand_runs_that_wait_for_one_key_wake_once_each() {
    let world = World::new(Actions::default());
    world.publish("work", vec![wait_for("opening", "day", None), act("compute", n(1))]).await;
    let mut runs: Vec<RunId> = Vec::new();
    for _ in 0..1_000 {
        runs.push(world.emit("work").await);
    }
    let worker = world.builder().concurrency(50).build().unwrap();
    worker.tick(Tick::max_runs(1_000)).await.unwrap();
    let sent = approval(&world).signal(Signal::new("opening", "day")).await.unwrap();
    runs.sort();
    assert_eq!(sent.woken, runs);
    let ticked = worker.tick(Tick::max_runs(2_000)).await.unwrap();
    let mut resumed = ticked.runs;
    resumed.sort();
    assert_eq!((resumed, ticked.woken), (runs, 0));
}

/// Covers behaviour 149.
#[tokio::test(start_paused = true)]
async fn the_first_pass_after_a_restart_wakes_what_is_due() {
    let world = World::new(Actions::default());
    let run = world.start(vec![delay(60)]).await;
    world.worker().run_one().await.unwrap();
    tokio::time::advance(Duration::from_secs(3600)).await;
    let ticked = world.other_worker().tick(Tick::max_runs(5)).await.unwrap();
    assert_eq!((ticked.woken, ticked.runs), (1, vec![run]));
    assert_eq!(world.state(run).await, RunState::Succeeded);
}

/// Covers field fault 57.
#[tokio::test(start_paused = true)]
async fn a_wait_of_a_run_that_begins_late_counts_from_when_it_begins() {
    let world = World::new(Actions::default());
    let run = world.start(vec![delay(3600)]).await;
    tokio::time::advance(Duration::from_secs(2 * 3600)).await;
    world.worker().run_one().await.unwrap();
    let begins = world.store.inner.clock().now();
    let due = begins.plus(Micros::from_secs(3600));
    let deadline = |run: &Run| match &run.phase {
        Phase::Waiting(waiting) => waiting.deadline,
        other => panic!("{other:?}"),
    };
    assert_eq!(deadline(&world.run(run).await), Some(due));
    // Whoever looks again, or wakes too early, computes nothing anew.
    tokio::time::advance(Duration::from_secs(1800)).await;
    world.other_worker().tick(Tick::max_runs(5)).await.unwrap();
    assert_eq!(deadline(&world.run(run).await), Some(due));
    tokio::time::advance(Duration::from_secs(1800)).await;
    world.other_worker().tick(Tick::max_runs(5)).await.unwrap();
    assert_eq!(world.state(run).await, RunState::Succeeded);
}

/// Covers behaviour 150.
#[tokio::test(start_paused = true)]
async fn a_wake_for_a_canceled_run_changes_nothing() {
    let world = World::new(Actions::default());
    let run = world.start(vec![wait_for("approval", "7", None)]).await;
    world.worker().run_one().await.unwrap();
    world.kernel.cancel(run, "stop it").await.unwrap();
    let before = world.run(run).await;
    let sent = approval(&world).signal(Signal::new("approval", "7")).await.unwrap();
    assert!(sent.woken.is_empty());
    world.worker().tick(Tick::max_runs(5)).await.unwrap();
    assert_eq!(world.run(run).await, before);
}

/// Covers field fault 14.
#[tokio::test(start_paused = true)]
async fn every_recovery_sees_the_signal_that_ended_the_wait() {
    let world = World::new(Actions::default());
    let run = world.start(vec![wait_for("approval", "7", None), act("mail", n(1))]).await;
    world.worker().run_one().await.unwrap();
    approval(&world).signal(Signal::new("approval", "7").data("first")).await.unwrap();
    // The first that resumes it dies before the outcome of the wait is durable.
    world.store.on(|op| match op {
        crate::store::Op::Commit(_) => crate::store::Verdict::Wait(Default::default()),
        _ => crate::store::Verdict::Go,
    });
    let doomed = world.worker();
    let crash = tokio::spawn(async move { doomed.run_one().await });
    until("it is on the way", || world.store.count("commit") == 2).await;
    crash.abort();
    approval(&world).signal(Signal::new("approval", "7").data("second")).await.unwrap();
    tokio::time::advance(Duration::from_secs(121)).await;
    let (a, b) = (world.other_worker(), world.other_worker());
    let (first, second) = tokio::join!(a.run_one(), b.run_one());
    let drove: Vec<RunId> = [first.unwrap(), second.unwrap()].into_iter().flatten().collect();
    assert_eq!(drove, [run]);
    let data: Vec<Value> = world.outputs(run).await;
    assert_eq!(data[0], json!({ "signaled": true, "data": "first" }));
}

/// Covers field fault 30.
#[tokio::test(start_paused = true)]
async fn without_any_notification_everything_still_completes_by_the_scan() {
    let world = World::new(Actions::default());
    let run = {
        world
            .publish("work", vec![wait_for("approval", "7", None), delay(5), act("mail", n(1))])
            .await;
        world.emit_quietly("work").await
    };
    let running = world.builder().start().await.unwrap();
    until("it waits", || world.store.count("commit") >= 1).await;
    let scope = world.other().scope(SCOPE);
    scope.signal(Signal::new("approval", "7")).await.unwrap();
    let began = tokio::time::Instant::now();
    let ended = world.other().await_run(run).await.unwrap();
    assert_eq!(ended.state(), RunState::Succeeded);
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
    running.stop(Duration::ZERO).await;
}

/// A step that waits again on what has occurred already is asked again at growing intervals, not in a spin.
#[tokio::test(start_paused = true)]
async fn waiting_for_what_has_occurred_does_not_spin() {
    let world = World::new(
        Actions::default()
            .mail(|_, _| async { Err(Stop::wait_for(Dependency::on("approval", "7"))) }),
    );
    approval(&world).signal(Signal::new("approval", "7")).await.unwrap();
    let run = world.start(vec![act("mail", n(1))]).await;
    let running = world.builder().start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(300)).await;
    let calls = world.log().count("mail.run");
    assert!((5..=9).contains(&calls), "{calls}");
    assert_eq!(world.run(run).await.failures, 0);
    running.stop(Duration::ZERO).await;
}
