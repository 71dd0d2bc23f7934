use serde_json::{Value, json};
use surefoot_kernel_core::expr::{Binary, Expr, Template};
use surefoot_kernel_core::plan::{RetryPolicy, Step, StepKind};
use surefoot_kernel_core::{
    Answer, Code, Command, Cursor, EffectClass, EffectState, Fact, Failure, Input, Invocation,
    JOURNAL_MAX_BYTES, Micros, Phase, ReconcileAnswer, RowInput, RunState, Verdict,
};

use crate::drive::{Drive, action, failed, key, plan, saved, step, unknown};

fn set(name: &str, expr: Expr) -> Step {
    step(StepKind::SetVariable { name: name.to_owned(), value: Template::Expr(expr) })
}

fn name(text: &str) -> Expr {
    Expr::Name(text.to_owned())
}

fn with_catch(mut of: Step, steps: Vec<Step>) -> Step {
    if let StepKind::Action { catch, .. } = &mut of.kind {
        *catch = Some(steps);
    }
    of
}

fn with_attempts(mut of: Step, attempts: u32) -> Step {
    if let StepKind::Action { retry, .. } = &mut of.kind {
        let first = Micros::from_secs(1);
        *retry = Some(RetryPolicy { attempts, first, factor: 1.0, max: first });
    }
    of
}

fn caught(class: EffectClass, steps: Vec<Step>) -> Step {
    with_catch(action(class), steps)
}

fn result(drive: &Drive) -> &Value {
    match &drive.run().phase {
        Phase::Succeeded { result, .. } => result,
        other => panic!("{other:?}"),
    }
}

fn is_caught(drive: &Drive) -> bool {
    drive.facts.iter().any(|fact| matches!(fact, Fact::StepFailed { caught: true, .. }))
}

#[test]
fn a_failure_for_good_goes_on_with_its_catch_and_takes_the_value_of_its_last_step() {
    for class in [
        EffectClass::Pure,
        EffectClass::Transactional,
        EffectClass::Idempotent,
        EffectClass::Ambiguous,
    ] {
        let first = saved(caught(class, vec![set("seen", name("error"))]), "order");
        let (error, order) = (Box::new(name("error")), Box::new(name("order")));
        let after = Expr::Binary(Binary::Coalesce, error, order);
        let mut drive = Drive::begun(plan(vec![first, set("after", after)]));
        drive.answer(failed(false));
        assert!(is_caught(&drive), "{class}");
        assert_eq!(drive.state(), RunState::Running);
        assert_eq!(drive.run().failures, 0, "a handled failure is an outcome");
        drive.advance();
        // The branch saw the error, the step has the branch's value, and the name did not escape.
        assert_eq!(*result(&drive), json!({ "code": "BUSY", "message": "busy" }), "{class}");
    }
}

#[test]
fn an_effect_that_the_provider_refused_is_settled_and_then_caught() {
    let inner = action(EffectClass::Pure);
    let mut drive = Drive::begun(plan(vec![caught(EffectClass::Ambiguous, vec![inner.clone()])]));
    drive.answer(unknown());
    drive.claim();
    drive.advance();
    let Some(Command::Reconcile(call)) = drive.command.clone() else { panic!() };
    let failure = Failure::new("DECLINED", "declined");
    let answer = ReconcileAnswer::Failed { failure };
    drive.give(Input::Reconciled { step: call.step, answer }).unwrap();
    let settled = |fact: &Fact| {
        let refused = Some(EffectState::Failed);
        matches!(fact, Fact::StepFailed { effect, caught: true, .. } if *effect == refused)
    };
    assert!(drive.facts.iter().any(settled), "{:?}", drive.facts);
    assert!(!drive.run().has_unsettled_effect());
    drive.advance();
    let Some(Command::Call(call)) = &drive.command else { panic!("{:?}", drive.command) };
    assert_eq!(call.step, key("steps.0.catch.0"));
}

#[test]
fn what_can_be_tried_again_is_tried_again_first() {
    let quick = with_attempts(action(EffectClass::Idempotent), 3);
    let steps = vec![with_catch(quick, vec![set("seen", name("error"))])];
    let mut drive = Drive::begun(plan(steps));
    for _ in 0..3 {
        drive.answer(failed(true));
        assert!(!is_caught(&drive));
        drive.claim();
        drive.advance();
    }
    let seen = result(&drive);
    assert_eq!(seen["code"], "RETRY_EXHAUSTED");
    assert!(seen["message"].as_str().unwrap().contains("3 executions"), "{seen}");
}

#[test]
fn an_unexplained_effect_is_never_caught() {
    let steps = vec![caught(EffectClass::Ambiguous, vec![action(EffectClass::Pure)])];
    let mut drive = Drive::begun(plan(steps));
    drive.answer(unknown());
    drive.claim();
    drive.advance();
    let Some(Command::Reconcile(call)) = drive.command.clone() else { panic!() };
    let answer = ReconcileAnswer::Unknown { why: "forgotten".to_owned() };
    drive.give(Input::Reconciled { step: call.step.clone(), answer }).unwrap();
    assert_eq!(drive.state(), RunState::NeedsAttention);
    // A person's verdict is decided on the row, and ends the run.
    let verdict = Verdict::Failed { code: None, message: "declined".to_owned() };
    drive.row(RowInput::Resolve { step: call.step, verdict }).unwrap();
    assert!(!is_caught(&drive));
    assert_eq!(drive.failure().code, Code::EFFECT_CONFIRMED_FAILED);
}

