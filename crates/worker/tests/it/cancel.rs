//! Cancel requests, in every state.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::{Fact, OperatorStore, Phase, RunState};
use surefoot_language::{AmbiguousStop, Reconciled, Stop};
use surefoot_worker::{CancelError, CancelOutcome, Tick};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::actions::{Actions, n};
use crate::plans::{act, delay, wait_for};
use crate::store::{Op, Verdict, unknown};
use crate::world::{APP, World, until};

fn message(phase: &Phase) -> Option<&str> {
    match phase {
        Phase::Canceled { message } => message.as_deref(),
        other => panic!("not canceled: {other:?}"),
    }
}

/// Covers behaviour 104.
/// Covers field fault 131.
#[tokio::test(start_paused = true)]
async fn a_queued_or_waiting_run_is_canceled_at_once() {
    let world = World::new(Actions::default());
    let waiting = world.start(vec![wait_for("approval", "7", None), act("mail", n(1))]).await;
    world.worker().run_one().await.unwrap();
    let queued = world.emit("work").await;
    for (run, state) in [(queued, RunState::Queued), (waiting, RunState::Waiting)] {
        assert_eq!(world.state(run).await, state);
        let outcome = world.kernel.cancel(run, "no need any more").await.unwrap();
        assert_eq!(outcome, CancelOutcome::Canceled);
        assert_eq!(message(&world.run(run).await.phase), Some("no need any more"));
    }
    assert_eq!(world.log().count("mail"), 0);
    let audit = world.store.audit_list(&APP.into(), None, 10).await.unwrap();
    assert_eq!(audit.iter().filter(|row| row.verb == "cancel").count(), 2);
}

/// Covers behaviour 105.
/// Covers behaviour 106.
/// Covers field fault 135.
#[tokio::test(start_paused = true)]
async fn a_running_run_hears_of_cancel_within_a_second_and_goes_no_further() {
    let heard = Arc::new(std::sync::Mutex::new(None));
    let noted = heard.clone();
    let world = World::new(Actions::default().mail(move |cx, config| {
        let noted = noted.clone();
        async move {
            cx.canceled().await;
            *noted.lock().unwrap() = Some(Instant::now());
            cx.heartbeat().await?;
            panic!("code after the heartbeat runs: {config}");
        }
    }));
    let run = world.start(vec![act("mail", n(1)), act("pay", n(2))]).await;
    // The only slot is taken, and whoever cancels sits in another process.
    let running = world.builder().concurrency(1).start().await.unwrap();
    until("the hook runs", || world.log().count("mail.run") == 1).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let asked = Instant::now();
    let outcome = world.other().cancel(run, "stop it").await.unwrap();
    assert_eq!(outcome, CancelOutcome::WillCancel { state: RunState::Running });
    let ended = world.kernel.await_run(run).await.unwrap();
    assert_eq!(message(&ended.phase), Some("stop it"));
    let waited = heard.lock().unwrap().unwrap() - asked;
    assert!(waited <= Duration::from_millis(1_100), "{waited:?}");
    assert_eq!(world.log().count("pay"), 0);
    running.stop(Duration::ZERO).await;
}

/// Covers behaviour 105.
#[tokio::test(start_paused = true)]
async fn an_outcome_that_comes_after_a_cancel_request_is_recorded_and_the_run_canceled() {
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    let world = World::new(Actions::default().mail(move |_, config| {
        let held = held.clone();
        async move {
            held.notified().await;
            Ok(config)
        }
    }));
    let run = world.start(vec![act("mail", n(7)), act("pay", n(2))]).await;
    let worker = world.worker();
    let driving = tokio::spawn(async move { worker.run_one().await });
    until("the hook runs", || world.log().count("mail.run") == 1).await;
    world.other().cancel(run, "stop it").await.unwrap();
    let commits = world.store.count("commit");
    gate.notify_one();
    driving.await.unwrap().unwrap();
    assert_eq!(world.state(run).await, RunState::Canceled);
    assert_eq!((world.outputs(run).await, world.log().count("mail.run")), (vec![n(7)], 1));
    // One that met the conflict, and one that recorded both.
    assert_eq!(world.store.count("commit") - commits, 2);
}

