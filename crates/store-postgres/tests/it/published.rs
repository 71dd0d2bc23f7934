//! A published workflow that starts on `order.placed`, and events for it.

use std::collections::BTreeMap;
use surefoot_testkit::ClaimRows as _;

use serde_json::{Value, json};
use surefoot_kernel_core::plan::{Footprint, Hashes, ModuleRef, Plan, PlanLimits, TriggerPlan};
use surefoot_kernel_core::{
    ClaimRequest, Commit, Emission, Emit, Event, EventId, EventStore, Fact, Mode, PlanStore,
    Publish, Run, RunStore, SaidBy, VersionId,
};

use crate::support::{World, app, claim as claim_dry, next, scope};

pub(crate) async fn published() -> World {
    let world = World::new().await;
    world.store.version_publish(publish("stock")).await.unwrap();
    world
}

/// New runs of events, claimed.
pub(crate) async fn started(world: &World, count: u32) -> Vec<Run> {
    for _ in 0..count {
        record(world, order()).await;
    }
    let runs = world.store.claim_rows(claim(count)).await;
    assert_eq!(runs.len(), usize::try_from(count).unwrap());
    runs
}

pub(crate) async fn record(world: &World, event: Event) -> Emission {
    world.store.event_emit(emit(event)).await.unwrap()
}

fn bytes() -> [u8; 16] {
    let mut bytes = [1; 16];
    bytes[..4].copy_from_slice(&std::process::id().to_be_bytes());
    bytes[8..].copy_from_slice(&next().to_be_bytes());
    bytes
}

pub(crate) fn order() -> Event {
    Event::new("order.placed", json!({"item": "bolt", "count": 3}))
}

pub(crate) fn emit(event: Event) -> Emit {
    let id = EventId::from_bytes(bytes());
    Emit { app: app(), scope: scope(), id, event: event.check().unwrap(), eager: None }
}

/// Runs of events, by a worker that has the footprint.
pub(crate) fn claim(limit: u32) -> ClaimRequest {
    let footprints = vec![footprint().hash()];
    ClaimRequest { mode: Mode::Execute, footprints, ..claim_dry(limit, next()) }
}

pub(crate) fn footprint() -> Footprint {
    let uses = BTreeMap::from([("action/load".to_owned(), "h1".to_owned())]);
    Footprint { module: "inventory".to_owned(), uses }
}

fn plan() -> Plan {
    let hash = "0".repeat(64);
    let order =
        TriggerPlan { event: "order.placed".to_owned(), with: BTreeMap::new(), schedule: None };
    Plan {
        schema: surefoot_kernel_core::plan::PLAN_SCHEMA,
        language: surefoot_kernel_core::plan::LANGUAGE_VERSION,
        module: ModuleRef { id: "inventory".to_owned(), version: 1 },
        hashes: Hashes { source: hash.clone(), manifest: hash.clone(), catalog: hash },
        footprint: footprint(),
        policies: BTreeMap::new(),
        inputs: BTreeMap::new(),
        triggers: BTreeMap::from([("order".to_owned(), order)]),
        steps: Vec::new(),
        bindings: BTreeMap::new(),
        limits: PlanLimits { loop_items: 1_000 },
    }
}

pub(crate) fn publish(workflow: &str) -> Publish {
    Publish {
        app: app(),
        scope: scope(),
        workflow: workflow.into(),
        version: VersionId::from_bytes(bytes()),
        plan: plan(),
        source: "steps: []".to_owned(),
        budget: Default::default(),
        activate: true,
        authorization: None,
        author: "mia".to_owned(),
    }
}

/// The outcome of a step, and the end of its run.
pub(crate) async fn end(world: &World, run: &Run, output: Value) {
    let step = "steps.0".into();
    let ended = Fact::Ended {
        end: surefoot_kernel_core::End::Succeeded {
            result: output.clone(),
            message: None,
            step: None,
        },
        at: world.store.store_now().await.unwrap(),
    };
    let facts = [Fact::StepCompleted { step, output, by: SaidBy::Action }, ended];
    world.store.run_commit(Commit::new(run, &facts)).await.unwrap();
}
