//! Ambiguous and idempotent effects: marked, explained, never repeated, never dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use surefoot_kernel_core::{
    Code, Dependency, EffectState, Fact, Micros, Run, RunId, RunState, Signal,
};
use surefoot_language::{Access, AmbiguousStop, Reconciled};
use surefoot_worker::{Tick, Worker};
use tokio::sync::Notify;

use crate::actions::{Actions, n};
use crate::plans::{act, act_on, saved, timed};
use crate::store::{Op, TestStore, Verdict};
use crate::world::{SCOPE, World, until};

/// Drives a run until its worker dies inside the call.
async fn crash_in_call(world: &World, run: RunId) {
    let doomed = world.worker();
    let crash = tokio::spawn(async move { doomed.run_one().await });
    until("the call is made", || world.log().count("pay.run") == 1).await;
    crash.abort();
    let _ = run;
    tokio::time::advance(Duration::from_secs(121)).await;
}

async fn tick_often(worker: &Worker, times: usize) {
    for _ in 0..times {
        tokio::time::advance(Duration::from_secs(30)).await;
        worker.tick(Tick::max_runs(5)).await.unwrap();
    }
}

fn hangs() -> Actions {
    Actions::default().pay(|_, config| async move {
        std::future::pending::<()>().await;
        Ok(config)
    })
}

fn keys(world: &World) -> Vec<String> {
    world.log().lines().into_iter().filter(|line| line.starts_with("key")).collect()
}

/// Covers behaviour 130.
#[tokio::test(start_paused = true)]
async fn the_mark_is_committed_before_the_body_starts() {
    let seen = Arc::new(std::sync::Mutex::new(None));
    let store = TestStore::new();
    let (inner, noted) = (store.inner.clone(), seen.clone());
    let actions = Actions::default().pay(move |cx, config| {
        let (store, noted) = (inner.clone(), noted.clone());
        async move {
            let request = surefoot_kernel_core::LoadRequest { run: cx.run_id(), after: None };
            let stored = surefoot_kernel_core::RunStore::run_load(&store, request).await.unwrap();
            *noted.lock().unwrap() = stored.unwrap().run.effect().map(|effect| effect.state);
            Ok(config)
        }
    });
    let world = World::on(store, actions);
    let run = world.start(vec![act("pay", n(1))]).await;
    world.worker().run_one().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), Some(EffectState::Marked));
    let facts = world.facts(run).await;
    let marked = facts.iter().position(|fact| matches!(fact, Fact::CallMarked { .. }));
    let done = facts.iter().position(|fact| matches!(fact, Fact::StepCompleted { .. }));
    assert!(marked < done, "{facts:?}");
}

/// Covers behaviour 131.
#[tokio::test(start_paused = true)]
async fn an_error_after_the_mark_is_asked_about_and_never_called_again() {
    let world = World::new(
        Actions::default()
            .pay(|_, _| async { Err(std::io::Error::other("connection reset"))? })
            .find(|_, _| async { Ok(Reconciled::unknown("the bank keeps no records")) }),
    );
    let run = world.start(vec![act("pay", n(1))]).await;
    let worker = world.worker();
    worker.run_one().await.unwrap();
    let queued = world.run(run).await;
    assert_eq!(queued.effect().unwrap().state, EffectState::Ambiguous);
    assert_eq!(world.settle(&worker, run).await, RunState::NeedsAttention);
    assert_eq!(world.error(run).await.code, Code::EFFECT_OUTCOME_UNKNOWN);
    tick_often(&worker, 100).await;
    assert_eq!((world.log().count("pay.run"), world.log().count("pay.reconcile")), (1, 1));
    let keys = keys(&world);
    assert_eq!(keys[0], keys[1]);
}

/// Covers behaviour 131.
#[tokio::test(start_paused = true)]
async fn a_panic_or_a_timeout_after_the_mark_is_ambiguous_too() {
    for panics in [true, false] {
        let world = World::new(
            Actions::default()
                .pay(move |_, config| async move {
                    assert!(!panics, "the client library has a defect");
                    std::future::pending::<()>().await;
                    Ok(config)
                })
                .find(|_, config| async move { Ok(Reconciled::Succeeded(config)) }),
        );
        let run = world.start(vec![timed(act("pay", n(5)), Micros::from_secs(10))]).await;
        let worker = world.worker();
        worker.run_one().await.unwrap();
        let says = |fact: &Fact| match fact {
            Fact::OutcomeUnknown { message, .. } => Some(message.clone()),
            _ => None,
        };
        let message = world.facts(run).await.iter().find_map(says).unwrap();
        let expected = if panics { "panicked: the client library has a defect" } else { "10 s" };
        assert!(message.contains(expected), "{message}");
        assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
        assert_eq!((world.outputs(run).await, world.log().count("pay.run")), (vec![n(5)], 1));
    }
}

