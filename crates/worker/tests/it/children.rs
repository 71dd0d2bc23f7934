//! Children: of built-in steps and of actions, through the worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use surefoot_kernel_core::plan::Step;
use surefoot_kernel_core::{
    Child, ChildStore as _, Code, GroupRow, OperatorStore as _, Phase, Run, RunFilter, RunId,
    RunState, StepKey, StoreError,
};
use surefoot_language::{ActionResult, Stop};
use surefoot_worker::Tick;

use crate::actions::{Actions, n};
use crate::plans::{act, act_on, plan, run_workflow, run_workflows, wait_for, with_n};
use crate::store::{Op, Verdict, unavailable, unknown};
use crate::world::{APP, SCOPE, World, until};

/// The workflow `one`: computes its input.
async fn publish_one(world: &World, steps: Vec<Step>) {
    let plan = with_n(plan(world.module.manifest(), steps));
    world.publish_plan(APP, "one", plan).await;
}

fn compute() -> Vec<Step> {
    vec![act_on("compute", "inputs", "")]
}

async fn children(world: &World, parent: RunId) -> Vec<Run> {
    let filter = RunFilter { parent: Some(parent), limit: 1_000, ..RunFilter::default() };
    let page = world.store.inner.run_list(filter).await.unwrap();
    let mut runs: Vec<Run> = page.rows.into_iter().map(|row| row.run).collect();
    runs.sort_by_key(|run| run.origin.parent.as_ref().map(|parent| parent.index));
    runs
}

async fn group(world: &World, parent: RunId) -> GroupRow {
    world.store.inner.children_groups(parent).await.unwrap().remove(0)
}

