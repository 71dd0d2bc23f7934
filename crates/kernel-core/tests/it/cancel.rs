use serde_json::json;
use surefoot_kernel_core::{
    Answer, Code, Command, Dependency, EffectClass, Failure, Input, Micros, Phase, Prepared,
    ReconcileAnswer, Rejection, RowInput, RunState, Todo, Verdict,
};

use crate::drive::{Drive, LEASE, action, failed, key, plan, unknown};

fn cancel(drive: &mut Drive) {
    let (actor, reason) = ("ann".to_owned(), "enough".to_owned());
    drive.row(RowInput::Cancel { actor, reason }).unwrap();
}

fn begun(class: EffectClass) -> Drive {
    Drive::begun(plan(vec![action(class), action(EffectClass::Pure)]))
}

fn canceled(drive: &Drive) {
    let message = Some("enough".to_owned());
    assert_eq!(drive.run().phase, Phase::Canceled { message });
}

/// Covers behaviour 104.
#[test]
fn queued_and_waiting_runs_are_canceled_at_once() {
    let mut drive = Drive::new(plan(vec![action(EffectClass::Pure)]));
    let generation = drive.run().generation;
    cancel(&mut drive);
    canceled(&drive);
    assert_eq!(drive.run().generation, generation + 1);
    let mut drive = begun(EffectClass::Idempotent);
    drive.answer(Answer::Waiting { on: Dependency::on("reply", "7") });
    cancel(&mut drive);
    canceled(&drive);
}

/// Covers behaviour 105.
#[test]
fn an_outcome_is_recorded_and_the_cancel_honoured_in_one_commit() {
    for class in [
        EffectClass::Pure,
        EffectClass::Transactional,
        EffectClass::Idempotent,
        EffectClass::Ambiguous,
    ] {
        let mut drive = begun(class);
        if class == EffectClass::Idempotent || class == EffectClass::Ambiguous {
            drive.prepared();
        }
        let generation = drive.run().generation;
        let command = drive.command.clone();
        cancel(&mut drive);
        assert_eq!(drive.state(), RunState::Running);
        assert_eq!(drive.run().generation, generation, "the worker may still write");
        drive.command = command;
        drive.succeed(json!(1));
        assert_eq!(drive.completed("steps.0"), Some(&json!(1)));
        canceled(&drive);
    }
}

#[test]
fn a_canceled_run_stops_before_its_next_step() {
    let mut drive = begun(EffectClass::Pure);
    cancel(&mut drive);
    drive.give(Input::Advance).unwrap();
    canceled(&drive);

    let mut drive = begun(EffectClass::Ambiguous);
    cancel(&mut drive);
    drive
        .give(Input::Prepared {
            step: key("steps.0"),
            result: Prepared::Ready { cost: Default::default() },
        })
        .unwrap();
    assert_eq!(drive.command, None);
    canceled(&drive);

    let mut drive = begun(EffectClass::Pure);
    cancel(&mut drive);
    drive.row(RowInput::HandOver).unwrap();
    canceled(&drive);
}

#[test]
fn whatever_a_step_answers_a_canceled_run_is_not_queued() {
    let waits = Answer::Waiting { on: Dependency::on("reply", "7") };
    for answer in [failed(true), failed(false), waits, Answer::NotCalled] {
        for class in [EffectClass::Idempotent, EffectClass::Ambiguous] {
            let mut drive = begun(class);
            drive.prepared();
            let command = drive.command.clone();
            cancel(&mut drive);
            drive.command = command;
            drive.answer(answer.clone());
            canceled(&drive);
        }
    }
}

fn flagged_with_unknown_effect() -> Drive {
    let mut drive = begun(EffectClass::Ambiguous);
    drive.prepared();
    let command = drive.command.clone();
    cancel(&mut drive);
    drive.command = command;
    drive.answer(unknown());
    drive
}

