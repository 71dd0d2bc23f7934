//! What a step charges, and when.

use crate::drive::{Drive, action, failed, key, plan, unknown};
use serde_json::json;
use surefoot_kernel_core::{
    Amount, Amounts, Answer, Code, Command, Commit, Dependency, EffectClass, Exceeded, Fact, Input,
    Prepared, RowInput, RunState, SaidBy, Verdict,
};

fn cost(number: f64) -> Amounts {
    Amounts::of([("payments", number)]).unwrap()
}

fn paying(class: EffectClass) -> Drive {
    let mut drive = Drive::begun(plan(vec![action(class)]));
    drive.cost = cost(1.0);
    drive
}

fn charges(drive: &Drive) -> usize {
    drive.facts.iter().filter(|fact| matches!(fact, Fact::Charged(_))).count()
}

/// Charge and mark are one commit, and the call opens behind it.
#[test]
fn an_ambiguous_step_is_charged_with_its_mark() {
    let mut drive = paying(EffectClass::Ambiguous);
    drive.prepared();
    assert!(
        matches!(&drive.facts[..], [Fact::Charged(charge), Fact::CallMarked { .. }] if charge.amounts == cost(1.0)),
        "{:?}",
        drive.facts
    );
    assert!(matches!(drive.command, Some(Command::Call(_))));
    let commit = Commit::new(&drive.held.run, &drive.facts);
    assert_eq!(commit.charge, Some(cost(1.0)));
}

/// Covers behaviour 155.
#[test]
fn a_step_pays_once_over_retries_waits_and_verdicts() {
    for class in [EffectClass::Idempotent, EffectClass::Ambiguous] {
        let mut drive = paying(class);
        drive.prepared();
        assert_eq!(charges(&drive), 1);
        drive.answer(failed(true));
        drive.claim();
        drive.advance();
        drive.prepared();
        assert_eq!(charges(&drive), 0, "{class}: a retry");
        drive.answer(Answer::Waiting { on: Dependency::on("approval", "1") });
        assert_eq!(drive.state(), RunState::Waiting);
        let wake = surefoot_kernel_core::Wake::Signal(json!(1));
        drive.row(RowInput::Wake { wake, at_once: false }).unwrap();
        drive.claim();
        drive.advance();
        drive.prepared();
        assert_eq!(charges(&drive), 0, "{class}: a wait");
        drive.answer(failed(false));
        assert_eq!(drive.state(), RunState::Failed);
        drive.row(RowInput::Retry).unwrap();
        drive.claim();
        drive.advance();
        drive.prepared();
        assert_eq!(charges(&drive), 0, "{class}: an operator's retry");
        drive.succeed(json!(1));
        assert_eq!(drive.run().charged, None);
    }
}

#[test]
fn what_did_not_happen_is_not_paid_again() {
    let mut drive = paying(EffectClass::Ambiguous);
    drive.prepared();
    drive.answer(unknown());
    drive.claim();
    drive.advance();
    let step = key("steps.0");
    let answer = surefoot_kernel_core::ReconcileAnswer::Unknown { why: "gone".to_owned() };
    drive.give(Input::Reconciled { step: step.clone(), answer }).unwrap();
    drive.row(RowInput::Resolve { step, verdict: Verdict::NotPerformed }).unwrap();
    drive.claim();
    drive.advance();
    drive.prepared();
    assert_eq!(charges(&drive), 0);
}

#[test]
fn what_costs_nothing_records_nothing() {
    for nothing in [Amounts::default(), cost(0.0)] {
        let mut drive = paying(EffectClass::Idempotent);
        drive.cost = nothing;
        drive.prepared();
        assert!(drive.facts.is_empty(), "{:?}", drive.facts);
    }
}

/// The charge is written in the transaction of the work, with its outcome.
#[test]
fn a_transactional_step_pays_with_its_outcome() {
    let mut drive = paying(EffectClass::Transactional);
    let (step, output) = (key("steps.0"), json!("booked"));
    drive.give(Input::Worked { step: step.clone(), cost: cost(1.0), output }).unwrap();
    assert!(
        matches!(
            &drive.facts[..],
            [Fact::Charged(_), Fact::StepCompleted { by: SaidBy::Action, .. }, Fact::Ended { .. }]
        ),
        "{:?}",
        drive.facts
    );
    assert!(
        paying(EffectClass::Idempotent)
            .give(Input::Worked { step, cost: cost(1.0), output: json!(1) })
            .is_err()
    );
}

/// Covers behaviours 151, 156.
#[test]
fn a_refused_charge_fails_the_step_before_its_effect() {
    let amount = |number| Amount::new(number).unwrap();
    let exceeded = Exceeded {
        dimension: "payments".to_owned(),
        limit: amount(3.0),
        used: amount(3.0),
        requested: amount(1.0),
    };
    for class in [EffectClass::Idempotent, EffectClass::Ambiguous, EffectClass::Transactional] {
        let mut drive = paying(class);
        let step = key("steps.0");
        let asked = match class {
            EffectClass::Transactional => Input::Worked { step, cost: cost(1.0), output: json!(1) },
            EffectClass::Pure | EffectClass::Idempotent | EffectClass::Ambiguous => {
                Input::Prepared { step, result: Prepared::Ready { cost: cost(1.0) } }
            }
        };
        drive.give(asked.over_budget(&exceeded).unwrap()).unwrap();
        assert_eq!(drive.state(), RunState::Failed, "{class}");
        let failure = drive.failure();
        assert_eq!((&failure.code, &failure.step), (&Code::BUDGET_EXCEEDED, &Some(key("steps.0"))));
        assert_eq!(failure.details.as_ref().unwrap()["limit"], 3);
        assert_eq!(drive.run().charged, None);
    }
    assert_eq!(Input::Advance.over_budget(&exceeded), None);
}
