//! Verbs: what they do, what they refuse, and what they never do.

use serde_json::json;
use surefoot_kernel_core::{
    Answer, Code, Command, Dependency, Micros, Phase, RunFilter, RunId, RunState, StepKey, Verdict,
};
use surefoot_operator::{
    Abandon, Cancel, ErrorClass, OperatorError, Outcome, Reconcile, Resolve, Retry,
};

use crate::world::{World, failed, succeeded};

fn paid() -> Verdict {
    Verdict::Succeeded { output: json!({ "id": "p-1" }) }
}

fn resolve(run: RunId, seen: u64, verdict: Verdict) -> Resolve {
    Resolve { run, step: "steps.1".into(), seen, verdict, why: "seen on the statement".to_owned() }
}

fn cancel(run: RunId) -> Cancel {
    Cancel { run, seen: None, why: "no longer wanted".to_owned() }
}

/// Nothing was written: neither the run nor the audit has changed.
#[track_caller]
fn unchanged(error: &OperatorError, class: ErrorClass) {
    assert_eq!(error.class(), class, "{error}");
}

/// Covers behaviour 139.
#[tokio::test]
async fn confirmed_success_is_not_repeated_and_later_steps_see_its_output() {
    let world = World::published().await;
    let run = world.unknown().await;
    let seen = world.revision(run).await;
    let done = world.operator.resolve(resolve(run, seen, paid())).await.unwrap();
    assert_eq!((done.run.state, done.outcome), (RunState::Queued, Outcome::Done));

    let (mut drive, command) = world.claimed(run).await;
    let Some(Command::Transact(call)) = command else { panic!("{command:?}") };
    assert_eq!(call.config, json!({ "receipt": "p-1" }));
    let booked = drive.transact(&world.store, &call, |_| {
        Box::pin(std::future::ready(Some(succeeded(json!({})))))
    });
    booked.await.unwrap();
    drive.to_call(&world.store).await.unwrap();
    assert_eq!(world.row(run).await.state(), RunState::Succeeded);
    let (verb, actor, reason) = world.audit().await.remove(0);
    assert_eq!((verb.as_str(), actor.as_str()), ("resolve", "ann"));
    assert_eq!(reason, "seen on the statement");
}

/// Covers behaviour 140.
#[tokio::test]
async fn confirmed_failure_fails_run_and_step_with_its_code() {
    for (code, expected) in [(None, "EFFECT_CONFIRMED_FAILED"), (Some("DECLINED"), "DECLINED")] {
        let world = World::published().await;
        let run = world.unknown().await;
        let code = code.map(Code::from);
        let verdict = Verdict::Failed { code, message: "the bank says no".to_owned() };
        let seen = world.revision(run).await;
        let done = world.operator.resolve(resolve(run, seen, verdict)).await.unwrap();
        assert_eq!(done.run.state, RunState::Failed);
        let shown = world.operator.show(run).await.unwrap();
        for error in [shown.run.error.as_ref(), shown.steps[1].error.as_ref()] {
            assert_eq!(error.unwrap().code.as_str(), expected);
        }
    }
}

#[tokio::test]
async fn not_performed_runs_the_step_again_under_the_same_key() {
    let world = World::published().await;
    let run = world.unknown().await;
    let key = world.operator.show(run).await.unwrap().steps[1].effect_key.clone();
    let seen = world.revision(run).await;
    world.operator.resolve(resolve(run, seen, Verdict::NotPerformed)).await.unwrap();
    let (_, command) = world.claimed(run).await;
    let Some(Command::Call(call)) = command else { panic!("{command:?}") };
    assert_eq!((call.step, Some(call.effect_key)), (StepKey::from("steps.1"), key));
}

/// Covers behaviour 141.
#[tokio::test]
async fn what_awaits_no_word_is_not_resolved() {
    let world = World::published().await;
    let run = world.unknown().await;
    let seen = world.revision(run).await;
    let elsewhere = Resolve { step: "steps.0".into(), ..resolve(run, seen, paid()) };
    let error = world.operator.resolve(elsewhere).await.unwrap_err();
    unchanged(&error, ErrorClass::Refused);
    assert_eq!(world.revision(run).await, seen);

    let at_once = (
        world.operator.resolve(resolve(run, seen, paid())),
        world.operator.resolve(resolve(run, seen, Verdict::NotPerformed)),
    );
    let (first, second) = tokio::join!(at_once.0, at_once.1);
    assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
    let error = first.and(second).unwrap_err();
    unchanged(&error, ErrorClass::Conflict);

    let again = resolve(run, world.revision(run).await, paid());
    let error = world.operator.resolve(again).await.unwrap_err();
    unchanged(&error, ErrorClass::Refused);
}