/// Covers behaviour 132.
#[tokio::test(start_paused = true)]
async fn the_actions_word_that_nothing_happened_lets_it_run_again() {
    let calls = AtomicUsize::new(0);
    let world = World::new(Actions::default().pay(move |_, config| {
        let first = calls.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if first {
                return Err(AmbiguousStop::nothing_happened_retry("BANK_BUSY", "429"));
            }
            Ok(config)
        }
    }));
    let run = world.start(vec![act("pay", n(1))]).await;
    let worker = world.worker();
    worker.run_one().await.unwrap();
    let released = world.run(run).await;
    assert!(released.effect().is_none());
    assert_eq!(released.last_failure.unwrap().code, Code::from("BANK_BUSY"));
    assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
    assert_eq!((world.log().count("pay.run"), world.log().count("pay.reconcile")), (2, 0));
    let keys = keys(&world);
    assert_eq!(keys[0], keys[1]);
}

/// Covers behaviour 133.
/// Covers field fault 24.
#[tokio::test(start_paused = true)]
async fn after_a_crash_in_the_body_the_provider_is_asked_with_the_original_key() {
    type Answer = fn() -> Reconciled<Value>;
    let cases: [(Answer, RunState, Option<Code>); 3] = [
        (|| Reconciled::Succeeded(json!("receipt")), RunState::Succeeded, None),
        (
            || Reconciled::failed("CARD_DECLINED", "51"),
            RunState::Failed,
            Some(Code::from("CARD_DECLINED")),
        ),
        (
            || Reconciled::unknown("no records"),
            RunState::NeedsAttention,
            Some(Code::EFFECT_OUTCOME_UNKNOWN),
        ),
    ];
    for (answer, state, code) in cases {
        let world = World::new(hangs().find(move |_, _| async move { Ok(answer()) }));
        let run =
            world.start(vec![saved(act("pay", n(1)), "paid"), act_on("mail", "paid", "r")]).await;
        crash_in_call(&world, run).await;
        assert_eq!(world.settle(&world.other_worker(), run).await, state);
        assert_eq!((world.log().count("pay.run"), world.log().count("pay.reconcile")), (1, 1));
        let keys = keys(&world);
        assert_eq!(keys[0], keys[1]);
        match code {
            Some(code) => assert_eq!(world.error(run).await.code, code),
            None => assert_eq!(world.outputs(run).await[1], json!({ "r": "receipt" })),
        }
    }
}

/// Covers behaviour 133.
#[tokio::test(start_paused = true)]
async fn what_the_provider_does_not_know_is_asked_again_until_its_time_is_over() {
    let world = World::new(hangs());
    let run = world.start(vec![act("pay", n(1))]).await;
    crash_in_call(&world, run).await;
    let began = tokio::time::Instant::now();
    assert_eq!(world.settle(&world.other_worker(), run).await, RunState::NeedsAttention);
    // From the mark on, which is older by the lease.
    let waited = began.elapsed().as_secs() + 121;
    assert!((600..=602).contains(&waited), "{waited}");
    assert_eq!(world.error(run).await.code, Code::EFFECT_OUTCOME_UNKNOWN);
    assert_eq!(world.log().count("pay.run"), 1);
    assert!(world.log().count("pay.reconcile") > 5);
    assert!(world.run(run).await.failures <= 1);
}

/// Covers behaviour 134.
#[tokio::test(start_paused = true)]
async fn an_error_of_reconcile_is_tried_again_with_backoff() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let world = World::new(hangs().find(move |_, config| {
        let ask = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            match ask {
                0 => Err(std::io::Error::other("the bank is closed"))?,
                1 => panic!("a defect"),
                _ => Ok(Reconciled::Succeeded(config)),
            }
        }
    }));
    let run = world.start(vec![act("pay", n(1))]).await;
    crash_in_call(&world, run).await;
    let worker = world.other_worker();
    for text in ["the bank is closed", "a defect"] {
        while world.run(run).await.last_failure.is_none_or(|it| !it.message.contains(text)) {
            tokio::time::advance(Duration::from_secs(1)).await;
            worker.tick(Tick::max_runs(1)).await.unwrap();
        }
        let released = world.run(run).await;
        let code = released.last_failure.as_ref().map(|failure| &failure.code);
        assert_eq!(code, Some(&Code::EFFECT_RECONCILE_FAILED));
        assert!(released.claimable_at().is_none_or(|at| at > world.store.inner.clock().now()));
    }
    assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
    assert_eq!((world.log().count("pay.run"), asked.load(Ordering::SeqCst)), (1, 3));
}