fn result(run: &Run) -> &Value {
    match &run.phase {
        Phase::Succeeded { result, .. } => result,
        other => panic!("no result: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_runs_and_its_result_is_the_outcome() {
    let world = World::new(Actions::default());
    publish_one(&world, compute()).await;
    let run = world.start(vec![run_workflow("one", n(7)), act("compute", n(1))]).await;
    assert_eq!(world.settle(&world.worker(), run).await, RunState::Succeeded);
    assert_eq!(world.outputs(run).await, [n(7), n(1)]);
    let child = children(&world, run).await.remove(0);
    let parent = child.origin.parent.as_ref().unwrap();
    assert_eq!((parent.run, parent.step.as_str(), parent.depth), (run, "steps.0", 1));
    assert_eq!((child.origin.root, child.state()), (run, RunState::Succeeded));
    assert_eq!(world.run(run).await.attempt, 2);
}

/// Covers field fault 142.
#[tokio::test(start_paused = true)]
async fn results_are_in_the_order_of_the_items_whoever_ends_first() {
    let turns = Arc::new(AtomicUsize::new(0));
    let world = World::new(Actions::default().mail(move |cx, config| {
        let turn = turns.fetch_add(1, Ordering::SeqCst);
        async move {
            tokio::time::sleep(Duration::from_millis((997 * turn as u64) % 1_009)).await;
            assert!(!cx.is_canceled());
            Ok(config)
        }
    }));
    publish_one(&world, vec![act_on("mail", "inputs", "")]).await;
    let run = world.start(vec![run_workflows("one", 200, None)]).await;
    let running = world.builder().concurrency(50).start().await.unwrap();
    let ended = world.kernel.await_run(run).await.unwrap();
    let numbers: Vec<Value> = (0..200).map(n).collect();
    assert_eq!(*result(&world.run(run).await), Value::Array(numbers));
    assert_eq!((ended.attempt, ended.generation), (2, 2), "it was woken once");
    running.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn no_more_children_run_at_once_than_the_step_allows() {
    let busy = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let seen = busy.clone();
    let world = World::new(Actions::default().mail(move |_, config| {
        let busy = busy.clone();
        async move {
            let now = busy.0.fetch_add(1, Ordering::SeqCst) + 1;
            busy.1.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            busy.0.fetch_sub(1, Ordering::SeqCst);
            Ok(config)
        }
    }));
    publish_one(&world, vec![act("mail", n(1))]).await;
    let run = world.start(vec![run_workflows("one", 20, Some(3))]).await;
    let running = world.builder().concurrency(10).start().await.unwrap();
    until("they exist", || seen.0.load(Ordering::SeqCst) == 3).await;
    let counted = group(&world, run).await;
    assert_eq!((counted.total, counted.live, counted.held, counted.parallel), (20, 20, 17, 3));
    assert!(children(&world, run).await.iter().skip(3).all(Run::is_held));
    let ended = world.kernel.await_run(run).await.unwrap();
    assert_eq!((ended.state(), seen.1.load(Ordering::SeqCst)), (RunState::Succeeded, 3));
    running.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_child_fails_the_step_and_a_retry_of_both_mends_it() {
    let world = World::new(Actions::default().compute(|config| match config["n"].as_i64() {
        Some(2) => Err(Stop::fail("OUT_OF_STOCK", "no bolts")),
        _ => Ok(config),
    }));
    publish_one(&world, compute()).await;
    let run = world.start(vec![run_workflows("one", 4, None)]).await;
    let worker = world.worker();
    assert_eq!(world.settle(&worker, run).await, RunState::Failed);
    let error = world.error(run).await;
    let failed = children(&world, run).await[2].id;
    assert_eq!((error.code.as_str(), error.step), ("OUT_OF_STOCK", Some(StepKey::from("steps.0"))));
    assert!(error.message.contains(&failed.to_string()) && error.message.contains("no bolts"));
    // The version is pinned: the child is retried on it, so it fails again; the parent looks again each time.
    world.act_on(failed, surefoot_kernel_core::RowInput::Retry).await.unwrap();
    assert_eq!(group(&world, run).await.live, 1);
    assert_eq!(world.settle(&worker, failed).await, RunState::Failed);
    world.act_on(run, surefoot_kernel_core::RowInput::Retry).await.unwrap();
    assert_eq!(world.settle(&worker, run).await, RunState::Failed);
    assert_eq!(children(&world, run).await.len(), 4, "nothing is created twice");
}

#[tokio::test(start_paused = true)]
async fn a_child_of_a_workflow_that_is_not_there_fails_the_step() {
    let world = World::new(Actions::default());
    let run = world.start(vec![run_workflow("nowhere", json!({}))]).await;
    assert_eq!(world.settle(&world.worker(), run).await, RunState::Failed);
    assert_eq!(world.error(run).await.code, Code::WORKFLOW_UNAVAILABLE);
    assert!(children(&world, run).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_workflow_that_runs_itself_comes_to_an_end() {
    let world = World::new(Actions::default());
    let run = world.start(vec![run_workflow("work", json!({}))]).await;
    assert_eq!(world.settle(&world.worker(), run).await, RunState::Failed);
    let error = world.error(run).await;
    assert_eq!(error.code, Code::LIMIT_EXCEEDED);
}

#[tokio::test(start_paused = true)]
async fn a_childs_inputs_are_checked_by_its_own_step_zero() {
    let world = World::new(Actions::default());
    publish_one(&world, compute()).await;
    let run = world.start(vec![run_workflow("one", json!({ "n": "three" }))]).await;
    assert_eq!(world.settle(&world.worker(), run).await, RunState::Failed);
    assert_eq!(world.error(run).await.code, Code::INPUT_INVALID);
}

/// Covers behaviour 159.
/// Covers field fault 140.
#[tokio::test(start_paused = true)]
async fn children_are_created_once_whatever_becomes_of_the_answer() {
    for landed in [true, false] {
        let world = World::new(Actions::default());
        publish_one(&world, compute()).await;
        let mut faults = vec![
            if landed { Verdict::Lose(unknown()) } else { Verdict::Fail(unknown()) },
            Verdict::Fail(unavailable()),
        ];
        world.store.on(move |op| match op {
            Op::Children => faults.pop().unwrap_or(Verdict::Go),
            _ => Verdict::Go,
        });
        let run = world.start(vec![run_workflows("one", 5, None)]).await;
        assert_eq!(world.settle(&world.worker(), run).await, RunState::Succeeded);
        assert_eq!(children(&world, run).await.len(), 5);
        assert_eq!(world.store.count("children"), 3);
    }
}

/// The worker dies between the creation and the park.
#[tokio::test(start_paused = true)]
async fn the_next_worker_waits_for_the_children_of_the_last_one() {
    let world = World::new(Actions::default());
    publish_one(&world, compute()).await;
    let run = world.start(vec![run_workflows("one", 3, None)]).await;
    world.store.on(|op| match op {
        Op::Children => Verdict::Hold(Default::default()),
        _ => Verdict::Go,
    });
    let doomed = world.worker();
    let crash = tokio::spawn(async move { doomed.run_one().await });
    until("they are on the way", || world.store.count("children") == 1).await;
    tokio::task::yield_now().await;
    crash.abort();
    let other = world.other_worker();
    // The children end before anybody waits for them.
    for _ in 0..3 {
        other.run_one().await.unwrap();
    }
    assert_eq!(group(&world, run).await.live, 0);
    tokio::time::advance(Duration::from_secs(121)).await;
    assert_eq!(world.settle(&other, run).await, RunState::Succeeded);
    assert_eq!(children(&world, run).await.len(), 3);
}

/// Covers field fault 133.
#[tokio::test(start_paused = true)]
async fn a_cancel_walks_down_the_whole_tree() {
    let world = World::new(Actions::default());
    // 1 + 30 + 30 * 33 runs: more than one batch on each level.
    publish_one(&world, vec![wait_for("never", "1", None), act("mail", n(1))]).await;
    let middle = with_n(plan(world.module.manifest(), vec![run_workflows("one", 33, None)]));
    world.publish_plan(APP, "middle", middle).await;
    let run = world.start(vec![run_workflows("middle", 30, None)]).await;
    let running = world.builder().concurrency(50).start().await.unwrap();
    let waiting = |world: &World| {
        let store = world.store.inner.clone();
        async move {
            let health = store.app_health(&APP.into()).await.unwrap();
            let waiting = health.runs.iter().find(|(state, _)| *state == RunState::Waiting);
            waiting.map_or(0, |(_, count)| *count)
        }
    };
    while waiting(&world).await < 1_021 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    world.kernel.cancel(run, "not needed").await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let scope = world.kernel.scope(SCOPE);
    scope.signal(surefoot_kernel_core::Signal::new("never", "1")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(world.log().count("mail.run"), 0);
    let health = world.store.inner.app_health(&APP.into()).await.unwrap();
    let canceled = health.runs.iter().find(|(state, _)| *state == RunState::Canceled).unwrap();
    assert_eq!(canceled.1, 1_021);
    let child = children(&world, run).await.remove(0);
    assert!(
        matches!(&child.phase, Phase::Canceled { message } if message.as_deref() == Some("not needed"))
    );
    running.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_in_the_middle_of_the_creation_leaves_no_orphan() {
    let world = World::new(Actions::default());
    publish_one(&world, compute()).await;
    let run = world.start(vec![run_workflows("one", 5, None)]).await;
    let gate = Arc::new(tokio::sync::Notify::new());
    let held = gate.clone();
    world.store.on(move |op| match op {
        Op::Children => Verdict::Wait(held.clone()),
        _ => Verdict::Go,
    });
    let running = world.builder().start().await.unwrap();
    until("they are on the way", || world.store.count("children") == 1).await;
    world.other().cancel(run, "not needed").await.unwrap();
    gate.notify_one();
    let ended = world.kernel.await_run(run).await.unwrap();
    assert_eq!(ended.state(), RunState::Canceled);
    assert!(children(&world, run).await.is_empty());
    running.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn an_idempotent_action_creates_waits_for_and_reads_children() {
    let world = World::new(Actions::default().mail(|cx, _| async move {
        let children = ["a", "b", "c"].map(|key| Child::new("one", n(3)).key(key));
        let created = cx.create_children(children).await?;
        if !cx.resumed() {
            assert_eq!((created.new, created.total), (3, 3));
            return Err(cx.wait_for_children());
        }
        assert_eq!((created.new, created.total), (0, 3));
        let first = cx.children(0, 2).await?;
        let rest = cx.children(first.next.unwrap(), 2).await?;
        assert_eq!((first.children.len(), rest.children.len(), rest.next), (2, 1, None));
        Ok(first.children[0].result.clone())
    }));
    publish_one(&world, compute()).await;
    let run = world.start(vec![act("mail", n(1))]).await;
    assert_eq!(world.settle(&world.worker(), run).await, RunState::Succeeded);
    assert_eq!(world.outputs(run).await, [n(3)]);
}

#[tokio::test(start_paused = true)]
async fn children_of_a_transactional_action_exist_if_its_outcome_does() {
    let tries = Arc::new(AtomicUsize::new(0));
    let world = World::new(Actions::default().book(move |cx, config| {
        let tries = tries.clone();
        Box::pin(async move {
            let created = cx.create_children([Child::new("one", n(4))]).await?;
            assert_eq!(created.new, 1);
            match tries.fetch_add(1, Ordering::SeqCst) {
                0 => Err(Stop::retry("BUSY", "busy")),
                _ => Ok(config),
            }
        })
    }));
    publish_one(&world, compute()).await;
    let run = world.start(vec![act("book", n(1))]).await;
    let worker = world.worker();
    worker.run_one().await.unwrap();
    assert!(children(&world, run).await.is_empty(), "the first attempt was rolled back");
    assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
    worker.tick(Tick::max_runs(5)).await.unwrap();
    let child = children(&world, run).await.remove(0);
    assert_eq!(child.state(), RunState::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn an_action_hears_why_its_children_cannot_be() -> Result<(), StoreError> {
    async fn attempt(
        cx: surefoot_language::IdempotentCx<surefoot_language::On<surefoot_testkit::MemoryTx>>,
    ) -> ActionResult<Value> {
        cx.create_children([Child::new("nowhere", Value::Null)]).await?;
        Ok(Value::Null)
    }
    let world = World::new(Actions::default().mail(|cx, _| attempt(cx)));
    let run = world.start(vec![act("mail", n(1))]).await;
    assert_eq!(world.settle(&world.worker(), run).await, RunState::Failed);
    assert_eq!(world.error(run).await.code, Code::WORKFLOW_UNAVAILABLE);
    Ok(())
}

/// Covers behaviour 108.
#[tokio::test(start_paused = true)]
async fn a_child_with_an_unexplained_effect_stays_in_attention_when_its_tree_is_canceled() {
    let world = World::new(
        Actions::default()
            .pay(|_, _| async {
                Err(surefoot_language::AmbiguousStop::may_have_happened("no answer"))
            })
            .find(|_, _| async {
                Ok(surefoot_language::Reconciled::Unknown { why: "nobody knows".to_owned() })
            }),
    );
    publish_one(&world, vec![act("pay", n(1))]).await;
    world.publish("two", vec![wait_for("never", "1", None)]).await;
    let run = world.start(vec![run_workflow("one", json!({}))]).await;
    let worker = world.worker();
    while world.state(run).await != RunState::Waiting {
        worker.tick(Tick::max_runs(5)).await.unwrap();
    }
    let child = children(&world, run).await.remove(0).id;
    assert_eq!(world.settle(&worker, child).await, RunState::NeedsAttention);
    assert_eq!(world.state(run).await, RunState::Waiting, "attention is not an end");
    world.kernel.cancel(run, "not needed").await.unwrap();
    worker.tick(Tick::max_runs(5)).await.unwrap();
    assert_eq!(world.state(run).await, RunState::Canceled);
    let child = world.run(child).await;
    assert_eq!(child.state(), RunState::NeedsAttention);
    assert!(child.cancel.is_some() && child.has_unsettled_effect());
    assert_eq!(group(&world, run).await.live, 1);
    let resolve = surefoot_kernel_core::RowInput::Resolve {
        step: StepKey::from("steps.0"),
        verdict: surefoot_kernel_core::Verdict::NotPerformed,
    };
    world.act_on(child.id, resolve).await.unwrap();
    assert_eq!(world.state(child.id).await, RunState::Canceled);
    assert_eq!(group(&world, run).await.live, 0);
}

#[tokio::test(start_paused = true)]
async fn a_failed_parent_leaves_its_running_children_alone() {
    let world = World::new(Actions::default().mail(|cx, _| async move {
        cx.create_children([Child::new("one", n(1))]).await?;
        Err(Stop::fail("NO", "no"))
    }));
    publish_one(&world, compute()).await;
    let run = world.start(vec![act("mail", n(1))]).await;
    let worker = world.worker();
    assert_eq!(world.settle(&worker, run).await, RunState::Failed);
    let child = children(&world, run).await.remove(0).id;
    assert_eq!(world.settle(&worker, child).await, RunState::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_worker_for_one_tree_works_on_nothing_else() {
    let world = World::new(Actions::default());
    publish_one(&world, compute()).await;
    let stranger = world.start(vec![act("compute", n(1))]).await;
    let run = world.start(vec![run_workflow("one", n(7)), act("compute", n(1))]).await;
    let running = world.builder().tree(run).start().await.unwrap();
    let ended = world.kernel.await_run(run).await.unwrap();
    assert_eq!(ended.state(), RunState::Succeeded);
    // Nor does it start what an event of its own process starts.
    let later = world.start(vec![act("compute", n(1))]).await;
    for run in [later, stranger] {
        let run = world.run(run).await;
        assert_eq!(run.state(), RunState::Queued, "{run:?}");
    }
    let other = world.other_worker();
    assert_eq!(world.settle(&other, later).await, RunState::Succeeded);
    assert_eq!(world.settle(&other, stranger).await, RunState::Succeeded);
    running.stop(Duration::ZERO).await;
}