#[tokio::test]
async fn a_revision_that_is_gone_is_a_conflict_that_says_what_is_there() {
    let world = World::published().await;
    let run = world.unknown().await;
    let revision = world.revision(run).await;
    let error = world.operator.resolve(resolve(run, revision - 1, paid())).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "run {run} was changed since: you looked at revision {}, it is needs_attention at revision {revision} \
             now; nothing was changed, explain it again and decide",
            revision - 1
        )
    );
    let why = || "x".to_owned();
    let seen = revision + 1;
    let step = || StepKey::from("steps.1");
    let errors = [
        world.operator.reconcile(Reconcile { run, step: step(), seen, why: why() }).await,
        world.operator.retry(Retry { run, seen, why: why() }).await,
        world.operator.abandon(Abandon { run, seen, accept_unknown: true, why: why() }).await,
        world.operator.cancel(Cancel { run, seen: Some(seen), why: why() }).await,
    ];
    for error in errors {
        unchanged(&error.unwrap_err(), ErrorClass::Conflict);
    }
    assert_eq!(world.revision(run).await, revision);
    assert_eq!(world.audit().await.len(), 1, "only the publication");
}

#[tokio::test]
async fn an_output_must_be_one_that_the_action_could_have_had() {
    let world = World::published().await;
    let run = world.unknown().await;
    let seen = world.revision(run).await;
    let with = |output| resolve(run, seen, Verdict::Succeeded { output });
    let error = world.operator.resolve(with(json!({ "id": 7 }))).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the output does not fit the schema of `pay`: `/id` must be a string, not a number"
    );
    let large = json!({ "id": "x".repeat(1024 * 1024) });
    let error = world.operator.resolve(with(large)).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::OUTPUT_TOO_LARGE));
    let mut deep = json!({ "id": "p-1" });
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let error = world.operator.resolve(with(deep)).await.unwrap_err();
    assert!(matches!(error, OperatorError::OutputPayload { .. }), "{error}");
    assert_eq!(world.revision(run).await, seen);
}

#[tokio::test]
async fn a_missing_output_can_only_be_supplied() {
    let world = World::published().await;
    let (run, mut drive) = world.paying().await;
    let error = surefoot_kernel_core::Failure::new(Code::OUTPUT_INVALID, "no id");
    let refused = Answer::OutputRefused { error, evidence: "{}".to_owned() };
    world.answered(&mut drive, "steps.1", refused).await;
    let seen = world.revision(run).await;
    let error =
        world.operator.resolve(resolve(run, seen, Verdict::NotPerformed)).await.unwrap_err();
    unchanged(&error, ErrorClass::Refused);
    let error = world.operator.retry(Retry { run, seen, why: "x".to_owned() }).await.unwrap_err();
    assert!(error.to_string().contains("did happen"), "{error}");
    world.operator.resolve(resolve(run, seen, paid())).await.unwrap();
}

#[tokio::test]
async fn reconcile_asks_the_provider_and_calls_nothing() {
    let world = World::published().await;
    let run = world.unknown().await;
    let seen = world.revision(run).await;
    let ask = Reconcile { run, step: "steps.1".into(), seen, why: "the bank is back".to_owned() };
    let done = world.operator.reconcile(ask).await.unwrap();
    assert_eq!(done.run.state, RunState::Queued);
    let (_, command) = world.claimed(run).await;
    assert!(matches!(command, Some(Command::Reconcile(_))), "{command:?}");
}

/// Covers field fault 114.
#[tokio::test]
async fn retry_resets_the_count_of_failures_and_is_audited() {
    let world = World::published().await;
    let run = world.emitted().await;
    while world.row(run).await.state() != RunState::Failed {
        world.store.clock().advance(Micros::from_secs(600));
        let (mut drive, command) = world.claimed(run).await;
        if command.is_some() {
            world.answered(&mut drive, "steps.0", failed(true)).await;
        }
    }
    let row = world.row(run).await;
    let Phase::Failed { error, .. } = &row.phase else { panic!("{row:?}") };
    assert_eq!(error.code, Code::RETRY_EXHAUSTED);
    let health = world.operator.health(None, None).await.unwrap();
    assert_eq!((health.ok, health.apps[0].exhausted), (true, 1));

    let retry = Retry { run, seen: row.revision, why: "the supplier has one now".to_owned() };
    world.operator.retry(retry).await.unwrap();
    assert_eq!(world.row(run).await.failures, 0);
    let (verb, actor, _) = world.audit().await.remove(0);
    assert_eq!((verb.as_str(), actor.as_str()), ("retry", "ann"));
    // It is really executed, and not given up at once.
    let (mut drive, command) = world.claimed(run).await;
    assert!(command.is_some());
    world.answered(&mut drive, "steps.0", failed(true)).await;
    assert_eq!(world.row(run).await.state(), RunState::Queued);
}