#[test]
fn an_unexplained_effect_is_explained_before_the_cancel() {
    let mut drive = flagged_with_unknown_effect();
    assert!(matches!(drive.run().phase, Phase::Queued { todo: Todo::Reconcile(_), .. }));
    drive.claim();
    drive.advance();
    assert!(matches!(drive.command, Some(Command::Reconcile(_))));
    let answer = ReconcileAnswer::Succeeded { output: json!("receipt") };
    let mut known = drive.clone();
    known.give(Input::Reconciled { step: key("steps.0"), answer }).unwrap();
    canceled(&known);

    let answer = ReconcileAnswer::Unknown { why: "forgotten".to_owned() };
    drive.give(Input::Reconciled { step: key("steps.0"), answer }).unwrap();
    assert_eq!(drive.state(), RunState::NeedsAttention);
    for verdict in [
        Verdict::Succeeded { output: json!(1) },
        Verdict::Failed { code: None, message: "no".to_owned() },
        Verdict::NotPerformed,
    ] {
        let mut settled = drive.clone();
        settled.row(RowInput::Resolve { step: key("steps.0"), verdict }).unwrap();
        canceled(&settled);
    }
}

#[test]
fn in_attention_cancel_waits_only_for_an_unexplained_effect() {
    let mut drive = begun(EffectClass::Ambiguous);
    drive.answer(unknown());
    drive.claim();
    drive.advance();
    let answer = ReconcileAnswer::Unknown { why: "forgotten".to_owned() };
    drive.give(Input::Reconciled { step: key("steps.0"), answer }).unwrap();
    cancel(&mut drive);
    assert_eq!(drive.state(), RunState::NeedsAttention);
    assert!(drive.run().cancel.is_some());

    let mut drive = begun(EffectClass::Idempotent);
    let error = Failure::new(Code::OUTPUT_INVALID, "odd");
    drive.answer(Answer::OutputRefused { error, evidence: "odd".to_owned() });
    cancel(&mut drive);
    canceled(&drive);
}

/// Covers behaviour 107.
#[test]
fn recovery_finalises_a_cancel_whose_worker_is_gone() {
    let mut drive = begun(EffectClass::Idempotent);
    assert!(matches!(drive.row(RowInput::LeaseGone), Err(Rejection::NotDue { .. })));
    drive.pass(LEASE);
    assert!(matches!(drive.row(RowInput::LeaseGone), Err(Rejection::WrongState { .. })));
    cancel(&mut drive);
    let lease = drive.lease();
    let claim = drive.row(RowInput::Claim { lease });
    assert!(matches!(claim, Err(Rejection::WrongState { .. })), "nobody executes it");
    let generation = drive.run().generation;
    drive.row(RowInput::LeaseGone).unwrap();
    canceled(&drive);
    assert_eq!(drive.run().generation, generation + 1);
}

#[test]
fn recovery_queues_a_canceled_run_with_an_open_mark_to_be_explained() {
    let mut drive = begun(EffectClass::Ambiguous);
    drive.prepared();
    cancel(&mut drive);
    drive.pass(LEASE);
    drive.row(RowInput::LeaseGone).unwrap();
    assert!(matches!(drive.run().phase, Phase::Queued { todo: Todo::Reconcile(_), .. }));
    assert!(drive.run().cancel.is_some());
    drive.claim();
    drive.advance();
    assert!(matches!(drive.command, Some(Command::Reconcile(_))));
}

/// Covers behaviour 109.
#[test]
fn an_ended_run_and_a_second_request_change_nothing() {
    let mut drive = begun(EffectClass::Idempotent);
    cancel(&mut drive);
    cancel(&mut drive);
    assert_eq!(drive.facts, []);
    let mut drive = begun(EffectClass::Pure);
    drive.answer(failed(false));
    cancel(&mut drive);
    assert_eq!((drive.state(), drive.facts.len()), (RunState::Failed, 0));
    drive.pass(Micros::from_secs(1));
    drive.row(RowInput::Retry).unwrap();
    assert_eq!(drive.run().cancel, None);
}
