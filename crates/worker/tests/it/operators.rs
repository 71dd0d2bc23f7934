//! What people decide, and what workers make of it.

use serde_json::json;
use surefoot_kernel_core::{
    Code, Commit, Rejection, RowInput, RunState, RunStore, StoreError, Verdict, decide_row,
};
use surefoot_language::{AmbiguousStop, Reconciled};

use crate::actions::{Actions, n};
use crate::plans::{act, act_on, saved};
use crate::world::World;

/// A run whose payment nobody can explain.
async fn in_attention() -> (World, surefoot_kernel_core::RunId) {
    let world = World::new(
        Actions::default()
            .pay(|_, _| async { Err(AmbiguousStop::may_have_happened("timeout after send")) })
            .find(|_, _| async { Ok(Reconciled::unknown("no records")) }),
    );
    let steps = vec![saved(act("pay", n(1)), "paid"), act_on("mail", "paid", "receipt")];
    let run = world.start(steps).await;
    assert_eq!(world.settle(&world.worker(), run).await, RunState::NeedsAttention);
    (world, run)
}

fn resolve(verdict: Verdict) -> RowInput {
    RowInput::Resolve { step: "steps.0".into(), verdict }
}

/// Covers behaviour 139.
#[tokio::test(start_paused = true)]
async fn a_confirmed_success_is_not_repeated_and_the_next_steps_see_its_output() {
    let (world, run) = in_attention().await;
    let verdict = Verdict::Succeeded { output: json!("r-17") };
    world.act_on(run, resolve(verdict)).await.unwrap();
    assert_eq!(world.settle(&world.worker(), run).await, RunState::Succeeded);
    assert_eq!(world.outputs(run).await, [json!("r-17"), json!({ "receipt": "r-17" })]);
    assert_eq!((world.log().count("pay.run"), world.log().count("pay.reconcile")), (1, 1));
}

/// Covers behaviour 140.
#[tokio::test(start_paused = true)]
async fn a_confirmed_failure_ends_the_run_with_its_code() {
    for (given, code) in [(Some(Code::from("STOLEN")), "STOLEN"), (None, "EFFECT_CONFIRMED_FAILED")]
    {
        let (world, run) = in_attention().await;
        let verdict = Verdict::Failed { code: given, message: "the bank says no".to_owned() };
        world.act_on(run, resolve(verdict)).await.unwrap();
        let error = world.error(run).await;
        assert_eq!((world.state(run).await, error.code.as_str()), (RunState::Failed, code));
    }
}

/// Covers behaviour 141.
#[tokio::test(start_paused = true)]
async fn only_what_waits_for_a_person_is_resolved_and_only_once() {
    let (world, run) = in_attention().await;
    let wrong = RowInput::Resolve { step: "steps.1".into(), verdict: Verdict::NotPerformed };
    assert!(matches!(world.act_on(run, wrong).await, Err(Rejection::WrongStep { .. })));
    // Two people look at the same row.
    let row = world.run(run).await;
    let now = world.store.inner.clock().now();
    let commits = [Verdict::NotPerformed, Verdict::Succeeded { output: json!(1) }]
        .map(|verdict| Commit::new(&row, &decide_row(&row, resolve(verdict), now).unwrap()));
    let [first, second] = commits;
    world.store.run_commit(first).await.unwrap();
    let late = world.store.run_commit(second).await;
    assert!(matches!(late, Err(StoreError::Conflict | StoreError::LeaseLost)), "{late:?}");
    let again = world.act_on(run, resolve(Verdict::NotPerformed)).await;
    assert!(matches!(again, Err(Rejection::WrongState { .. })));
}

/// Covers behaviour 139.
#[tokio::test(start_paused = true)]
async fn what_was_not_performed_runs_again_under_the_same_key() {
    let (world, run) = in_attention().await;
    world.act_on(run, resolve(Verdict::NotPerformed)).await.unwrap();
    assert_eq!(world.settle(&world.worker(), run).await, RunState::NeedsAttention);
    assert_eq!((world.log().count("pay.run"), world.log().count("pay.reconcile")), (2, 2));
    let lines = world.log().lines();
    let keys: Vec<&String> = lines.iter().filter(|line| line.starts_with("key")).collect();
    assert!(keys.iter().all(|key| *key == keys[0]));
}

/// Covers behaviour 141.
#[tokio::test(start_paused = true)]
async fn an_operator_who_has_the_provider_asked_again_gets_an_answer_without_a_second_call() {
    let (world, run) = in_attention().await;
    world.act_on(run, RowInput::AskReconcile { step: "steps.0".into() }).await.unwrap();
    assert_eq!(world.settle(&world.worker(), run).await, RunState::NeedsAttention);
    assert_eq!((world.log().count("pay.run"), world.log().count("pay.reconcile")), (1, 2));
}
