//! How runs come to a worker: whole, and a new one with its inputs, where its plan is known.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use surefoot_kernel_core::expr::{Expr, Function, Template};
use surefoot_kernel_core::plan::{Plan, TriggerPlan};
use surefoot_kernel_core::{
    CLAIM_MAX_BYTES, ClaimRequest, Eager, Emit, Event, EventStore as _, Fact, LoadRequest, Plans,
    RunId, RunState, RunStore as _, Stored, Timestamp,
};

use super::StoreFactory;
use super::world::{LEASE, World, succeeded};
use crate::plans::{idempotent, plan, pure, triggered};

const LOW: &str = "stock.low";

/// Publishes it under the key `flow`, for a worker that knows it.
async fn known<F: StoreFactory>(world: &World<F>, plan: Plan) -> Plans {
    let version = world.publish("flow", plan.clone()).await.version;
    Plans::default().with(version, Arc::new(plan))
}

async fn claim<F: StoreFactory>(world: &World<F>, plans: &Plans) -> Vec<Stored> {
    let request = ClaimRequest { plans: plans.clone(), ..world.claim_request(100).await };
    world.store.run_claim(request).await.unwrap()
}

async fn load<F: StoreFactory>(world: &World<F>, run: RunId) -> Stored {
    world.store.run_load(LoadRequest { run, after: None }).await.unwrap().unwrap()
}

/// As one that was read at that moment.
fn at(now: Timestamp, stored: Stored) -> Stored {
    Stored { now, ..stored }
}

fn inputs(stored: &Stored) -> Option<Value> {
    let journal = stored.journal.as_ref().unwrap();
    match &journal.first()?.facts[..] {
        [Fact::InputsComputed { inputs }] => Some(inputs.clone()),
        _ => None,
    }
}

/// A claim brings what reading would: of a new run, and of one with a journal.
pub async fn a_claim_brings_runs_as_reading_does<F: StoreFactory>(world: &World<F>) {
    let mut drive = world.running(plan(vec![idempotent("a"), idempotent("b")])).await;
    world.answer(&mut drive, succeeded(json!(1))).await;
    let new = world.start("flow").await;
    world.pass_secs(121).await;
    let mut claimed = claim(world, &Plans::default()).await;
    claimed.sort_unstable_by_key(|stored| stored.run.id != new);
    let [first, second] = &claimed[..] else { unreachable!("{claimed:?}") };
    assert_eq!((first.run.id, second.run.id), (new, drive.run().id));
    for stored in claimed {
        assert_eq!(stored, at(stored.now, load(world, stored.run.id).await));
    }
}

/// A repeat of a claim brings the same, inputs and all.
pub async fn a_new_run_has_its_inputs_with_its_claim<F: StoreFactory>(world: &World<F>) {
    let plans = known(world, plan(vec![idempotent("a")])).await;
    let run = world.start("flow").await;
    let request = ClaimRequest { plans, ..world.claim_request(1).await };
    let claimed = world.store.run_claim(request.clone()).await.unwrap().remove(0);
    let seq = u64::from(F::READS_PAYLOADS);
    assert_eq!((claimed.run.seq, claimed.run.revision, claimed.run.attempt), (seq, 1, 1));
    assert_eq!(inputs(&claimed), F::READS_PAYLOADS.then(|| json!({})));
    assert_eq!(claimed, at(claimed.now, load(world, run).await));
    let again = world.other.run_claim(request).await.unwrap().remove(0);
    assert_eq!(at(claimed.now, again), claimed);
    let mut drive = world.drive(run).await;
    let ended = drive.to_end(&world.store, |_| crate::Reply::Answer(succeeded(json!(1))));
    assert_eq!(ended.await.unwrap().state(), RunState::Succeeded);
}

/// Its inputs are what its first worker has recorded, if that came so far.
pub async fn a_run_whose_worker_died_at_once_gets_no_second_inputs<F: StoreFactory>(
    world: &World<F>,
) {
    let plans = known(world, plan(vec![idempotent("a")])).await;
    let with = world.start("flow").await;
    claim(world, &plans).await;
    let without = world.start("flow").await;
    claim(world, &Plans::default()).await;
    world.pass_secs(121).await;
    let again = claim(world, &plans).await;
    assert_eq!(again.len(), 2);
    for stored in again {
        let expected = u64::from(stored.run.id == with && F::READS_PAYLOADS);
        assert!(stored.run.id == with || stored.run.id == without);
        assert_eq!((stored.run.seq, stored.run.generation), (expected, 2), "{:?}", stored.run);
        assert_eq!(stored, at(stored.now, load(world, stored.run.id).await));
    }
}

