//! Effects across crashes: what is marked is explained, what is recorded is never done again.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use serde_json::json;
use surefoot_kernel_core::{
    Amounts, Answer, Call, Code, Command, Dependency, EffectState, Input, Micros, Phase, Prepared,
    ReconcileAnswer, RowInput, RunId, RunState, Signal, Todo, Verdict,
};

use super::StoreFactory;
use super::world::{World, failed, step, succeeded, unknown};
use crate::plans::{ambiguous, plan, pure, set};
use crate::{Drive, Reply};

/// A held run whose ambiguous call is marked and open.
async fn marked<F: StoreFactory>(world: &World<F>) -> (Drive, Call) {
    let mut drive = world.running(plan(vec![ambiguous("pay"), pure("a")])).await;
    let command = drive.to_call(&world.store).await.unwrap();
    let Some(Command::Call(call)) = command else { unreachable!("{command:?}") };
    (drive, call)
}

/// Claims the run and expects to be told to ask the provider.
async fn asked<F: StoreFactory>(world: &World<F>, run: RunId) -> (Drive, Call) {
    let mut drive = world.claim_run(run).await;
    let command = drive.to_call(&world.store).await.unwrap();
    let Some(Command::Reconcile(call)) = command else { unreachable!("{command:?}") };
    (drive, call)
}

async fn reconciled<F: StoreFactory>(world: &World<F>, run: RunId, answer: ReconcileAnswer) {
    let (mut drive, call) = asked(world, run).await;
    let input = Drive::input(&call, Reply::Reconciled(answer));
    drive.take(&world.store, input).await.unwrap();
}

/// Covers behaviour 130.
pub async fn the_mark_is_durable_before_the_call_opens<F: StoreFactory>(world: &World<F>) {
    let (drive, call) = marked(world).await;
    let seen = Drive::load(&world.other, drive.run().id).await.unwrap();
    let effect = seen.run().effect().unwrap();
    assert_eq!((effect.state, &effect.step), (EffectState::Marked, &call.step));
    assert_eq!(seen.held(), drive.held());
}

/// One commit explains an effect and marks the next one: the row has the second, and nothing of the first.
///
/// Covers behaviour 130.
pub async fn an_outcome_takes_the_next_mark_along<F: StoreFactory>(world: &World<F>) {
    let plan = plan(vec![ambiguous("pay"), ambiguous("pay"), pure("a")]);
    let mut drive = world.running(plan).await;
    let Some(Command::Call(first)) = drive.to_call(&world.store).await.unwrap() else {
        unreachable!("the first call")
    };
    let revision = drive.stamp().revision;
    let answer = succeeded(json!({ "receipt": 7 }));
    drive.decide(Input::Answer { step: first.step, answer }).unwrap();
    let result = Prepared::Ready { cost: Amounts::default() };
    let mark = Input::Prepared { step: step("steps.1"), result };
    let command = drive.take(&world.store, mark).await.unwrap();
    let Some(Command::Call(second)) = command else { unreachable!("{command:?}") };
    assert_eq!(drive.stamp().revision, revision + 1);

    let run = drive.run().id;
    let seen = Drive::load(&world.other, run).await.unwrap();
    let effect = seen.run().effect().unwrap();
    assert_eq!((effect.state, &effect.step), (EffectState::Marked, &second.step));
    assert_eq!(seen.held(), drive.held());
    world.pass_secs(121).await;
    let (_, open) = asked(world, run).await;
    assert_eq!((open.step, open.effect_key), (second.step, second.effect_key));
}

/// Covers behaviour 131.
pub async fn what_nobody_can_tell_is_asked_and_never_done_again<F: StoreFactory>(world: &World<F>) {
    let (mut drive, call) = marked(world).await;
    let run = drive.run().id;
    drive.answer(&world.store, &call.step, unknown()).await.unwrap();
    assert!(world.claim().await.is_empty(), "the provider is first asked after 1 s");
    world.pass_secs(2).await;
    reconciled(world, run, ReconcileAnswer::Unknown { why: "no log".to_owned() }).await;
    for _ in 0..10 {
        world.pass_secs(1_000).await;
        world.recover().await;
        assert!(world.claim().await.is_empty(), "nothing moves until a person says what is true");
    }
    let Phase::NeedsAttention(attention) = world.row(run).await.phase else { unreachable!() };
    assert_eq!(attention.error.code, Code::EFFECT_OUTCOME_UNKNOWN);
    assert_eq!(attention.effect.unwrap().state, EffectState::Ambiguous);
}