#[tokio::test]
async fn a_retried_run_keeps_what_started_it() {
    let world = World::published().await;
    let run = world.failed().await;
    let before = world.operator.show(run).await.unwrap().event.unwrap();
    let seen = world.revision(run).await;
    world.operator.retry(Retry { run, seen, why: "mended".to_owned() }).await.unwrap();
    let after = world.operator.show(run).await.unwrap().event.unwrap();
    assert_eq!(before, after);
    assert_eq!((after.trigger.as_deref(), after.key.as_deref()), (Some("stockLow"), Some("bolt")));
}

#[tokio::test]
async fn failed_runs_are_retried_together_with_a_verdict_each() {
    let world = World::published().await;
    let run = world.failed().await;
    let filter = || RunFilter { app: Some(crate::world::app()), limit: 10, ..RunFilter::default() };
    let other = Code::from("NOT_THIS_ONE");
    let none = world.operator.retry_failed(filter(), Some(&other), "mended").await.unwrap();
    assert!(none.verdicts.is_empty());
    let blank = world.operator.retry_failed(filter(), None, " ").await.unwrap_err();
    unchanged(&blank, ErrorClass::Usage);
    let verdicts =
        world.operator.retry_failed(filter(), None, "the cause is mended").await.unwrap();
    let listed: Vec<_> = verdicts.verdicts.iter().map(|it| (it.run, it.state)).collect();
    assert_eq!(listed, [(run, RunState::Queued)]);
    assert!(verdicts.verdicts[0].refused.is_none());
    assert_eq!(world.audit().await[0].2, "the cause is mended");
    // Nothing is failed any more.
    let verdicts = world.operator.retry_failed(filter(), None, "again").await.unwrap();
    assert!(verdicts.verdicts.is_empty());

    // One that was given up with an effect that may have happened is refused, and says why.
    let world = World::published().await;
    let run = world.unknown().await;
    let seen = world.revision(run).await;
    let abandon = Abandon { run, seen, accept_unknown: true, why: "x".to_owned() };
    world.operator.abandon(abandon).await.unwrap();
    let verdicts = world.operator.retry_failed(filter(), None, "again").await.unwrap();
    assert_eq!(verdicts.verdicts[0].state, RunState::Failed);
    assert!(verdicts.verdicts[0].refused.as_ref().unwrap().contains("`steps.1`"));
}

#[tokio::test]
async fn retry_is_refused_while_an_effect_is_unexplained() {
    let world = World::published().await;
    let run = world.unknown().await;
    let seen = world.revision(run).await;
    let error = world.operator.retry(Retry { run, seen, why: "x".to_owned() }).await.unwrap_err();
    assert!(error.to_string().contains("resolve or reconcile it first"), "{error}");
}

#[tokio::test]
async fn abandon_needs_the_unknown_to_be_accepted() {
    let world = World::published().await;
    let run = world.unknown().await;
    let seen = world.revision(run).await;
    let abandon = |accept_unknown| Abandon { run, seen, accept_unknown, why: "x".to_owned() };
    let error = world.operator.abandon(abandon(false)).await.unwrap_err();
    unchanged(&error, ErrorClass::Refused);
    let done = world.operator.abandon(abandon(true)).await.unwrap();
    assert_eq!(done.run.error.unwrap().code, Code::ABANDONED);
    let effects =
        world.operator.effects(&crate::world::app(), None, Micros::ZERO, 10).await.unwrap();
    assert_eq!(effects.effects[0].state.as_str(), "abandoned_unknown");
}

#[tokio::test]
async fn a_queued_run_is_abandoned_only_where_no_live_worker_can_take_it() {
    let world = World::published().await;
    let run = world.emitted().await;
    let seen = world.revision(run).await;
    let abandon = || Abandon { run, seen, accept_unknown: false, why: "x".to_owned() };
    let error = world.operator.abandon(abandon()).await.unwrap_err();
    assert!(error.to_string().contains("no live worker can take"), "{error}");
    world.store.clock().advance(Micros::from_secs(61));
    assert_eq!(world.operator.abandon(abandon()).await.unwrap().run.state, RunState::Failed);
}

