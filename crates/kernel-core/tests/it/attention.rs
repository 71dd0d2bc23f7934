use serde_json::json;
use surefoot_kernel_core::{
    Answer, Code, Command, EffectClass, EffectState, Failure, Input, Phase, ReconcileAnswer,
    Rejection, RowInput, RunState, Verdict,
};

use crate::drive::{Drive, action, failed, key, plan, unknown};

fn resolve(drive: &mut Drive, verdict: Verdict) -> Result<(), Rejection> {
    drive.row(RowInput::Resolve { step: key("steps.0"), verdict })
}

fn succeeded() -> Verdict {
    Verdict::Succeeded { output: json!("receipt") }
}

fn confirmed_failed(code: Option<Code>) -> Verdict {
    Verdict::Failed { code, message: "declined".to_owned() }
}

/// Nobody knows what became of the effect of the first of two steps.
fn stranded() -> Drive {
    let steps = vec![action(EffectClass::Ambiguous), action(EffectClass::Pure)];
    let mut drive = Drive::begun(plan(steps));
    drive.answer(unknown());
    drive.claim();
    drive.advance();
    let answer = ReconcileAnswer::Unknown { why: "forgotten".to_owned() };
    drive.give(Input::Reconciled { step: key("steps.0"), answer }).unwrap();
    assert_eq!(drive.failure().code, Code::EFFECT_OUTCOME_UNKNOWN);
    drive
}

/// The effect happened, its output cannot be kept.
fn without_output() -> Drive {
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Ambiguous)]));
    let error = Failure::new(Code::OUTPUT_INVALID, "odd");
    drive.answer(Answer::OutputRefused { error, evidence: "odd".to_owned() });
    drive
}

/// Covers behaviour 139.
#[test]
fn confirmed_success_is_restored_and_never_called_again() {
    let mut drive = stranded();
    let generation = drive.run().generation;
    resolve(&mut drive, succeeded()).unwrap();
    assert_eq!(drive.run().generation, generation + 1);
    assert_eq!(drive.run().claimable_at(), Some(drive.now));
    drive.claim();
    drive.advance();
    let Some(Command::Call(call)) = &drive.command else { panic!() };
    assert_eq!(call.action, "pure");
}

/// Covers behaviour 140.
#[test]
fn confirmed_failure_fails_the_run_with_its_code() {
    let mut drive = stranded();
    resolve(&mut drive, confirmed_failed(None)).unwrap();
    assert_eq!(drive.failure().code, Code::EFFECT_CONFIRMED_FAILED);
    assert_eq!(drive.failure().message, "declined");
    let mut drive = stranded();
    resolve(&mut drive, confirmed_failed(Some("CARD_51".into()))).unwrap();
    assert_eq!(drive.failure().code.as_str(), "CARD_51");
    assert_eq!(drive.failure().step, Some(key("steps.0")));
}

#[test]
fn what_did_not_happen_runs_again() {
    let mut drive = stranded();
    resolve(&mut drive, Verdict::NotPerformed).unwrap();
    assert_eq!(drive.run().claimable_at(), Some(drive.now));
    drive.claim();
    drive.advance();
    assert!(matches!(drive.command, Some(Command::Prepare(_))));
}

/// Covers field fault 114.
#[test]
fn a_person_who_says_that_nothing_happened_gets_another_call() {
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Ambiguous)]));
    drive.answer(unknown());
    while drive.state() != RunState::NeedsAttention {
        drive.claim();
        drive.advance();
        if drive.state() == RunState::Running {
            let answer = ReconcileAnswer::Error { message: "away".to_owned(), retry_after: None };
            drive.give(Input::Reconciled { step: key("steps.0"), answer }).unwrap();
        }
    }
    assert_eq!(drive.failure().code, Code::RETRY_EXHAUSTED);
    resolve(&mut drive, Verdict::NotPerformed).unwrap();
    assert_eq!((drive.run().failures, &drive.run().last_failure), (0, &None));
    drive.claim();
    drive.advance();
    assert!(matches!(drive.command, Some(Command::Prepare(_))), "{:?}", drive.run().phase);
}

/// Covers behaviour 141.
#[test]
fn a_verdict_needs_an_effect_that_waits_for_it() {
    let mut drive = stranded();
    let other = RowInput::Resolve { step: key("steps.1"), verdict: succeeded() };
    assert!(matches!(drive.row(other), Err(Rejection::WrongStep { .. })));
    resolve(&mut drive, succeeded()).unwrap();
    assert!(matches!(resolve(&mut drive, succeeded()), Err(Rejection::WrongState { .. })));
    let ask = RowInput::AskReconcile { step: key("steps.0") };
    assert!(matches!(drive.row(ask), Err(Rejection::WrongState { .. })));
}

