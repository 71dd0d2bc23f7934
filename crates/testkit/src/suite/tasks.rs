//! Tasks: one per step, pinned, done by one worker at a time, and gone with their run.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use serde_json::{Value, json};
use surefoot_kernel_core::payload::Payload;
use surefoot_kernel_core::{
    ClaimTasks, Commit, Micros, NewTask, Prunable, Prune, RetentionStore as _, RowInput, RunId,
    RunState, RunStore as _, StepKey, Task, TaskEnd, TaskEnded, TaskState, TaskStore, decide_row,
};

use super::StoreFactory;
use super::children::{failed, write};
use super::world::{World, app, scope};
use crate::plans::{idempotent, plan};

const TASK_LEASE: Micros = Micros::from_secs(60);

/// Expands to one `#[tokio::test]` per rule of [`TaskStore`], in a module of the given name.
///
/// ```
/// # mod doc { // a real caller writes this at the top of a test file
/// surefoot_testkit::task_suite!(tasks, surefoot_testkit::MemoryFactory);
/// # }
/// ```
#[macro_export]
macro_rules! task_suite {
    ($name:ident, $factory:path) => {
        mod $name {
            mod tasks {
                $crate::task_suite! { @rules $factory;
                    a_step_has_one_task_and_what_was_pinned_stays
                    tasks_are_taken_once_and_the_longest_due_first
                    a_task_whose_worker_died_is_taken_again
                    a_lease_that_was_kept_is_taken_by_nobody
                    the_end_of_a_task_wakes_its_step
                    an_end_is_recorded_once_and_may_be_told_again
                    a_failure_is_recorded_once_and_may_be_told_again
                    a_late_end_changes_nothing_and_wakes_nobody
                    another_attempt_is_not_taken_before_its_time
                    what_is_given_back_is_no_failure
                    tasks_of_a_canceled_run_are_canceled
                    a_task_is_kept_while_its_run_is_claimed_again
                    a_deleted_run_takes_its_tasks_with_it
                    a_retried_run_has_its_failed_task_done_afresh
                    a_canceled_task_is_done_afresh_for_a_retried_run
                }
            }
        }
    };
    (@rules $factory:path; $($rule:ident)*) => {$(
        #[tokio::test]
        async fn $rule() {
            let world = $crate::suite::World::<$factory>::fresh().await;
            $crate::suite::tasks::$rule(&world).await;
            world.finish().await;
        }
    )*};
}

fn wanted(run: RunId, request: &Value) -> NewTask {
    NewTask {
        app: app(),
        scope: scope(),
        run,
        step: StepKey::from("steps.0"),
        kind: "ai".to_owned(),
        request: Payload::from_value(request).unwrap(),
    }
}

fn claim(limit: u32) -> ClaimTasks {
    ClaimTasks { app: app(), kind: "ai".to_owned(), limit, lease: TASK_LEASE }
}

fn done(output: i64) -> TaskEnd {
    TaskEnd::Succeeded { output: Payload::from_value(&json!(output)).unwrap() }
}

/// A run that waits for the task of its first step.
async fn waiting<F: StoreFactory>(world: &World<F>) -> (RunId, Task)
where
    F::Store: TaskStore,
{
    let mut drive = world.running(plan(vec![idempotent("think")])).await;
    let run = drive.run().id;
    let task = world.store.task_open(wanted(run, &json!({ "model": 1 }))).await.unwrap();
    world.park(&mut drive, task.wait(std::time::Duration::from_secs(3_600))).await;
    (run, task)
}

async fn task_of<F: StoreFactory>(world: &World<F>, run: RunId) -> Task
where
    F::Store: TaskStore,
{
    let key = wanted(run, &Value::Null).key();
    world.other.task_find(&app(), &key).await.unwrap().unwrap()
}

