//! An outcome and the mark of the next call in one commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::{
    Code, Commit, Fact, LoadRequest, RowInput, RunId, RunState, RunStore, StoreError, Stored,
    decide_row,
};
use surefoot_language::{Access, Reconciled};
use surefoot_testkit::MemoryStore;
use tokio::sync::Notify;

use crate::actions::{Actions, n};
use crate::plans::{act, act_on, saved};
use crate::store::{Op, TestStore, Verdict, unavailable, unknown};
use crate::world::{World, until};

/// Whether it writes an outcome and, behind it, a mark.
fn is_joined(op: &Op<'_>) -> bool {
    let facts = op.facts();
    let (done, marked) = (facts.find("step_completed"), facts.find("call_marked"));
    done.is_some() && done < marked
}

/// Two payments, the second one of what the first one yields.
async fn two(world: &World) -> RunId {
    world.start(vec![saved(act("wire", n(1)), "paid"), act_on("wire", "paid", "of")]).await
}

/// The run as it stands in the store.
async fn stored(store: &MemoryStore, run: RunId) -> Stored {
    store.run_load(LoadRequest { run, after: None }).await.unwrap().unwrap()
}

fn marks(facts: &[Fact]) -> usize {
    facts.iter().filter(|fact| fact.marked_step().is_some()).count()
}

fn outcomes(facts: &[Fact]) -> usize {
    facts.iter().filter(|fact| fact.outcome_of().is_some()).count()
}

async fn ran_once_each(world: &World, run: RunId) {
    assert_eq!(world.outputs(run).await, [n(1), json!({ "of": n(1) })]);
    for step in ["steps.0", "steps.1"] {
        assert_eq!(world.log().count(&format!("wire.run {step}")), 1, "{:?}", world.log().lines());
    }
}

/// Covers behaviour 130.
#[tokio::test(start_paused = true)]
async fn an_outcome_and_the_next_mark_are_one_commit_where_nobody_is_asked_between_them() {
    for (action, commits) in [("wire", 11), ("pay", 21), ("mail", 11)] {
        let world = World::new(Actions::default());
        let run = world.start((0..10).map(|i| act(action, n(i))).collect()).await;
        world.worker().run_one().await.unwrap();
        assert_eq!(world.state(run).await, RunState::Succeeded);
        assert_eq!(world.store.count("commit"), commits, "{action}");
        assert_eq!(world.log().count(&format!("{action}.run")), 10);
        let asked = if action == "wire" { 0 } else { 10 };
        assert_eq!(world.log().count(&format!("{action}.authorize")), asked);
        assert_eq!(world.log().count(&format!("{action}.cost")), asked);
        let facts = world.facts(run).await;
        assert_eq!((marks(&facts), outcomes(&facts)), (if action == "mail" { 0 } else { 10 }, 10));
    }
}

/// A call is made only once both are stored: whoever looks then finds the outcome, and the mark.
#[tokio::test(start_paused = true)]
async fn the_next_call_is_made_behind_both() {
    let store = TestStore::new();
    let inner = store.inner.clone();
    let actions = Actions::default().pay(move |cx, config| {
        let inner = inner.clone();
        async move {
            let stored = stored(&inner, cx.run_id()).await;
            let open = stored.run.effect().map(|effect| effect.step.clone());
            assert_eq!(open.as_ref(), Some(cx.step_key()));
            let facts: Vec<_> =
                stored.journal.unwrap().into_iter().flat_map(|entry| entry.facts).collect();
            assert_eq!(outcomes(&facts), usize::from(cx.step_key().as_str() == "steps.1"));
            Ok(config)
        }
    });
    let world = World::on(store, actions);
    let run = two(&world).await;
    world.worker().run_one().await.unwrap();
    assert_eq!(world.state(run).await, RunState::Succeeded);
    ran_once_each(&world, run).await;
}

/// Covers behaviour 133.
#[tokio::test(start_paused = true)]
async fn a_commit_in_doubt_neither_repeats_the_call_before_nor_forgets_the_one_behind() {
    for landed in [true, false] {
        let world = World::new(Actions::default());
        let run = two(&world).await;
        let mut first = true;
        world.store.on(move |op| {
            if !is_joined(op) || !std::mem::take(&mut first) {
                return Verdict::Go;
            }
            if landed { Verdict::Lose(unknown()) } else { Verdict::Fail(unknown()) }
        });
        assert_eq!(world.settle(&world.worker(), run).await, RunState::Succeeded);
        ran_once_each(&world, run).await;
        assert_eq!(world.store.count("take_over"), 1);
        // This worker knows that it did not call.
        assert_eq!(world.log().count("wire.reconcile"), 0);
        let facts = world.facts(run).await;
        let nothing = facts.iter().find_map(|fact| match fact {
            Fact::NothingHappened { step, .. } => Some(step.as_str()),
            _ => None,
        });
        assert_eq!((nothing, marks(&facts)), if landed { (Some("steps.1"), 3) } else { (None, 2) });
    }
}

