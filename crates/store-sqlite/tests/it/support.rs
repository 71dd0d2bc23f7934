//! A store on a temporary file, a published workflow, and runs to work with.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use surefoot_testkit::ClaimRows as _;

use serde_json::{Value, json};
use surefoot_kernel_core::plan::{Footprint, Hashes, ModuleRef, Plan, PlanLimits, TriggerPlan};
use surefoot_kernel_core::{
    App, ClaimRequest, Commit, Committed, Emission, Emit, Event, EventId, EventStore, Fact, Micros,
    Mode, PlanStore, Plans, Publish, Run, RunId, RunStore, SaidBy, Scope, SessionId, StoreError,
    VersionId,
};
use surefoot_store_sqlite::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

pub(crate) const LEASE: Micros = Micros::from_secs(120);

/// One file and a handle on it.
pub(crate) struct World {
    pub(crate) store: SqliteStore,
    pub(crate) offset: Arc<AtomicI64>,
    pub(crate) folder: TempDir,
}

impl World {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let offset = Arc::new(AtomicI64::new(0));
        let store = open(&folder, &offset).await;
        Self { store, offset, folder }
    }

    /// With a workflow that starts on `order.placed`.
    pub(crate) async fn published() -> Self {
        let world = Self::new().await;
        world.store.version_publish(publish("stock")).await.unwrap();
        world
    }

    /// A second handle, as another process would have it.
    pub(crate) async fn other(&self) -> SqliteStore {
        open(&self.folder, &self.offset).await
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("store.db")
    }

    pub(crate) fn pass(&self, span: Micros) {
        self.offset.fetch_add(span.get(), Ordering::SeqCst);
    }

    pub(crate) async fn emit(&self, event: Event) -> Emission {
        self.store.event_emit(emit(event)).await.unwrap()
    }

    /// New runs, claimed.
    pub(crate) async fn claimed(&self, count: u32) -> Vec<Run> {
        for _ in 0..count {
            self.emit(order()).await;
        }
        let runs = self.store.claim_rows(claim(count, next())).await;
        assert_eq!(runs.len(), usize::try_from(count).unwrap());
        runs
    }
}

pub(crate) async fn open(folder: &TempDir, offset: &Arc<AtomicI64>) -> SqliteStore {
    let options = SqliteOptions::new(folder.path().join("store.db")).clock_offset(offset.clone());
    SqliteStore::open_with(options).await.unwrap()
}

/// A number that no other call in this process gets.
pub(crate) fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::SeqCst)
}

fn bytes(number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&std::process::id().to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    bytes
}

pub(crate) fn event_id() -> EventId {
    EventId::from_bytes(bytes(next()))
}

pub(crate) fn session() -> SessionId {
    SessionId::from_bytes([7; 16])
}

pub(crate) fn app() -> App {
    "inventory".into()
}

pub(crate) fn scope() -> Scope {
    "north".into()
}

pub(crate) fn footprint() -> Footprint {
    let uses = BTreeMap::from([("action/load".to_owned(), "h1".to_owned())]);
    Footprint { module: "inventory".to_owned(), uses }
}

pub(crate) fn plan() -> Plan {
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
        version: VersionId::from_bytes(bytes(next())),
        plan: plan(),
        source: "steps: []".to_owned(),
        budget: Default::default(),
        activate: true,
        authorization: None,
        author: "mia".to_owned(),
    }
}

pub(crate) fn order() -> Event {
    Event::new("order.placed", json!({"item": "bolt", "count": 3}))
}

pub(crate) fn emit(event: Event) -> Emit {
    Emit { app: app(), scope: scope(), id: event_id(), event: event.check().unwrap(), eager: None }
}

pub(crate) fn claim(limit: u32, nonce: u64) -> ClaimRequest {
    ClaimRequest {
        app: app(),
        mode: Mode::Execute,
        footprints: vec![footprint().hash()],
        tree: None,
        limit,
        session: session(),
        nonce,
        lease: LEASE,
        plans: Plans::default(),
    }
}

/// The next outcome of a run.
pub(crate) fn outcome(run: &Run, output: Value) -> Commit {
    let step = format!("steps.{}", run.seq).into();
    Commit::new(run, &[Fact::StepCompleted { step, output, by: SaidBy::Action }])
}

pub(crate) async fn step(store: &SqliteStore, run: &Run) -> Result<Committed, StoreError> {
    store.run_commit(outcome(run, json!({"n": run.seq}))).await
}

pub(crate) async fn load(store: &SqliteStore, run: RunId) -> surefoot_kernel_core::Stored {
    let request = surefoot_kernel_core::LoadRequest { run, after: None };
    store.run_load(request).await.unwrap().unwrap()
}