/// Covers behaviour 214.
pub async fn a_step_has_one_task_and_what_was_pinned_stays<F: StoreFactory>(world: &World<F>)
where
    F::Store: TaskStore,
{
    let (run, task) = waiting(world).await;
    let again = world.other.task_open(wanted(run, &json!({ "model": 2 }))).await.unwrap();
    assert_eq!(again, task);
    assert_eq!(again.request.value(), &json!({ "model": 1 }));
    assert_eq!((again.state, again.attempts), (TaskState::Queued, 0));
    assert_eq!(world.store.task_claim(claim(10)).await.unwrap().len(), 1);
    let other = wanted(RunId::from_bytes([9; 16]), &Value::Null).key();
    assert_eq!(world.store.task_find(&app(), &other).await.unwrap(), None);
}

/// Two workers never have one task, and nobody starves.
pub async fn tasks_are_taken_once_and_the_longest_due_first<F: StoreFactory>(world: &World<F>)
where
    F::Store: TaskStore,
{
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(waiting(world).await.0);
        world.pass_secs(1).await;
    }
    let other_kind = ClaimTasks { kind: "other".to_owned(), ..claim(10) };
    assert_eq!(world.store.task_claim(other_kind).await.unwrap(), []);
    assert_eq!(world.store.task_claim(claim(0)).await.unwrap(), []);
    let first = world.store.task_claim(claim(2)).await.unwrap();
    let mut taken: Vec<RunId> = first.iter().map(|task| task.run).collect();
    taken.sort_unstable();
    let mut earliest = runs[..2].to_vec();
    earliest.sort_unstable();
    assert_eq!(taken, earliest);
    assert!(first.iter().all(|task| task.state == TaskState::Running && task.attempts == 1));
    let rest = world.other.task_claim(claim(2)).await.unwrap();
    assert_eq!(rest.iter().map(|task| task.run).collect::<Vec<_>>(), [runs[2]]);
    assert_eq!(world.store.task_claim(claim(2)).await.unwrap(), []);
}

/// Covers behaviour 216.
pub async fn a_task_whose_worker_died_is_taken_again<F: StoreFactory>(world: &World<F>)
where
    F::Store: TaskStore,
{
    let (_, _) = waiting(world).await;
    let first = world.store.task_claim(claim(1)).await.unwrap().remove(0);
    world.pass_secs(61).await;
    let second = world.other.task_claim(claim(1)).await.unwrap().remove(0);
    assert_eq!((first.attempts, second.attempts), (1, 2));
    assert_eq!(second.request, first.request);
    // The first one was only slow.
    assert_eq!(world.store.task_keep(vec![first.hold()], TASK_LEASE).await.unwrap(), []);
    assert_eq!(world.store.task_end(first.hold(), done(1)).await.unwrap(), TaskEnded::Lost);
    assert_eq!(world.other.task_end(second.hold(), done(2)).await.unwrap(), TaskEnded::Recorded);
    let output = Payload::from_value(&json!(2)).unwrap();
    assert_eq!(task_of(world, second.run).await.state, TaskState::Succeeded { output });
}

/// A sign of life counts.
pub async fn a_lease_that_was_kept_is_taken_by_nobody<F: StoreFactory>(world: &World<F>)
where
    F::Store: TaskStore,
{
    let (_, _) = waiting(world).await;
    let task = world.store.task_claim(claim(1)).await.unwrap().remove(0);
    for _ in 0..3 {
        world.pass_secs(50).await;
        let kept = world.store.task_keep(vec![task.hold()], TASK_LEASE).await.unwrap();
        assert_eq!(kept, [task.hold()]);
        assert_eq!(world.other.task_claim(claim(1)).await.unwrap(), []);
    }
    assert_eq!(world.store.task_keep(Vec::new(), TASK_LEASE).await.unwrap(), []);
}