/// The same of the very first mark, which takes along what was computed before.
#[tokio::test(start_paused = true)]
async fn a_first_mark_in_doubt_is_known_not_to_be_called() {
    for landed in [true, false] {
        let world = World::new(Actions::default());
        let run = two(&world).await;
        let mut first = true;
        world.store.on(move |op| match op {
            Op::Commit(_) if std::mem::take(&mut first) => {
                assert!(op.facts().contains("inputs_computed"), "{}", op.facts());
                assert!(op.facts().contains("call_marked"), "{}", op.facts());
                if landed { Verdict::Lose(unknown()) } else { Verdict::Fail(unknown()) }
            }
            _ => Verdict::Go,
        });
        assert_eq!(world.settle(&world.worker(), run).await, RunState::Succeeded);
        ran_once_each(&world, run).await;
        assert_eq!(world.log().count("wire.reconcile"), 0);
        assert_eq!(marks(&world.facts(run).await), if landed { 3 } else { 2 });
    }
}

/// Covers behaviour 133.
#[tokio::test(start_paused = true)]
async fn after_a_crash_behind_both_the_provider_is_asked_about_the_second_call_only() {
    let world = World::new(
        Actions::default().find(|_, config| async move { Ok(Reconciled::Succeeded(config)) }),
    );
    let run = two(&world).await;
    world.store.on(|op| match is_joined(op) {
        true => Verdict::Hold(Arc::default()),
        false => Verdict::Go,
    });
    let doomed = world.worker();
    let crash = tokio::spawn(async move { doomed.run_one().await });
    let mut stored = false;
    while !stored {
        tokio::time::sleep(Duration::from_millis(5)).await;
        stored = outcomes(&world.facts(run).await) == 1;
    }
    crash.abort();
    assert_eq!(world.settle(&world.other_worker(), run).await, RunState::Succeeded);
    assert_eq!(world.outputs(run).await, [n(1), json!({ "of": n(1) })]);
    assert_eq!(world.log().count("wire.run"), 1);
    assert_eq!(world.log().count("wire.reconcile steps.1"), 1);
    assert_eq!(world.log().count("wire.reconcile"), 1);
}

/// Covers behaviour 108.
#[tokio::test(start_paused = true)]
async fn a_cancel_request_that_meets_the_commit_marks_nothing() {
    let store = TestStore::new();
    let inner = store.inner.clone();
    let actions = Actions::default().pay(move |cx, config| {
        let inner = inner.clone();
        async move {
            let row = stored(&inner, cx.run_id()).await.run;
            let (actor, reason) = ("ann".to_owned(), "enough".to_owned());
            let input = RowInput::Cancel { actor, reason };
            let facts = decide_row(&row, input, inner.clock().now()).unwrap();
            inner.run_commit(Commit::new(&row, &facts)).await.unwrap();
            Ok(config)
        }
    });
    let world = World::on(store, actions);
    let run = two(&world).await;
    let tried = Arc::new(AtomicBool::new(false));
    let seen = tried.clone();
    world.store.on(move |op| {
        seen.fetch_or(is_joined(op), Ordering::SeqCst);
        Verdict::Go
    });
    world.worker().run_one().await.unwrap();
    assert!(tried.load(Ordering::SeqCst), "the driver did not know yet");
    assert_eq!(world.state(run).await, RunState::Canceled);
    assert_eq!(world.outputs(run).await, [n(1)]);
    assert_eq!((world.log().count("wire.run"), marks(&world.facts(run).await)), (1, 1));
}