/// Covers behaviour 132.
/// Covers behaviour 138.
pub async fn an_actions_word_that_nothing_happened_settles_the_mark<F: StoreFactory>(
    world: &World<F>,
) {
    let waiting = || Answer::Waiting { on: Dependency::on("approval", "7") };
    for answer in [failed(true), waiting()] {
        let (mut drive, call) = marked(world).await;
        let run = drive.run().id;
        drive.answer(&world.store, &call.step, answer).await.unwrap();
        assert!(!world.row(run).await.has_unsettled_effect());
        world.signal(Signal::new("approval", "7")).await;
        world.pass_secs(301).await;
        let mut drive = world.claim_run(run).await;
        let command = drive.to_call(&world.store).await.unwrap();
        let Some(Command::Call(again)) = command else { unreachable!("{command:?}") };
        assert_eq!(again.effect_key, call.effect_key);
        drive.answer(&world.store, &call.step, succeeded(json!(1))).await.unwrap();
        drive.flush(&world.store).await.unwrap();
        // Crashed before such an answer is recorded, the provider is asked instead.
        let (lost, _) = marked(world).await;
        world.pass_secs(121).await;
        asked(world, lost.run().id).await;
        world.pass_secs(121).await;
    }
}

/// Covers behaviour 133.
pub async fn a_providers_word_decides_about_a_lost_call<F: StoreFactory>(world: &World<F>) {
    let failure = surefoot_kernel_core::Failure::new("REFUSED", "card expired");
    let output = json!({ "receipt": 7 });
    for (answer, state) in [
        (ReconcileAnswer::Succeeded { output }, RunState::Running),
        (ReconcileAnswer::Failed { failure }, RunState::Failed),
        (ReconcileAnswer::Unknown { why: "no log".to_owned() }, RunState::NeedsAttention),
        (ReconcileAnswer::NotFound, RunState::Queued),
    ] {
        let (lost, call) = marked(world).await;
        let run = lost.run().id;
        world.pass_secs(121).await;
        let (mut drive, asked) = asked(world, run).await;
        assert_eq!(asked.effect_key, call.effect_key);
        let input = Drive::input(&asked, Reply::Reconciled(answer));
        drive.take(&world.store, input).await.unwrap();
        let row = world.row(run).await;
        assert_eq!(row.state(), state);
        assert_eq!(
            row.has_unsettled_effect(),
            matches!(state, RunState::Queued | RunState::NeedsAttention)
        );
    }
}

/// Covers behaviour 133.
pub async fn not_found_proves_nothing_until_it_has_settled<F: StoreFactory>(world: &World<F>) {
    let (lost, _) = marked(world).await;
    let run = lost.run().id;
    let since = lost.run().effect().unwrap().since;
    world.pass_secs(121).await;
    let mut questions = 0;
    while world.row(run).await.state() != RunState::NeedsAttention {
        let failures = world.row(run).await.failures;
        reconciled(world, run, ReconcileAnswer::NotFound).await;
        questions += 1;
        let row = world.row(run).await;
        if row.state() == RunState::Queued {
            assert!(matches!(row.phase, Phase::Queued { todo: Todo::Reconcile(_), .. }));
            assert_eq!(row.failures, failures, "asking again is no failure");
        } else {
            let passed = world.now().await.since(since);
            assert!(passed >= Micros::from_secs(600), "given up after {passed:?}");
        }
        world.pass_secs(61).await;
    }
    assert!(questions >= 5, "asked {questions} times in ten minutes");
}

/// Covers behaviour 134.
pub async fn a_question_that_fails_is_asked_again<F: StoreFactory>(world: &World<F>) {
    let (lost, call) = marked(world).await;
    let run = lost.run().id;
    world.pass_secs(121).await;
    for _ in 0..3 {
        let error = ReconcileAnswer::Error { message: "503".to_owned(), retry_after: None };
        reconciled(world, run, error).await;
        let row = world.row(run).await;
        assert_eq!(row.last_failure.unwrap().code, Code::EFFECT_RECONCILE_FAILED);
        assert!(world.claim().await.is_empty(), "a failed question has a backoff");
        world.pass_secs(301).await;
    }
    let (_, again) = asked(world, run).await;
    assert_eq!(again.effect_key, call.effect_key);
}

/// Covers behaviour 121.
/// Covers behaviour 139.
pub async fn a_name_is_bound_again_by_a_persons_word<F: StoreFactory>(world: &World<F>) {
    use surefoot_kernel_core::expr::{Expr, Template};
    let receipt = Template::Expr(Expr::Name("receipt".to_owned()));
    let flow = plan(vec![ambiguous("pay").save_as("receipt"), set("copy", receipt)]);
    let mut drive = world.running(flow).await;
    let run = drive.run().id;
    world.answer(&mut drive, unknown()).await;
    world.pass_secs(2).await;
    reconciled(world, run, ReconcileAnswer::Unknown { why: "no log".to_owned() }).await;
    let verdict = Verdict::Succeeded { output: json!({ "id": 7 }) };
    let resolve = RowInput::Resolve { step: step("steps.0"), verdict };
    world.input(run, resolve).await.unwrap();
    let mut drive = world.claim_run(run).await;
    assert_eq!(drive.to_call(&world.store).await.unwrap(), None);
    let result = Phase::Succeeded { result: json!({ "id": 7 }), message: None };
    assert_eq!(world.row(run).await.phase, result);
}