#[test]
fn a_cancel_request_wins_over_the_catch() {
    let steps = vec![caught(EffectClass::Idempotent, vec![action(EffectClass::Pure)])];
    let mut drive = Drive::begun(plan(steps));
    drive.prepared();
    let command = drive.command.clone();
    drive.row(RowInput::Cancel { actor: "ann".to_owned(), reason: "no".to_owned() }).unwrap();
    drive.command = command;
    drive.answer(failed(false));
    assert!(!is_caught(&drive));
    assert_eq!(drive.state(), RunState::Canceled);
}

#[test]
fn a_failure_inside_a_catch_has_a_catch_of_its_own_or_fails_the_run() {
    let inner = caught(EffectClass::Idempotent, vec![set("inner", name("error"))]);
    let outer = vec![inner, set("outer", name("error"))];
    let mut drive = Drive::begun(plan(vec![caught(EffectClass::Pure, outer)]));
    drive.answer(failed(false));
    drive.advance();
    let failure = Failure::new("WORSE", "worse");
    drive.answer(Answer::Failed { failure, retryable: false, retry_after: None });
    drive.advance();
    // The inner error hid the outer one, and is gone.
    assert_eq!(result(&drive)["code"], "BUSY");

    let steps = vec![caught(EffectClass::Pure, vec![action(EffectClass::Idempotent)])];
    let mut drive = Drive::begun(plan(steps));
    drive.answer(failed(false));
    drive.advance();
    drive.answer(failed(false));
    assert_eq!(drive.state(), RunState::Failed);
    assert_eq!(drive.failure().step, Some(key("steps.0.catch.0")));
}

#[test]
fn a_step_whose_config_has_no_value_is_caught_and_a_full_journal_is_not() {
    let mut wrong = caught(EffectClass::Ambiguous, vec![set("seen", name("error"))]);
    if let StepKind::Action { config, .. } = &mut wrong.kind {
        *config = Template::Expr(name("nobody"));
    }
    let drive = Drive::begun(plan(vec![wrong.clone()]));
    assert_eq!(result(&drive)["code"], "VALUE_UNAVAILABLE");
    let mut drive = Drive::new(plan(vec![wrong]));
    drive.claim();
    drive.give(Input::Advance).unwrap();
    drive.held.run.journal_bytes = JOURNAL_MAX_BYTES;
    drive.advance();
    assert_eq!(drive.failure().code, Code::JOURNAL_FULL);
}

#[test]
fn an_action_that_the_plan_does_not_know_is_not_caught_but_its_code_is_free_for_others() {
    let steps = vec![caught(EffectClass::Idempotent, vec![set("seen", name("error"))])];
    let mut unknown = plan(steps.clone());
    unknown.policies.clear();
    let drive = Drive::begun(unknown);
    assert!(!is_caught(&drive));
    assert_eq!(drive.failure().code, Code::ACTION_POLICY_MISSING);

    for code in [Code::ACTION_POLICY_MISSING, Code::JOURNAL_FULL] {
        let mut drive = Drive::begun(plan(steps.clone()));
        let failure = Failure::new(code.clone(), "an application's own words");
        drive.answer(Answer::Failed { failure, retryable: false, retry_after: None });
        assert!(is_caught(&drive), "{code}");
        drive.advance();
        assert_eq!(result(&drive)["code"], code.as_str());
    }
}

#[test]
fn a_caught_failure_is_restored_and_its_action_is_never_called_again() {
    let steps = vec![action(EffectClass::Pure), set("seen", name("error"))];
    let plan = plan(vec![caught(EffectClass::Idempotent, steps)]);
    let mut drive = Drive::begun(plan.clone());
    let mut journal = vec![Fact::InputsComputed { inputs: json!({}) }];
    drive.answer(failed(false));
    journal.extend(drive.facts.clone());
    let invocation = Invocation::default();
    let cursor = Cursor::new(drive.run(), &plan, invocation);
    assert_eq!(cursor.clone().restore(&plan, &journal).unwrap(), drive.held.cursor);
    drive.crash();
    drive.advance();
    let Some(Command::Call(call)) = &drive.command else { panic!("{:?}", drive.command) };
    assert_eq!(call.step, key("steps.0.catch.0"));
    // The same journal over a plan without that branch is another run's.
    let other = crate::drive::plan(vec![action(EffectClass::Idempotent)]);
    let error = cursor.restore(&other, &journal).unwrap_err().to_string();
    assert!(error.contains("`steps.0` has no `catch`"), "{error}");
}

#[test]
fn a_steps_own_retry_policy_holds_in_place_of_its_actions() {
    let mut drive = Drive::begun(plan(vec![with_attempts(action(EffectClass::Idempotent), 2)]));
    drive.answer(failed(true));
    let wait = drive.run().claimable_at().unwrap().since(drive.now);
    assert!(wait <= Micros::from_secs(1), "its own delays hold: {wait:?}");
    drive.claim();
    drive.advance();
    drive.answer(failed(true));
    drive.claim();
    drive.advance();
    assert_eq!(drive.failure().code, Code::RETRY_EXHAUSTED);
}