/// The end and the signal are one.
pub async fn the_end_of_a_task_wakes_its_step<F: StoreFactory>(world: &World<F>)
where
    F::Store: TaskStore,
{
    let (run, _) = waiting(world).await;
    assert_eq!(world.row(run).await.state(), RunState::Waiting);
    let task = world.store.task_claim(claim(1)).await.unwrap().remove(0);
    let failed = TaskEnd::failed("AI_REFUSED", format!("no\0thing {}", "long ".repeat(10_000)));
    assert_eq!(world.store.task_end(task.hold(), failed).await.unwrap(), TaskEnded::Recorded);
    assert_eq!(world.row(run).await.state(), RunState::Queued);
    let TaskState::Failed { code, message } = task_of(world, run).await.state else {
        unreachable!()
    };
    assert_eq!(code.as_str(), "AI_REFUSED");
    assert!(message.starts_with("no\\u0000thing") && message.ends_with('…'), "{message}");
    assert_eq!(world.store.task_claim(claim(1)).await.unwrap(), []);
}

/// What has failed has failed, told once or twice, whatever is said of it.
pub async fn a_failure_is_recorded_once_and_may_be_told_again<F: StoreFactory>(world: &World<F>)
where
    F::Store: TaskStore,
{
    let (run, _) = waiting(world).await;
    let task = world.store.task_claim(claim(1)).await.unwrap().remove(0);
    let failed = |code: &'static str| TaskEnd::failed(code, "the provider said no");
    for (end, ended) in [
        (failed("AI_REFUSED"), TaskEnded::Recorded),
        (failed("AI_REFUSED"), TaskEnded::Known),
        (failed("AI_UNAVAILABLE"), TaskEnded::Lost),
        (done(1), TaskEnded::Lost),
    ] {
        assert_eq!(world.store.task_end(task.hold(), end.clone()).await.unwrap(), ended, "{end:?}");
    }
    assert_eq!(task_of(world, run).await.end(), Some(failed("AI_REFUSED")));
}

/// An answer that was lost is asked for again.
pub async fn an_end_is_recorded_once_and_may_be_told_again<F: StoreFactory>(world: &World<F>)
where
    F::Store: TaskStore,
{
    let (run, _) = waiting(world).await;
    let task = world.store.task_claim(claim(1)).await.unwrap().remove(0);
    assert_eq!(world.store.task_end(task.hold(), done(7)).await.unwrap(), TaskEnded::Recorded);
    assert_eq!(world.store.task_end(task.hold(), done(7)).await.unwrap(), TaskEnded::Known);
    assert_eq!(world.store.task_end(task.hold(), done(8)).await.unwrap(), TaskEnded::Lost);
    let output = Payload::from_value(&json!(7)).unwrap();
    assert_eq!(task_of(world, run).await.state, TaskState::Succeeded { output });
}

/// Covers behaviour 215.
pub async fn a_late_end_changes_nothing_and_wakes_nobody<F: StoreFactory>(world: &World<F>)
where
    F::Store: TaskStore,
{
    let (run, _) = waiting(world).await;
    let task = world.store.task_claim(claim(1)).await.unwrap().remove(0);
    world.cancel(run).await;
    assert_eq!(world.other.task_sweep(&app(), 10).await.unwrap(), 1);
    assert_eq!(world.store.task_keep(vec![task.hold()], TASK_LEASE).await.unwrap(), []);
    let failed = TaskEnd::failed("X", "");
    for late in [done(1), failed, TaskEnd::Again { after: Micros::ZERO }] {
        assert_eq!(world.store.task_end(task.hold(), late).await.unwrap(), TaskEnded::Lost);
    }
    assert_eq!(task_of(world, run).await.state, TaskState::Canceled);
    assert_eq!(world.row(run).await.state(), RunState::Canceled);
}

