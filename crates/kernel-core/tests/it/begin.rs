//! Claims: a new run has its inputs from its first claim on, if its plan is known there.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use surefoot_kernel_core::expr::{Expr, Function, Template};
use surefoot_kernel_core::plan::{Plan, TriggerPlan};
use surefoot_kernel_core::{
    Begun, Coming, EffectClass, Fact, Held, Invocation, Lease, Mode, Origin, Plans, Receipt, Run,
    RunId, RunState, SessionId, Timestamp, VersionId,
};

use crate::drive::{LEASE, action, plan};

const VERSION: VersionId = VersionId::from_bytes([2; 16]);
const NOW: Timestamp = Timestamp::from_micros(7_000_000);

fn run(trigger: Option<&str>) -> Run {
    let id = RunId::from_bytes([1; 16]);
    let origin = Origin {
        app: "shop".into(),
        scope: "north".into(),
        workflow: "restock".into(),
        version: VERSION,
        footprint: String::new(),
        mode: Mode::Execute,
        event: None,
        trigger: trigger.map(str::to_owned),
        occurred_at: Timestamp::from_micros(5_000_000),
        root: id,
        parent: None,
        created_at: Timestamp::default(),
    };
    Run::new(id, origin)
}

fn lease() -> Lease {
    Lease { owner: SessionId::from_bytes([9; 16]), until: NOW.plus(LEASE), length: LEASE }
}

fn started_with(data: Value) -> Invocation {
    Invocation { trigger: data, ..Invocation::default() }
}

/// A plan whose trigger `order` passes on when its event occurred.
fn timed() -> Plan {
    let now = Template::Expr(Expr::Call(Function::Now, Vec::new()));
    let with = BTreeMap::from([("at".to_owned(), now)]);
    let trigger = TriggerPlan { event: "shop.order".to_owned(), with, schedule: None };
    let mut plan = plan(vec![action(EffectClass::Idempotent)]);
    let input = json!({ "type": "text", "required": true });
    plan.inputs.insert("at".to_owned(), serde_json::from_value(input).unwrap());
    plan.triggers.insert("order".to_owned(), trigger);
    plan
}

fn begin(plan: Plan, run: &Run, invocation: &Invocation, is_dated: bool) -> Begun {
    let plans = Plans::default().with(VERSION, Arc::new(plan));
    let coming = Coming { run, invocation: Some(invocation), is_dated };
    plans.begin(coming, lease(), NOW).unwrap()
}

fn simple() -> Plan {
    plan(vec![action(EffectClass::Idempotent)])
}

#[test]
fn a_new_run_has_its_inputs_with_its_first_claim() {
    let (run, invocation) = (run(None), started_with(json!({})));
    let begun = begin(simple(), &run, &invocation, true);
    let after = &begun.commit.after;
    assert_eq!((after.state(), after.seq, after.revision), (RunState::Running, 1, 1));
    let receipt = Receipt::attest(&begun.commit.after);
    let stored = begun.stored(receipt, (Some(invocation.clone()), Vec::new()), NOW);
    let journal = stored.journal.clone().unwrap();
    assert_eq!(journal[0].facts, [Fact::InputsComputed { inputs: json!({}) }]);
    assert_eq!((journal[0].seq, journal[0].generation, journal[0].at), (0, 1, NOW));
    // It stands where it would if the worker had computed them.
    let held = Held::restore(stored.run, &simple(), invocation, &journal).unwrap();
    assert_eq!(held.cursor.invocation().inputs, json!({}));
}

#[test]
fn what_was_claimed_before_has_its_inputs_from_its_worker() {
    let invocation = started_with(json!({}));
    let first = Plans::default();
    let begun = first.begin(Coming::of(&run(None), Some(&invocation)), lease(), NOW).unwrap();
    assert_eq!(begun.commit.journal, None, "the plan is not known");
    let again = begin_later(&begun.commit.after, &invocation);
    assert_eq!((again.commit.journal, again.commit.after.failures), (None, 2));
}

/// Claimed once the lease is over.
fn begin_later(run: &Run, invocation: &Invocation) -> Begun {
    let later = NOW.plus(LEASE).plus(LEASE);
    let lease = Lease { until: later.plus(LEASE), ..lease() };
    let plans = Plans::default().with(VERSION, Arc::new(simple()));
    plans.begin(Coming::of(run, Some(invocation)), lease, later).unwrap()
}

#[test]
fn without_what_started_it_a_run_is_claimed_all_the_same() {
    let plans = Plans::default().with(VERSION, Arc::new(simple()));
    let begun = plans.begin(Coming::of(&run(None), None), lease(), NOW).unwrap();
    assert_eq!((begun.commit.journal, begun.commit.after.state()), (None, RunState::Running));
}

#[test]
fn inputs_that_are_wrong_are_for_the_worker_to_refuse() {
    let begun = begin(simple(), &run(None), &started_with(json!({ "undeclared": 1 })), true);
    assert_eq!((begun.commit.journal, begun.commit.after.state()), (None, RunState::Running));
}

#[test]
fn inputs_that_ask_for_a_time_that_is_not_known_wait() {
    let (run, invocation) = (run(Some("order")), started_with(json!({})));
    assert_eq!(begin(timed(), &run, &invocation, false).commit.journal, None);
    let facts = begin(timed(), &run, &invocation, true).commit.journal.unwrap().facts;
    assert!(facts.contains("1970-01-01T00:00:05"), "{facts}");
}