/// Inputs that are wrong are the worker's to refuse: they hold up no claim.
pub async fn a_run_with_wrong_inputs_is_claimed_without_them<F: StoreFactory>(world: &World<F>) {
    let plans = known(world, plan(vec![pure("a")])).await;
    let wrong = world.emit(Event::start("flow", json!({ "undeclared": 1 }))).await.runs[0];
    let right = world.start("flow").await;
    let claimed = claim(world, &plans).await;
    assert_eq!(claimed.len(), 2);
    for stored in claimed {
        let expected = u64::from(stored.run.id == right && F::READS_PAYLOADS);
        assert_eq!(stored.run.seq, expected, "{wrong}");
    }
}

/// What has much behind it is read by whoever drives it: a claim is of many.
pub async fn a_claim_brings_no_large_payload<F: StoreFactory>(world: &World<F>) {
    let plans = known(world, triggered(plan(vec![pure("a")]), "low", LOW)).await;
    let large = "x".repeat(usize::try_from(CLAIM_MAX_BYTES).unwrap());
    let run = world.emit(Event::new(LOW, json!({ "item": large }))).await.runs[0];
    let claimed = claim(world, &plans).await.remove(0);
    assert_eq!((claimed.run.id, claimed.run.seq), (run, 0));
    assert_eq!((claimed.invocation, claimed.journal), (None, Ok(Vec::new())));
    let whole = load(world, run).await;
    assert_eq!(claimed.run, whole.run);
    assert_eq!(whole.invocation.unwrap().trigger["item"], json!(large));
}

async fn started<F: StoreFactory>(world: &World<F>, event: Event, plan: Plan) -> Stored {
    let plans = known(world, plan.clone()).await;
    let footprints = vec![plan.footprint.hash()];
    let eager = Eager { session: world.session, footprints, slots: 1, lease: LEASE, plans };
    let emit = Emit { eager: Some(eager), ..world.emission(event) };
    let mut emission = world.store.event_emit(emit).await.unwrap();
    let stored = emission.started.remove(0);
    assert_eq!(stored, at(stored.now, load(world, stored.run.id).await));
    stored
}

/// Event, run, claim and inputs are one commit.
pub async fn an_eager_start_has_its_inputs<F: StoreFactory>(world: &World<F>) {
    let flow = triggered(plan(vec![idempotent("a")]), "low", LOW);
    let stored = started(world, Event::new(LOW, json!({ "item": "bolt" })), flow).await;
    let seq = u64::from(F::READS_PAYLOADS);
    assert_eq!((stored.run.seq, stored.run.revision, stored.run.attempt), (seq, 1, 1));
    assert_eq!(inputs(&stored), F::READS_PAYLOADS.then(|| json!({})));
    let mut drive = world.drive(stored.run.id).await;
    let ended = drive.to_end(&world.store, |_| crate::Reply::Answer(succeeded(json!(1))));
    assert_eq!(ended.await.unwrap().state(), RunState::Succeeded);
}

/// Of an event that occurs when it is recorded nobody knows the time before.
pub async fn inputs_never_have_a_time_that_is_not_the_events<F: StoreFactory>(world: &World<F>) {
    let now = Template::Expr(Expr::Call(Function::Now, Vec::new()));
    let with = BTreeMap::from([("at".to_owned(), now)]);
    let mut flow = plan(vec![idempotent("a")]);
    let input = json!({ "type": "text", "required": true });
    flow.inputs.insert("at".to_owned(), serde_json::from_value(input).unwrap());
    let low = TriggerPlan { event: LOW.to_owned(), with, schedule: None };
    flow.triggers.insert("low".to_owned(), low);
    let flow = triggered(flow, "high", "stock.high");
    let dated = Event::new(LOW, json!({})).occurred_at(Timestamp::from_micros(5_000_000));
    for (event, occurs_when_recorded) in [(dated, false), (Event::new(LOW, json!({})), true)] {
        let stored = started(world, event, flow.clone()).await;
        let time = json!(stored.run.origin.occurred_at.to_string());
        match inputs(&stored) {
            Some(inputs) => assert_eq!(inputs, json!({ "at": time })),
            None => assert!(occurs_when_recorded || !F::READS_PAYLOADS, "{stored:?}"),
        }
    }
}
