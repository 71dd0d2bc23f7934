use serde_json::json;
use surefoot_kernel_core::expr::{Expr, Template};
use surefoot_kernel_core::plan::StepKind;
use surefoot_kernel_core::{
    Answer, Code, Command, EffectClass, End, Fact, Failure, Input, JOURNAL_MAX_BYTES, Micros, Mode,
    Phase, RUN_MAX_CONSECUTIVE_FAILURES, ReconcileAnswer, Rejection, RowInput, RunState, SessionId,
    Todo,
};

use crate::drive::{Drive, action, failed, key, plan, step, unknown};

/// Covers behaviour 93.
#[test]
fn eight_executions_may_end_badly_and_the_ninth_claim_says_so() {
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Idempotent)]));
    for execution in 1..=8 {
        assert!(drive.command.is_some(), "execution {execution}");
        drive.answer(failed(true));
        assert_eq!(drive.run().failures, execution);
        drive.claim();
        drive.advance();
    }
    assert_eq!(drive.state(), RunState::Failed);
    assert_eq!(drive.failure().code, Code::RETRY_EXHAUSTED);
    assert_eq!(drive.failure().step, Some(key("steps.0")));
    assert!(drive.failure().message.contains("BUSY: busy"), "{}", drive.failure().message);
    assert!(drive.facts.iter().any(|fact| matches!(fact, Fact::StepFailed { .. })));
}

/// Covers behaviour 94.
#[test]
fn an_outcome_starts_the_count_from_zero() {
    let mut drive =
        Drive::begun(plan(vec![action(EffectClass::Idempotent), action(EffectClass::Idempotent)]));
    for _ in 0..3 {
        drive.answer(failed(true));
        drive.claim();
        drive.advance();
    }
    drive.succeed(json!(1));
    assert_eq!(drive.run().failures, 0);
    assert_eq!(drive.run().last_failure, None);
    drive.advance();
    drive.answer(failed(true));
    assert_eq!(drive.run().failures, 1);
}

/// Covers field fault 130.
#[test]
fn executions_that_kill_their_worker_are_bounded_too() {
    for class in [EffectClass::Pure, EffectClass::Transactional, EffectClass::Idempotent] {
        let mut drive = Drive::begun(plan(vec![action(class)]));
        let mut executions = 1;
        while drive.state() == RunState::Running && executions < 20 {
            drive.crash();
            drive.advance();
            executions += 1;
        }
        assert_eq!(drive.failure().code, Code::RETRY_EXHAUSTED);
        assert!(executions <= 10, "{executions}");
    }
}

#[test]
fn an_actions_own_number_of_attempts_counts() {
    let mut plan = plan(vec![action(EffectClass::Pure)]);
    plan.policies.get_mut("pure").unwrap().retry.attempts = 1;
    let mut drive = Drive::begun(plan);
    drive.answer(failed(true));
    drive.claim();
    drive.advance();
    assert_eq!(drive.failure().code, Code::RETRY_EXHAUSTED);
}

/// Attempts are calls. Asking the provider is none, so an effect is explained however few calls are allowed.
#[test]
fn an_action_that_may_be_called_once_is_asked_about_all_the_same() {
    let mut plan = plan(vec![action(EffectClass::Ambiguous)]);
    plan.policies.get_mut("ambiguous").unwrap().retry.attempts = 1;
    let mut drive = Drive::begun(plan);
    drive.answer(unknown());
    for asked in 1..RUN_MAX_CONSECUTIVE_FAILURES {
        drive.claim();
        drive.advance();
        assert!(matches!(drive.command, Some(Command::Reconcile(_))), "{asked}");
        let answer = ReconcileAnswer::Error { message: "away".to_owned(), retry_after: None };
        drive.give(Input::Reconciled { step: key("steps.0"), answer }).unwrap();
    }
    drive.claim();
    drive.advance();
    assert_eq!(drive.state(), RunState::NeedsAttention);
    assert_eq!(drive.failure().code, Code::RETRY_EXHAUSTED);
    let text = &drive.failure().message;
    assert!(text.starts_with("8 executions in a row") && text.contains("away"), "{text}");
}

#[test]
fn a_journal_without_room_for_another_step_ends_the_run() {
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Pure), action(EffectClass::Pure)]));
    drive.succeed(json!(1));
    drive.held.run.journal_bytes = JOURNAL_MAX_BYTES - 3 * 1024 * 1024;
    let full = drive.clone();
    drive.advance();
    assert!(drive.command.is_some());
    let mut full = full;
    full.held.run.journal_bytes += 1;
    full.advance();
    assert_eq!(full.failure().code, Code::JOURNAL_FULL);
}

/// Covers behaviour 59.
#[test]
fn an_action_without_a_policy_is_never_called() {
    let mut plan = plan(vec![action(EffectClass::Pure)]);
    plan.policies.clear();
    let drive = Drive::begun(plan);
    assert_eq!(drive.failure().code, Code::ACTION_POLICY_MISSING);
}

/// Covers behaviour 88.
#[test]
fn a_claim_raises_generation_and_attempt_and_keeps_the_first_start() {
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Idempotent)]));
    let first = drive.run().clone();
    assert_eq!((first.generation, first.attempt), (1, 1));
    drive.answer(failed(true));
    drive.claim();
    let second = drive.run();
    assert_eq!((second.generation, second.attempt), (2, 2));
    assert_eq!(second.started_at, first.started_at);
    assert!(second.claimable_at().unwrap() > drive.now, "the backoff is gone");
}