/// An attempt that may go better later is made later.
pub async fn another_attempt_is_not_taken_before_its_time<F: StoreFactory>(world: &World<F>)
where
    F::Store: TaskStore,
{
    let (run, _) = waiting(world).await;
    let task = world.store.task_claim(claim(1)).await.unwrap().remove(0);
    let again = TaskEnd::Again { after: Micros::from_secs(30) };
    assert_eq!(
        world.store.task_end(task.hold(), again.clone()).await.unwrap(),
        TaskEnded::Recorded
    );
    assert_eq!(world.store.task_end(task.hold(), again).await.unwrap(), TaskEnded::Known);
    assert_eq!(world.row(run).await.state(), RunState::Waiting);
    assert_eq!(world.store.task_claim(claim(1)).await.unwrap(), []);
    world.pass_secs(31).await;
    let second = world.store.task_claim(claim(1)).await.unwrap().remove(0);
    assert_eq!((second.attempts, second.failures), (2, 2));
}

/// A worker that stops in an orderly way has not failed.
pub async fn what_is_given_back_is_no_failure<F: StoreFactory>(world: &World<F>)
where
    F::Store: TaskStore,
{
    let (_, _) = waiting(world).await;
    let task = world.store.task_claim(claim(1)).await.unwrap().remove(0);
    let back = || TaskEnd::GivenBack { after: Micros::ZERO };
    assert_eq!(world.store.task_end(task.hold(), back()).await.unwrap(), TaskEnded::Recorded);
    let second = world.other.task_claim(claim(1)).await.unwrap().remove(0);
    assert_eq!((second.attempts, second.failures), (2, 1));
    assert_eq!(world.store.task_end(task.hold(), back()).await.unwrap(), TaskEnded::Lost);
    // For a worker that may come later.
    let back = TaskEnd::GivenBack { after: Micros::from_secs(30) };
    assert_eq!(world.other.task_end(second.hold(), back).await.unwrap(), TaskEnded::Recorded);
    assert_eq!(world.store.task_claim(claim(1)).await.unwrap(), []);
    world.pass_secs(31).await;
    let third = world.store.task_claim(claim(1)).await.unwrap().remove(0);
    assert_eq!((third.attempts, third.failures), (3, 1));
}

/// Covers behaviour 215.
pub async fn tasks_of_a_canceled_run_are_canceled<F: StoreFactory>(world: &World<F>)
where
    F::Store: TaskStore,
{
    let (canceled, _) = waiting(world).await;
    let (kept, _) = waiting(world).await;
    assert_eq!(world.store.task_sweep(&app(), 10).await.unwrap(), 0);
    world.cancel(canceled).await;
    assert_eq!(world.store.task_sweep(&app(), 0).await.unwrap(), 0);
    assert_eq!(world.store.task_sweep(&app(), 10).await.unwrap(), 1);
    assert_eq!(task_of(world, canceled).await.state, TaskState::Canceled);
    assert_eq!(task_of(world, kept).await.state, TaskState::Queued);
    let taken = world.store.task_claim(claim(10)).await.unwrap();
    assert_eq!(taken.iter().map(|task| task.run).collect::<Vec<_>>(), [kept]);
}

/// Covers behaviour 217.
pub async fn a_task_is_kept_while_its_run_is_claimed_again<F: StoreFactory>(world: &World<F>)
where
    F::Store: TaskStore,
{
    let (run, pinned) = waiting(world).await;
    let task = world.store.task_claim(claim(1)).await.unwrap().remove(0);
    // The deadline of the wait passes, and the step comes by under a new generation.
    world.pass_secs(3_601).await;
    world.recover().await;
    let mut drive = world.claim_run(run).await;
    assert_eq!(world.store.task_sweep(&app(), 10).await.unwrap(), 0);
    let found = world.store.task_open(wanted(run, &json!({ "model": 2 }))).await.unwrap();
    assert_eq!(found.request, pinned.request);
    world.park(&mut drive, found.wait(std::time::Duration::from_secs(3_600))).await;
    assert_eq!(world.store.task_end(task.hold(), done(1)).await.unwrap(), TaskEnded::Recorded);
    assert_eq!(world.row(run).await.state(), RunState::Queued);
}

