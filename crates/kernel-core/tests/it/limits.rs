use serde_json::json;
use surefoot_kernel_core::{
    Code, EffectClass, End, Fact, Input, JOURNAL_MAX_BYTES, Micros, Rejection, RowInput, RunState,
    SessionId,
};

use crate::drive::{Drive, action, failed, key, plan};

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

#[test]
fn a_journal_without_room_for_another_step_ends_the_run() {
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Pure), action(EffectClass::Pure)]));
    drive.succeed(json!(1));
    drive.held.run.journal_bytes = JOURNAL_MAX_BYTES - 2 * 1024 * 1024;
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