/// What the store refuses of two facts together is said of neither before it was refused alone.
///
/// Covers field fault 95.
#[tokio::test(start_paused = true)]
async fn a_refusal_is_said_of_the_step_that_it_is_about() {
    for refuses_outcomes in [false, true] {
        let world = World::new(Actions::default());
        let run = two(&world).await;
        world.store.on(move |op| {
            let refused = is_joined(op) || refuses_outcomes && op.facts().contains("\"output\"");
            match refused {
                true => Verdict::Fail(StoreError::Refused("invalid byte sequence".into())),
                false => Verdict::Go,
            }
        });
        world.worker().run_one().await.unwrap();
        if refuses_outcomes {
            assert_eq!(world.state(run).await, RunState::NeedsAttention);
            let error = world.error(run).await;
            assert_eq!(error.code, Code::OUTPUT_INVALID);
            assert_eq!(error.step.unwrap().as_str(), "steps.0");
            assert_eq!(world.log().count("wire.run"), 1);
        } else {
            assert_eq!(world.state(run).await, RunState::Succeeded);
            ran_once_each(&world, run).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_config_that_does_not_fit_fails_its_own_step_without_a_mark() {
    let too_many = json!({ "a": 1, "b": 2, "c": 3, "d": 4 });
    for bad in [json!({ "unreadable": true }), too_many, json!("no object")] {
        let world = World::new(Actions::default());
        let run = world.start(vec![act("wire", n(1)), act("wire", bad)]).await;
        world.worker().run_one().await.unwrap();
        assert_eq!(world.state(run).await, RunState::Failed);
        let error = world.error(run).await;
        assert_eq!(error.code, Code::CONFIG_INVALID);
        assert_eq!(error.step.unwrap().as_str(), "steps.1");
        let facts = world.facts(run).await;
        assert_eq!((marks(&facts), world.outputs(run).await), (1, vec![n(1)]));
        let effect = facts.iter().find_map(|fact| match fact {
            Fact::StepFailed { effect, .. } => Some(*effect),
            _ => None,
        });
        assert_eq!(effect, Some(None), "nothing was called");
    }
}

/// Covers behaviour 135.
#[tokio::test(start_paused = true)]
async fn an_applications_gate_is_asked_before_every_mark() {
    let world = World::new(Actions::default());
    let run = world.start((0..10).map(|i| act("wire", n(i))).collect()).await;
    let log = world.log().clone();
    let worker = world.builder().authorize(move |gate| {
        log.add(format!("gate {}", gate.step.step_key()));
        async { Ok(Access::Allowed) }
    });
    worker.build().unwrap().run_one().await.unwrap();
    assert_eq!(world.state(run).await, RunState::Succeeded);
    assert_eq!((world.store.count("commit"), world.log().count("gate")), (21, 10));
    let lines = world.log().lines();
    assert_eq!(lines[..2], ["gate steps.0", "wire.run steps.0 #1"]);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_marks_nothing_that_it_will_not_call() {
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    let world = World::new(Actions::default().pay(move |cx, config| {
        let held = held.clone();
        async move {
            if cx.step_key().as_str() == "steps.0" {
                held.notified().await;
            }
            Ok(config)
        }
    }));
    let run = two(&world).await;
    let running = world.worker().start().await.unwrap();
    until("the call is made", || world.log().count("wire.run") == 1).await;
    let stopping = tokio::spawn(running.stop(Duration::from_secs(1)));
    tokio::time::sleep(Duration::from_secs(2)).await;
    gate.notify_one();
    stopping.await.unwrap();
    let row = world.run(run).await;
    assert_eq!((row.state(), row.effect(), row.failures), (RunState::Queued, None, 0));
    let facts = world.facts(run).await;
    assert_eq!((marks(&facts), outcomes(&facts)), (1, 1), "{facts:?}");
    assert_eq!(world.settle(&world.other_worker(), run).await, RunState::Succeeded);
    ran_once_each(&world, run).await;
}

/// In the last fifth of a lease no call is made, so none is marked.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_nearly_over_marks_nothing_behind_an_outcome() {
    let world = World::new(Actions::default().pay(|cx, config| async move {
        if cx.step_key().as_str() == "steps.0" {
            tokio::time::sleep(Duration::from_secs(97)).await;
        }
        Ok(config)
    }));
    let run = two(&world).await;
    world.store.on(|op| match op {
        Op::Renew(_) => Verdict::Fail(unavailable()),
        _ => {
            assert!(!is_joined(op), "{}", op.facts());
            Verdict::Go
        }
    });
    world.worker().run_one().await.unwrap();
    assert_eq!(world.outputs(run).await.len(), 1);
    world.store.heal();
    assert_eq!(world.settle(&world.worker(), run).await, RunState::Succeeded);
    ran_once_each(&world, run).await;
    assert_eq!(world.log().count("wire.reconcile"), 0);
}