/// Nothing is left behind.
pub async fn a_deleted_run_takes_its_tasks_with_it<F: StoreFactory>(world: &World<F>)
where
    F::Store: TaskStore,
{
    let (run, task) = waiting(world).await;
    world.cancel(run).await;
    let prune = Prune {
        app: app(),
        scope: None,
        what: Prunable::Runs { states: vec![RunState::Canceled] },
        before: world.now().await.plus(Micros::from_secs(1)),
        limit: 10,
        audit: None,
    };
    assert_eq!(world.store.prune(prune).await.unwrap().deleted, 1);
    assert_eq!(world.store.task_find(&app(), &task.key()).await.unwrap(), None);
    assert_eq!(world.store.task_sweep(&app(), 10).await.unwrap(), 0);
}

/// The run fails with its step, and a person has it tried again.
async fn failed_and_retried<F: StoreFactory>(world: &World<F>, run: RunId)
where
    F::Store: TaskStore,
{
    write(world, run, failed()).await;
    assert_eq!(world.row(run).await.state(), RunState::Failed);
    retried(world, run).await;
}

async fn retried<F: StoreFactory>(world: &World<F>, run: RunId) {
    let row = world.row(run).await;
    let facts = decide_row(&row, RowInput::Retry, row.origin.created_at).unwrap();
    world.store.run_commit(Commit::new(&row, &facts)).await.unwrap();
    assert_eq!(world.row(run).await.state(), RunState::Queued);
}

/// As it was pinned, under the same key, and waited for again: what woke the step before wakes it no more.
pub async fn a_retried_run_has_its_failed_task_done_afresh<F: StoreFactory>(world: &World<F>)
where
    F::Store: TaskStore,
{
    let (run, _) = waiting(world).await;
    let first = world.store.task_claim(claim(1)).await.unwrap().remove(0);
    let refused = TaskEnd::failed("AI_REFUSED", "no");
    world.store.task_end(first.hold(), refused.clone()).await.unwrap();
    let asked = || world.other.task_open(wanted(run, &json!({ "model": 2 })));
    assert_eq!(asked().await.unwrap().end(), Some(refused.clone()), "the same until it is retried");

    failed_and_retried(world, run).await;
    assert_eq!(task_of(world, run).await.end(), Some(refused.clone()), "nobody has asked yet");
    let again = asked().await.unwrap();
    assert_eq!((again.state.clone(), again.failures), (TaskState::Queued, 0));
    assert_eq!(again.request.value(), &json!({ "model": 1 }));
    assert_eq!(asked().await.unwrap(), again);
    let late = world.store.task_end(first.hold(), refused).await.unwrap();
    assert_eq!(late, TaskEnded::Lost, "the end of an attempt before");

    let mut drive = world.claim_run(run).await;
    world.park(&mut drive, again.wait(std::time::Duration::from_secs(3_600))).await;
    assert_eq!(world.row(run).await.state(), RunState::Waiting);
    let second = world.store.task_claim(claim(1)).await.unwrap().remove(0);
    assert_eq!((second.attempts, second.failures), (2, 1));
    assert_eq!(world.store.task_end(second.hold(), done(7)).await.unwrap(), TaskEnded::Recorded);
    assert_eq!(world.row(run).await.state(), RunState::Queued);
    let output = Payload::from_value(&json!(7)).unwrap();
    assert_eq!(asked().await.unwrap().state, TaskState::Succeeded { output });
}

/// It was canceled since its run had ended.
pub async fn a_canceled_task_is_done_afresh_for_a_retried_run<F: StoreFactory>(world: &World<F>)
where
    F::Store: TaskStore,
{
    let run = world.running(plan(vec![idempotent("think")])).await.run().id;
    world.store.task_open(wanted(run, &json!({}))).await.unwrap();
    write(world, run, failed()).await;
    assert_eq!(world.store.task_sweep(&app(), 10).await.unwrap(), 1);
    retried(world, run).await;
    let again = world.store.task_open(wanted(run, &json!({}))).await.unwrap();
    assert_eq!(again.state, TaskState::Queued);
    assert_eq!(world.store.task_sweep(&app(), 10).await.unwrap(), 0);
}
