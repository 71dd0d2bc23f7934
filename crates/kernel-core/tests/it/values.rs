//! Values of the application's resolver: recorded once, and the same for every attempt.

use serde_json::{Value, json};
use surefoot_kernel_core::{
    Command, Durability, EffectClass, Fact, Input, JournalEntry, Prepared, Rejection, StepValues,
};

use crate::drive::{Drive, action, failed, key, plan};

fn values(reference: &str, value: Value) -> StepValues {
    let mut values = StepValues::default();
    values.keep(reference, value);
    values
}

fn resolve(drive: &mut Drive, value: Value) -> Result<(), Rejection> {
    drive.give(Input::Resolved { step: key("steps.0"), values: values("price", value) })
}

#[test]
fn the_first_value_stays_over_attempts_and_crashes() {
    for class in [EffectClass::Transactional, EffectClass::Idempotent, EffectClass::Ambiguous] {
        let mut drive = Drive::begun(plan(vec![action(class)]));
        resolve(&mut drive, json!(1)).unwrap();
        assert_eq!((drive.facts.len(), drive.durability), (1, Durability::Lazy), "{class}");
        drive.crash();
        drive.advance();
        resolve(&mut drive, json!(2)).unwrap();
        assert_eq!(drive.facts, [], "{class}");
        assert_eq!(drive.held.cursor.values().get("price"), Some(&json!(1)), "{class}");
    }
}

#[test]
fn an_outcome_forgets_the_values_of_its_step_and_a_failure_for_now_does_not() {
    let call = || action(EffectClass::Idempotent);
    let mut drive = Drive::begun(plan(vec![call(), call()]));
    resolve(&mut drive, json!(1)).unwrap();
    drive.advance();
    drive.answer(failed(true));
    drive.claim();
    drive.advance();
    assert_eq!(drive.held.cursor.values().get("price"), Some(&json!(1)));
    drive.succeed(json!("sent"));
    drive.advance();
    assert!(drive.held.cursor.values().is_empty());
    let step = key("steps.1");
    drive.give(Input::Resolved { step, values: values("price", json!(2)) }).unwrap();
    assert_eq!(drive.held.cursor.values().get("price"), Some(&json!(2)));
}

#[test]
fn values_are_durable_before_the_call_of_their_step() {
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Ambiguous)]));
    resolve(&mut drive, json!(1)).unwrap();
    let seq = drive.run().seq;
    let result = Prepared::Ready { cost: Default::default() };
    drive.give(Input::Prepared { step: key("steps.0"), result }).unwrap();
    assert!(matches!(drive.command, Some(Command::Call(_))));
    assert_eq!((drive.durability, drive.run().seq), (Durability::Before, seq + 1));
    // While the call goes on, with its mark open.
    drive.give(Input::Resolved { step: key("steps.0"), values: values("key", json!(2)) }).unwrap();
    assert!(drive.run().has_unsettled_effect());
    assert_eq!(drive.held.cursor.values().get("key"), Some(&json!(2)));
}

#[test]
fn only_the_open_step_resolves_and_never_a_pure_one() {
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Pure)]));
    assert!(matches!(resolve(&mut drive, json!(1)), Err(Rejection::WrongState { .. })));
    let mut drive = Drive::begun(plan(vec![action(EffectClass::Idempotent)]));
    let late = Input::Resolved { step: key("steps.7"), values: values("price", json!(1)) };
    assert!(matches!(drive.give(late), Err(Rejection::WrongStep { .. })));
}

#[test]
fn the_stored_form_stays_readable() {
    let stored = r#"{"values_resolved":{"step":"steps.0","values":{"price":{"eur":12}}}}"#;
    let fact: Fact = serde_json::from_str(stored).unwrap();
    let values = values("price", json!({ "eur": 12 }));
    assert_eq!(fact, Fact::ValuesResolved { step: key("steps.0"), values });
    assert_eq!(serde_json::to_string(&fact).unwrap(), stored);
}

/// What is admitted can be read back from the journal, however deep it is.
#[test]
fn the_deepest_value_that_is_admitted_is_read_back() {
    let nested = |levels: usize| (0..levels).fold(json!(7), |inner, _| json!([inner]));
    let admitted = (1..200)
        .take_while(|levels| StepValues::default().admit("price", &nested(*levels)).is_ok());
    let deepest = nested(admitted.last().unwrap());
    let fact = Fact::ValuesResolved { step: key("steps.0"), values: values("price", deepest) };
    let text = serde_json::to_string(&[&fact]).unwrap();
    let entry = JournalEntry::read(0, 1, Default::default(), &text).unwrap();
    assert_eq!(entry.facts, [fact]);
}