#[test]
fn nobody_claims_before_it_is_due() {
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Idempotent)]));
    let lease = drive.lease();
    let held = drive.row(RowInput::Claim { lease: lease.clone() });
    assert!(matches!(held, Err(Rejection::NotDue { .. })));
    drive.answer(failed(true));
    let held = drive.row(RowInput::Claim { lease });
    assert!(matches!(held, Err(Rejection::NotDue { .. })));
    drive.now = drive.run().claimable_at().unwrap();
    let lease = drive.lease();
    drive.row(RowInput::Claim { lease }).unwrap();
}

#[test]
fn a_takeover_counts_no_attempt_and_moves_the_lease() {
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Idempotent)]));
    let before = drive.run().clone();
    drive.pass(Micros::from_secs(30));
    let mut lease = drive.lease();
    lease.owner = SessionId::from_bytes([4; 16]);
    let generation = before.generation;
    drive.row(RowInput::TakeOver { generation, lease: lease.clone() }).unwrap();
    let after = drive.run();
    assert_eq!(after.generation, before.generation + 1);
    assert_eq!((after.attempt, after.failures), (before.attempt, before.failures));
    assert_eq!(after.lease(), Some(&lease));
    // Claimed since: the lost commit is settled, and nothing is taken from the new holder.
    let late = drive.row(RowInput::TakeOver { generation, lease });
    assert!(matches!(late, Err(Rejection::WrongState { .. })));
}

#[test]
fn a_hand_over_is_no_failure_and_needs_no_backoff() {
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Idempotent)]));
    drive.row(RowInput::HandOver).unwrap();
    assert_eq!(drive.run().claimable_at(), Some(drive.now));
    assert_eq!((drive.run().failures, drive.run().step_attempt), (0, 0));
}

#[test]
fn a_run_with_an_open_mark_is_not_handed_over() {
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Ambiguous)]));
    drive.prepared();
    assert!(matches!(drive.row(RowInput::HandOver), Err(Rejection::WrongState { .. })));
}

#[test]
fn what_cannot_be_read_waits_for_a_person_and_is_tried_again_after_a_mend() {
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Pure)]));
    drive.row(RowInput::Unreadable { what: "row 3 is torn".to_owned() }).unwrap();
    assert_eq!(drive.state(), RunState::NeedsAttention);
    assert_eq!(drive.failure().code, Code::RESTORE_INVALID);
    drive.row(RowInput::Retry).unwrap();
    drive.claim();
    drive.advance();
    assert!(drive.command.is_some());
    let mut queued = Drive::new(plan(vec![action(EffectClass::Pure)]));
    let rejected = queued.row(RowInput::Unreadable { what: String::new() });
    assert!(matches!(rejected, Err(Rejection::WrongState { .. })));
}

#[test]
fn ended_runs_take_nothing() {
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Pure)]));
    drive.succeed(json!(1));
    drive.advance();
    let ended = drive.run().clone();
    let again = Fact::Ended { end: End::Canceled, at: drive.now };
    assert_eq!(drive.after(&[again]), ended);
    assert!(matches!(drive.give(Input::Advance), Err(Rejection::WrongState { .. })));
    let lease = drive.lease();
    let generation = ended.generation;
    drive.row(RowInput::TakeOver { generation, lease }).unwrap();
    assert_eq!(drive.run(), &ended);
}

#[test]
fn an_open_effect_of_another_step_is_never_guessed_around() {
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Ambiguous)]));
    drive.prepared();
    let Phase::Running { todo: Todo::Reconcile(effect), .. } = &mut drive.held.run.phase else {
        panic!()
    };
    effect.step = key("steps.9");
    let answer = Answer::Succeeded { output: json!(1) };
    let wrong = drive.give(Input::Answer { step: key("steps.0"), answer });
    assert!(matches!(wrong, Err(Rejection::WrongState { .. })));
    drive.give(Input::Advance).unwrap();
    assert_eq!(drive.command, None);
    assert_eq!(drive.failure().code, Code::RESTORE_INVALID);
}

#[test]
fn an_effect_that_is_explained_is_not_asked_about_again() {
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Ambiguous)]));
    let error = Failure::new(Code::OUTPUT_INVALID, "odd");
    drive.answer(Answer::OutputRefused { error, evidence: "odd".to_owned() });
    let queued = drive.after(&[Fact::Requeued { ready_at: drive.now }]);
    assert_eq!(queued.phase, Phase::Queued { ready_at: drive.now, todo: Todo::Steps });
}

#[test]
fn a_value_that_could_not_be_read_back_is_not_recorded() {
    let nest = |of: Template| Template::List(vec![of]);
    let set =
        |name: &str, value: Template| step(StepKind::SetVariable { name: name.to_owned(), value });
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let steps = vec![
        set("a", Template::Literal(deep)),
        set("b", (0..30).fold(Template::Expr(Expr::Name("a".to_owned())), |of, _| nest(of))),
    ];
    let drive = Drive::begun(plan(steps));
    assert_eq!(drive.failure().code, Code::EXPRESSION_ERROR);
    assert_eq!(drive.failure().message, "the value is nested deeper than 128 levels");
    assert_eq!(drive.failure().step, Some(key("steps.1")));
}

#[test]
fn the_words_for_states_and_modes_are_stable() {
    let words: Vec<&str> = RunState::ALL.iter().map(|state| state.as_str()).collect();
    let all =
        ["queued", "running", "waiting", "succeeded", "failed", "canceled", "needs_attention"];
    assert_eq!(words, all);
    for state in RunState::ALL {
        assert_eq!(state.as_str().parse(), Ok(*state));
    }
    let odd = "done".parse::<RunState>().unwrap_err();
    assert!(odd.contains("`done`") && odd.contains("needs_attention"), "{odd}");
    assert_eq!((Mode::Execute.as_str(), Mode::DryRun.as_str()), ("execute", "dry_run"));
}