/// Covers behaviour 105.
#[tokio::test(start_paused = true)]
async fn a_cancel_request_between_two_steps_calls_no_hook_of_the_second() {
    let world = World::new(Actions::default());
    let run = world.start(vec![act("mail", n(1)), act("mail", n(2))]).await;
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    let mut first = true;
    world.store.on(move |op| match op {
        Op::Commit(_) if op.facts().contains("step_completed") && first => {
            first = false;
            Verdict::Hold(held.clone())
        }
        _ => Verdict::Go,
    });
    let worker = world.worker();
    let driving = tokio::spawn(async move { worker.run_one().await });
    until("the outcome is stored", || world.log().count("mail.run") == 1).await;
    world.kernel.cancel(run, "stop it").await.unwrap();
    gate.notify_one();
    driving.await.unwrap().unwrap();
    assert_eq!(
        (world.state(run).await, world.outputs(run).await),
        (RunState::Canceled, vec![n(1)])
    );
    assert_eq!((world.log().count("mail.authorize"), world.log().count("mail.run")), (1, 1));
}

/// Covers behaviour 107.
#[tokio::test(start_paused = true)]
async fn a_canceled_run_whose_worker_is_dead_is_finalised_by_recovery() {
    let world = World::new(Actions::default().mail(|_, config| async move {
        std::future::pending::<()>().await;
        Ok(config)
    }));
    let run = world.start(vec![act("mail", n(1))]).await;
    let doomed = world.worker();
    let crash = tokio::spawn(async move { doomed.run_one().await });
    until("the hook runs", || world.log().count("mail.run") == 1).await;
    crash.abort();
    world.kernel.cancel(run, "stop it").await.unwrap();
    let other = world.other_worker();
    assert_eq!(other.tick(Tick::max_runs(5)).await.unwrap().finalised, 0);
    tokio::time::advance(Duration::from_secs(121)).await;
    let ticked = other.tick(Tick::max_runs(5)).await.unwrap();
    assert_eq!((ticked.finalised, ticked.runs.len()), (1, 0));
    assert_eq!((world.state(run).await, world.log().count("mail.run")), (RunState::Canceled, 1));
}

/// Covers behaviour 109.
/// Covers field fault 131.
#[tokio::test(start_paused = true)]
async fn canceling_an_ended_run_changes_nothing() {
    let world = World::new(Actions::default());
    let run = world.start(vec![act("mail", n(1))]).await;
    world.settle(&world.worker(), run).await;
    let before = world.run(run).await;
    let outcome = world.kernel.cancel(run, "too late").await.unwrap();
    assert_eq!(outcome, CancelOutcome::AlreadyEnded(RunState::Succeeded));
    assert_eq!(world.run(run).await, before);
    let unknown = surefoot_kernel_core::RunId::from_bytes([9; 16]);
    let refused = world.kernel.cancel(unknown, "what").await;
    assert!(matches!(refused, Err(CancelError::NotFound { .. })));
    let foreign = world.other_app("bank").cancel(run, "not mine").await;
    assert!(matches!(foreign, Err(CancelError::NotFound { .. })));
}

/// Covers behaviour 110.
#[tokio::test(start_paused = true)]
async fn of_a_cancel_and_a_deadline_at_the_same_moment_one_wins() {
    for cancel_first in [true, false] {
        let world = World::new(Actions::default());
        let run = world.start(vec![delay(60), act("mail", n(1))]).await;
        let worker = world.worker();
        worker.run_one().await.unwrap();
        tokio::time::advance(Duration::from_secs(60)).await;
        let tick = || async { worker.tick(Tick::max_runs(0)).await.unwrap() };
        if cancel_first {
            world.kernel.cancel(run, "stop it").await.unwrap();
            assert_eq!(tick().await.woken, 0);
        } else {
            assert_eq!(tick().await.woken, 1);
            let outcome = world.kernel.cancel(run, "stop it").await.unwrap();
            assert_eq!(outcome, CancelOutcome::Canceled);
        }
        worker.tick(Tick::max_runs(5)).await.unwrap();
        assert_eq!((world.state(run).await, world.log().count("mail")), (RunState::Canceled, 0));
    }
}