/// Covers behaviour 135.
#[tokio::test(start_paused = true)]
async fn a_refusal_calls_nothing_and_marks_nothing() {
    for (action, by_app) in
        [("book", false), ("mail", false), ("pay", false), ("pay", true), ("mail", true)]
    {
        let world = World::new(
            Actions::default()
                .may(move |_, _| async move { Ok(Access::allowed_if(by_app, "not on a Sunday")) }),
        );
        let run = world.start(vec![act(action, n(1))]).await;
        let worker = world.builder().authorize(move |gate| async move {
            assert_eq!((gate.step.step_key().as_str(), &gate.input["n"]), ("steps.0", &json!(1)));
            Ok(Access::allowed_if(!by_app, "the app says no"))
        });
        let worker = worker.build().unwrap();
        worker.run_one().await.unwrap();
        let error = world.error(run).await;
        let why = if by_app { "the app says no" } else { "not on a Sunday" };
        assert_eq!((error.code, error.message.as_str()), (Code::FORBIDDEN, why));
        assert_eq!(world.log().count(&format!("{action}.run")), 0);
        // The application is asked before the action.
        assert_eq!(world.log().count(&format!("{action}.authorize")), usize::from(!by_app));
        assert!(!world.facts(run).await.iter().any(|fact| matches!(fact, Fact::CallMarked { .. })));
    }
}

/// Covers behaviour 136.
#[tokio::test(start_paused = true)]
async fn a_step_that_comes_back_from_its_wait_is_authorized_again() {
    let allowed = Arc::new(AtomicBool::new(true));
    let may = allowed.clone();
    let world = World::new(
        Actions::default()
            .may(move |_, cx| {
                let may = may.load(Ordering::SeqCst);
                async move { Ok(Access::allowed_if(may, format!("resumed {}", cx.resumed()))) }
            })
            .mail(|_, _| async {
                Err(surefoot_language::Stop::wait_for(Dependency::on("approval", "7")))
            }),
    );
    let run = world.start(vec![act("mail", n(1))]).await;
    let worker = world.worker();
    worker.run_one().await.unwrap();
    assert_eq!(world.state(run).await, RunState::Waiting);
    allowed.store(false, Ordering::SeqCst);
    world.kernel.scope(SCOPE).signal(Signal::new("approval", "7")).await.unwrap();
    assert_eq!(world.settle(&worker, run).await, RunState::Failed);
    let error = world.error(run).await;
    assert_eq!((error.code, error.message.as_str()), (Code::FORBIDDEN, "resumed true"));
    assert_eq!(world.log().count("mail.run"), 1);
}

fn waits_first() -> Actions {
    Actions::default().pay(|cx, config| async move {
        if !cx.resumed() {
            let on = Dependency::on("approval", "7");
            return Err(AmbiguousStop::nothing_happened_waiting(on));
        }
        assert_eq!(cx.signal(), Some(&json!("yes")));
        Ok(config)
    })
}

/// Covers behaviour 138.
#[tokio::test(start_paused = true)]
async fn an_ambiguous_action_that_waits_settles_its_mark_and_runs_again() {
    let world = World::new(waits_first());
    let run = world.start(vec![act("pay", n(1))]).await;
    let worker = world.worker();
    worker.run_one().await.unwrap();
    let parked = world.run(run).await;
    assert_eq!((parked.state(), parked.effect()), (RunState::Waiting, None));
    assert!(world.facts(run).await.iter().any(|fact| matches!(fact, Fact::NothingHappened { .. })));
    let signal = Signal::new("approval", "7").data("yes");
    world.kernel.scope(SCOPE).signal(signal).await.unwrap();
    assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
    assert_eq!((world.log().count("pay.run"), world.log().count("pay.reconcile")), (2, 0));
    let keys = keys(&world);
    assert_eq!(keys[0], keys[1]);
}

/// Covers behaviour 138.
#[tokio::test(start_paused = true)]
async fn a_crash_before_such_a_wait_is_recorded_is_explained_by_the_provider() {
    let world = World::new(waits_first());
    let run = world.start(vec![act("pay", n(1))]).await;
    world.store.on(|op| match op {
        Op::Commit(_) if op.facts().contains("nothing_happened") => Verdict::Wait(Arc::default()),
        _ => Verdict::Go,
    });
    crash_in_call(&world, run).await;
    let other = world.other_worker();
    other.tick(Tick::max_runs(1)).await.unwrap();
    assert_eq!((world.log().count("pay.run"), world.log().count("pay.reconcile")), (1, 1));
}

