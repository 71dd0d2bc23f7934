//! The mark of the next call, decided before the outcome ahead of it is durable.

use serde_json::json;
use surefoot_kernel_core::plan::{Step, StepKind};
use surefoot_kernel_core::*;

use crate::drive::{Drive, action, failed, key, plan, saved, unknown};

/// An action of a class, whose config is what was saved as `paid`.
fn on_paid(class: EffectClass) -> Step {
    let mut step = action(class);
    if let StepKind::Action { config, .. } = &mut step.kind {
        *config = expr::Template::Expr(expr::Expr::Name("paid".to_owned()));
    }
    step
}

/// A run whose first action was called, and what comes behind it.
fn called(first: EffectClass, then: Step) -> Drive {
    let mut drive = Drive::begun(plan(vec![saved(action(first), "paid"), then]));
    if matches!(drive.command, Some(Command::Prepare(_))) {
        drive.prepared();
    }
    drive
}

fn answered(answer: Answer) -> Input {
    Input::Answer { step: key("steps.0"), answer }
}

fn paid() -> Input {
    answered(Answer::Succeeded { output: json!({ "cents": 5 }) })
}

/// A decision, and the run as it leaves it.
fn decided(drive: &Drive, input: Input) -> (Decision, Held) {
    let decision = decide(&drive.held, &drive.plan, input, drive.now).unwrap();
    let held = drive.held.clone().apply(&drive.plan, &decision.facts).unwrap();
    (decision, held)
}

fn mark_behind(drive: &Drive, input: Input) -> Option<Decision> {
    let (decision, held) = decided(drive, input);
    decision.next_mark(&held, &drive.plan, drive.now, |_| true)
}

/// Covers behaviour 130.
#[test]
fn an_outcome_and_the_next_mark_say_in_one_commit_what_they_say_in_two() {
    for first in [EffectClass::Ambiguous, EffectClass::Idempotent] {
        let drive = called(first, on_paid(EffectClass::Ambiguous));
        let (outcome, held) = decided(&drive, paid());
        let mut asked = None;
        let mark = outcome.next_mark(&held, &drive.plan, drive.now, |call| {
            asked = Some(call.clone());
            true
        });
        let mark = mark.unwrap();
        assert_eq!(mark.durability, Durability::Before);

        let mut slow = drive.clone();
        slow.give(paid()).unwrap();
        let durable = Receipt::attest(slow.run());
        slow.advance();
        slow.prepared();
        assert_eq!((&mark.facts, mark.durability), (&slow.facts, slow.durability));
        let early = mark.command.clone().open(&durable);
        assert!(matches!(early, Err(Unopened::NotDurable { .. })), "{early:?}");
        let opened = mark.command.open(&Receipt::attest(slow.run())).unwrap();
        assert_eq!(opened, slow.command);
        assert_eq!(opened, asked.map(Command::Call));
        let Some(Command::Call(call)) = opened else { panic!("{opened:?}") };
        assert_eq!(call.config, json!({ "cents": 5 }));
    }
}

#[test]
fn the_first_mark_needs_no_preparation_either() {
    let mut drive = Drive::new(plan(vec![action(EffectClass::Ambiguous)]));
    drive.claim();
    drive.give(Input::Advance).unwrap();
    let mark = mark_behind(&drive, Input::Advance).unwrap();
    assert!(matches!(mark.facts[..], [Fact::CallMarked { .. }]), "{mark:?}");
    let pending = mark.command.clone().open(&Receipt::attest(drive.run()));
    assert!(matches!(pending, Err(Unopened::NotDurable { .. })));
}

#[test]
fn a_call_that_needs_something_is_prepared_behind_its_outcome() {
    let drive = called(EffectClass::Ambiguous, action(EffectClass::Ambiguous));
    let (outcome, held) = decided(&drive, paid());
    assert_eq!(outcome.next_mark(&held, &drive.plan, drive.now, |_| false), None);
}

#[test]
fn only_an_ambiguous_call_has_a_mark_to_take_along() {
    for then in [EffectClass::Pure, EffectClass::Transactional, EffectClass::Idempotent] {
        let drive = called(EffectClass::Ambiguous, action(then));
        assert_eq!(mark_behind(&drive, paid()), None, "{then}");
    }
    let nobody = expr::Template::Expr(expr::Expr::Name("nobody".to_owned()));
    let mut broken = action(EffectClass::Ambiguous);
    if let StepKind::Action { config, .. } = &mut broken.kind {
        *config = nobody;
    }
    let drive = called(EffectClass::Ambiguous, broken);
    assert_eq!(mark_behind(&drive, paid()), None, "its config has no value");
    let mut last = Drive::begun(plan(vec![action(EffectClass::Ambiguous)]));
    last.prepared();
    assert_eq!(mark_behind(&last, paid()), None, "the run ends");
}

#[test]
fn a_run_that_stops_takes_no_mark_along() {
    let drive = called(EffectClass::Ambiguous, action(EffectClass::Ambiguous));
    let waits = Answer::Waiting { on: Dependency::on("approval", "7") };
    for answer in [failed(true), failed(false), waits, Answer::NotCalled, unknown()] {
        assert_eq!(mark_behind(&drive, answered(answer.clone())), None, "{answer:?}");
    }
    let mut canceled = drive;
    let (actor, reason) = ("ann".to_owned(), "enough".to_owned());
    canceled.row(RowInput::Cancel { actor, reason }).unwrap();
    assert_eq!(mark_behind(&canceled, paid()), None);
}

#[test]
fn while_an_effect_is_unexplained_no_other_is_marked() {
    let mut drive = called(EffectClass::Ambiguous, action(EffectClass::Ambiguous));
    drive.crash();
    assert_eq!(mark_behind(&drive, Input::Advance), None);
    let answer = ReconcileAnswer::Succeeded { output: json!({ "cents": 5 }) };
    let mark = mark_behind(&drive, Input::Reconciled { step: key("steps.0"), answer });
    assert!(mark.is_some(), "the provider has explained it");
}

/// The outcome ahead takes room that is not counted before it is written.
#[test]
fn no_mark_goes_along_where_the_journal_may_be_full_behind_the_outcome() {
    let room = |outputs: usize| (RESOLVED_STEP_MAX_BYTES + outputs * OUTPUT_MAX_BYTES) as u64;
    for (free, goes_along) in [(room(2), false), (room(3), true)] {
        let mut drive = called(EffectClass::Idempotent, on_paid(EffectClass::Ambiguous));
        drive.held.run.journal_bytes = JOURNAL_MAX_BYTES - free;
        assert_eq!(mark_behind(&drive, paid()).is_some(), goes_along);
    }
}