/// Covers field fault 131.
/// Covers behaviour 109.
#[tokio::test]
async fn cancel_says_what_came_of_it() {
    let world = World::published().await;
    let run = world.emitted().await;
    let done = world.operator.cancel(cancel(run)).await.unwrap();
    assert_eq!((done.outcome, done.run.state), (Outcome::Canceled, RunState::Canceled));
    let revision = done.run.revision;
    let again = world.operator.cancel(cancel(run)).await.unwrap();
    assert_eq!((again.outcome, again.run.revision), (Outcome::AlreadyEnded, revision));
    let shown = world.operator.show(run).await.unwrap();
    assert_eq!(shown.result_message.as_deref(), Some("no longer wanted"));

    let world = World::published().await;
    let run = world.failed().await;
    let done = world.operator.cancel(cancel(run)).await.unwrap();
    assert_eq!((done.outcome, done.run.state), (Outcome::AlreadyEnded, RunState::Failed));

    let world = World::published().await;
    let run = world.emitted().await;
    let _held = world.claimed(run).await;
    let done = world.operator.cancel(cancel(run)).await.unwrap();
    assert_eq!((done.outcome, done.run.state), (Outcome::WillCancel, RunState::Running));

    let world = World::published().await;
    let run = world.unknown().await;
    let done = world.operator.cancel(cancel(run)).await.unwrap();
    assert_eq!(done.outcome, Outcome::WillCancelAfterEffect);
    let seen = done.run.revision;
    let done = world.operator.resolve(resolve(run, seen, Verdict::NotPerformed)).await.unwrap();
    assert_eq!(done.run.state, RunState::Canceled);
}

/// Covers field fault 118.
#[tokio::test]
async fn cancel_needs_no_worker_in_any_state() {
    let world = World::published().await;
    let run = world.emitted().await;
    let (mut drive, _) = world.claimed(run).await;
    let on = Dependency::on("approval", "1");
    world.answered(&mut drive, "steps.0", Answer::Waiting { on }).await;
    assert_eq!(world.row(run).await.state(), RunState::Waiting);
    world.store.clock().advance(Micros::from_secs(3_600));
    let done = world.operator.cancel(cancel(run)).await.unwrap();
    assert_eq!(done.run.state, RunState::Canceled);

    let world = World::published().await;
    let run = world.emitted().await;
    let _dead = world.claimed(run).await;
    world.operator.cancel(cancel(run)).await.unwrap();
    world.store.clock().advance(Micros::from_secs(3_600));
    use surefoot_kernel_core::{RunStore as _, Scan};
    world.store.run_recover(Scan { app: crate::world::app(), limit: 10 }).await.unwrap();
    assert_eq!(world.row(run).await.state(), RunState::Canceled);
}

#[tokio::test]
async fn a_reason_and_a_run_are_needed() {
    let world = World::published().await;
    let run = world.emitted().await;
    for why in [" \n".to_owned(), "a\0b".to_owned(), "x".repeat(2_001)] {
        let odd = Cancel { why, ..cancel(run) };
        unchanged(&world.operator.cancel(odd).await.unwrap_err(), ErrorClass::Usage);
    }
    let other = RunId::from_bytes([9; 16]);
    let error = world.operator.cancel(cancel(other)).await.unwrap_err();
    assert_eq!(error.to_string(), format!("there is no run {other}"));
    assert_eq!(world.row(run).await.state(), RunState::Queued);
}

/// What a provider said becomes the run's error, and stands in the audit: it is held to the rule of reasons.
#[tokio::test]
async fn a_message_is_held_to_the_rule_of_reasons() {
    let world = World::published().await;
    let run = world.unknown().await;
    let seen = world.revision(run).await;
    let with = |message: &str| {
        let message = message.to_owned();
        resolve(run, seen, Verdict::Failed { code: None, message })
    };
    for (message, says) in [
        (" ".to_owned(), "a message is needed"),
        ("declined\0".to_owned(), "the message has a NUL character in it"),
        ("x".repeat(1_000_000), "the message has 1000000 characters, the limit is 2000"),
    ] {
        let refused = world.operator.resolve(with(&message)).await.unwrap_err();
        unchanged(&refused, ErrorClass::Usage);
        assert!(refused.to_string().contains(says), "{refused}");
    }
    assert_eq!(world.revision(run).await, seen);
    world.operator.resolve(with("card declined")).await.unwrap();
}