/// Covers field fault 16.
#[tokio::test(start_paused = true)]
async fn a_worker_whose_lease_was_stolen_before_the_mark_never_enters_the_body() {
    let world = World::new(Actions::default());
    let run = world.start(vec![act("pay", n(1))]).await;
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    world.store.on(move |op| match op {
        Op::Commit(_) if op.facts().contains("call_marked") => Verdict::Wait(held.clone()),
        Op::Renew(_) => Verdict::Fail(crate::store::unavailable()),
        _ => Verdict::Go,
    });
    let slow = world.worker();
    let stale = tokio::spawn(async move { slow.run_one().await });
    until("the mark is on the way", || world.log().count("pay.authorize") == 1).await;
    assert_eq!(world.settle(&world.other_worker(), run).await, RunState::Succeeded);
    gate.notify_one();
    stale.await.unwrap().unwrap();
    assert_eq!(world.log().count("pay.run"), 1);
}

/// A mark that took most of the lease is not followed by the call: it could outlive the lease.
#[tokio::test(start_paused = true)]
async fn the_call_is_not_made_in_the_last_fifth_of_the_lease() {
    let world = World::new(Actions::default());
    let run = world.start(vec![act("pay", n(1))]).await;
    let mut slow = true;
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    world.store.on(move |op| match op {
        Op::Commit(_) if op.facts().contains("call_marked") && slow => {
            slow = false;
            Verdict::Hold(held.clone())
        }
        Op::Renew(_) => Verdict::Fail(crate::store::unavailable()),
        _ => Verdict::Go,
    });
    let worker = world.worker();
    let ticking = worker.clone();
    let driving = tokio::spawn(async move { ticking.run_one().await });
    until("the mark is stored", || world.log().count("pay.authorize") == 1).await;
    tokio::time::sleep(Duration::from_secs(97)).await;
    gate.notify_one();
    driving.await.unwrap().unwrap();
    let row: Run = world.run(run).await;
    assert_eq!((row.state(), row.effect(), row.failures), (RunState::Queued, None, 0));
    assert_eq!(world.log().count("pay.run"), 0);
    world.store.heal();
    assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
    assert_eq!((world.log().count("pay.run"), world.log().count("pay.reconcile")), (1, 0));
}

/// Evidence of an action that does not know is kept for the operator.
#[tokio::test(start_paused = true)]
async fn evidence_is_kept() {
    let world = World::new(Actions::default().pay(|_, _| async {
        let stop = AmbiguousStop::may_have_happened("timeout after send");
        Err(stop.evidence(json!({ "reply": "504" })))
    }));
    let run = world.start(vec![act("pay", n(1))]).await;
    world.worker().run_one().await.unwrap();
    let row = world.run(run).await;
    assert_eq!(row.effect().unwrap().evidence.as_deref(), Some(r#"{"reply":"504"}"#));
    assert_eq!(row.state(), RunState::Queued);
}

/// What `NotFound` proves is counted from the mark: under one whose answer came late, no call is made.
///
/// Covers behaviour 133.
#[tokio::test(start_paused = true)]
async fn no_call_is_made_under_a_mark_whose_answer_came_late() {
    let world = World::new(Actions::default());
    let run = world.start(vec![act("pay", n(1))]).await;
    let late = Arc::new(Notify::new());
    let (held, is_held) = (late.clone(), Arc::new(AtomicBool::new(false)));
    let seen = is_held.clone();
    world.store.on(move |op| {
        if op.facts().contains("call_marked") && !seen.swap(true, Ordering::SeqCst) {
            Verdict::Hold(held.clone())
        } else {
            Verdict::Go
        }
    });
    let running = world.worker().start().await.unwrap();
    until("it is marked", || is_held.load(Ordering::SeqCst)).await;
    // The lease is renewed all the while.
    tokio::time::sleep(Duration::from_secs(400)).await;
    assert_eq!(world.log().count("pay.run"), 0);
    late.notify_one();
    until("it is called", || world.log().count("pay.run") == 1).await;
    running.drain().await.unwrap();
    assert_eq!(world.state(run).await, RunState::Succeeded);
    let facts = world.facts(run).await;
    let marks: Vec<_> = facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::CallMarked { at, .. } => Some(*at),
            _ => None,
        })
        .collect();
    assert_eq!(marks.len(), 2, "{facts:?}");
    assert!(marks[1].since(marks[0]) > Micros::from_secs(300), "{marks:?}");
    assert!(facts.iter().any(|fact| matches!(fact, Fact::NothingHappened { .. })), "{facts:?}");
}