/// Covers field fault 132.
#[tokio::test(start_paused = true)]
async fn a_late_result_does_not_change_a_canceled_run() {
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    let world = World::new(Actions::default());
    let run = world.start(vec![act("mail", n(1))]).await;
    world.store.on(move |op| match op {
        Op::Commit(_) if op.facts().contains("step_completed") => Verdict::Wait(held.clone()),
        Op::Renew(_) => Verdict::Fail(crate::store::unavailable()),
        _ => Verdict::Go,
    });
    let slow = world.worker();
    let driving = tokio::spawn(async move { slow.run_one().await });
    until("the outcome is on the way", || world.log().count("mail.run") == 1).await;
    world.other().cancel(run, "stop it").await.unwrap();
    tokio::time::advance(Duration::from_secs(121)).await;
    world.other_worker().tick(Tick::max_runs(5)).await.unwrap();
    let canceled = world.run(run).await;
    assert_eq!(canceled.state(), RunState::Canceled);
    gate.notify_one();
    driving.await.unwrap().unwrap();
    assert_eq!(world.run(run).await, canceled);
}

/// Covers field fault 134.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_canceled_during_its_backoff_never_runs_again() {
    let world =
        World::new(Actions::default().mail(|_, _| async { Err(Stop::retry("BUSY", "429")) }));
    let run = world.start(vec![act("mail", n(1))]).await;
    let worker = world.worker();
    worker.run_one().await.unwrap();
    assert_eq!(world.kernel.cancel(run, "stop it").await.unwrap(), CancelOutcome::Canceled);
    for _ in 0..50 {
        tokio::time::advance(Duration::from_secs(10)).await;
        worker.tick(Tick::max_runs(5)).await.unwrap();
    }
    assert_eq!((world.state(run).await, world.log().count("mail.run")), (RunState::Canceled, 1));
}

/// Covers behaviour 105.
#[tokio::test(start_paused = true)]
async fn an_unexplained_effect_is_explained_before_a_cancel_is_honoured() {
    let world = World::new(
        Actions::default()
            .pay(|cx, _| async move {
                cx.canceled().await;
                cx.heartbeat().await?;
                Err(AmbiguousStop::may_have_happened("not reached"))
            })
            .find(|cx, _| async move {
                // A cancel request, of which the worker has heard by now, does not stop the question.
                tokio::time::sleep(Duration::from_secs(5)).await;
                assert!(!cx.is_canceled());
                cx.heartbeat().await?;
                Ok(Reconciled::Succeeded(json!("receipt")))
            }),
    );
    let run = world.start(vec![act("pay", n(1)), act("mail", n(2))]).await;
    let worker = world.worker();
    let ticking = worker.clone();
    let driving = tokio::spawn(async move { ticking.run_one().await });
    until("the call is made", || world.log().count("pay.run") == 1).await;
    let outcome = world.kernel.cancel(run, "stop it").await.unwrap();
    assert_eq!(outcome, CancelOutcome::WillCancel { state: RunState::Running });
    driving.await.unwrap().unwrap();
    let flagged = world.run(run).await;
    assert_eq!(flagged.state(), RunState::Queued);
    assert!(flagged.has_unsettled_effect() && flagged.cancel.is_some());
    assert_eq!(world.settle(&worker, run).await, RunState::Canceled);
    assert_eq!(world.outputs(run).await, [json!("receipt")]);
    assert_eq!((world.log().count("pay.run"), world.log().count("mail")), (1, 0));
}

/// A cancel request whose answer was lost is found when it is asked again.
#[tokio::test(start_paused = true)]
async fn a_cancel_request_whose_answer_was_lost_is_recorded_once() {
    let world = World::new(Actions::default());
    let run = world.start(vec![act("mail", n(1))]).await;
    let mut lost = false;
    world.store.on(move |op| match op {
        Op::Commit(_) if !lost => {
            lost = true;
            Verdict::Lose(unknown())
        }
        _ => Verdict::Go,
    });
    let outcome = world.kernel.cancel(run, "stop it").await.unwrap();
    assert_eq!(outcome, CancelOutcome::AlreadyEnded(RunState::Canceled));
    let requests = world.facts(run).await.into_iter();
    assert_eq!(requests.filter(|fact| matches!(fact, Fact::CancelRequested(_))).count(), 1);
}