#[test]
fn an_effect_that_happened_takes_an_output_and_nothing_else() {
    let mut drive = without_output();
    for verdict in [Verdict::NotPerformed, confirmed_failed(None)] {
        let refused = resolve(&mut drive, verdict);
        assert!(matches!(refused, Err(Rejection::OutputNeeded { .. })));
    }
    let ask = RowInput::AskReconcile { step: key("steps.0") };
    assert!(matches!(drive.row(ask), Err(Rejection::OutputNeeded { .. })));
    assert!(matches!(drive.row(RowInput::Retry), Err(Rejection::OutputNeeded { .. })));
    resolve(&mut drive, succeeded()).unwrap();
    drive.claim();
    drive.advance();
    let result = json!("receipt");
    assert_eq!(drive.run().phase, Phase::Succeeded { result, message: None });
}

#[test]
fn a_person_can_have_the_provider_asked_again() {
    let mut drive = stranded();
    let ask = RowInput::AskReconcile { step: key("steps.0") };
    drive.row(ask).unwrap();
    assert_eq!(drive.run().failures, 0);
    assert_eq!(drive.run().claimable_at(), Some(drive.now));
    drive.claim();
    drive.advance();
    assert!(matches!(drive.command, Some(Command::Reconcile(_))));
    let ask = RowInput::AskReconcile { step: key("steps.1") };
    assert!(matches!(stranded().row(ask), Err(Rejection::WrongStep { .. })));
}

#[test]
fn a_failed_run_is_tried_again_where_it_failed() {
    let steps = vec![action(EffectClass::Idempotent), action(EffectClass::Idempotent)];
    let mut drive = Drive::begun(plan(steps));
    drive.succeed(json!(1));
    drive.advance();
    drive.answer(failed(false));
    assert_eq!(drive.state(), RunState::Failed);
    let generation = drive.run().generation;
    drive.row(RowInput::Retry).unwrap();
    let run = drive.run();
    assert_eq!((run.failures, run.ended_at), (0, None));
    assert_eq!(run.generation, generation + 1);
    assert_eq!(run.claimable_at(), Some(drive.now));
    drive.claim();
    drive.advance();
    let Some(Command::Prepare(call)) = &drive.command else { panic!() };
    assert_eq!((call.step.as_str(), call.attempt), ("steps.1", 2));
}

#[test]
fn only_what_failed_is_retried() {
    let mut running = Drive::begun(plan(vec![action(EffectClass::Pure)]));
    assert!(matches!(running.row(RowInput::Retry), Err(Rejection::WrongState { .. })));
    assert!(matches!(stranded().row(RowInput::Retry), Err(Rejection::EffectUnsettled { .. })));
}

fn abandon(drive: &mut Drive, accept_unknown: bool, unclaimable: bool) -> Result<(), Rejection> {
    drive.row(RowInput::Abandon { accept_unknown, unclaimable })
}

#[test]
fn giving_up_an_unknown_effect_needs_acceptance_and_stays_in_sight() {
    let mut drive = stranded();
    let refused = abandon(&mut drive, false, false);
    assert!(matches!(refused, Err(Rejection::EffectUnsettled { .. })));
    let generation = drive.run().generation;
    abandon(&mut drive, true, false).unwrap();
    assert_eq!(drive.failure().code, Code::ABANDONED);
    assert_eq!(drive.run().effect().unwrap().state, EffectState::AbandonedUnknown);
    assert_eq!(drive.run().generation, generation + 1);
    assert!(matches!(drive.row(RowInput::Retry), Err(Rejection::GivenUp { .. })));
}

#[test]
fn giving_up_an_effect_that_happened_never_lets_it_happen_again() {
    let mut drive = without_output();
    abandon(&mut drive, false, false).unwrap();
    assert_eq!(drive.run().effect().unwrap().state, EffectState::Succeeded);
    assert!(matches!(drive.row(RowInput::Retry), Err(Rejection::GivenUp { .. })));
}

#[test]
fn a_queued_run_is_given_up_only_if_nobody_can_take_it() {
    let mut drive = Drive::new(plan(vec![action(EffectClass::Pure)]));
    assert!(matches!(abandon(&mut drive, false, false), Err(Rejection::WrongState { .. })));
    abandon(&mut drive, false, true).unwrap();
    assert_eq!(drive.failure().code, Code::ABANDONED);
    assert_eq!(drive.run().effect(), None);
    let mut running = Drive::begun(plan(vec![action(EffectClass::Pure)]));
    assert!(matches!(abandon(&mut running, true, true), Err(Rejection::WrongState { .. })));
}
