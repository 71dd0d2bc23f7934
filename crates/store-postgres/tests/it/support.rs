//! A store in a database of its own, and runs to work with.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use surefoot_testkit::ClaimRows as _;

use serde_json::{Value, json};
use surefoot_kernel_core::{
    App, ClaimRequest, Commit, Committed, CreateDryRun, Event, Fact, LoadRequest, Micros, Mode,
    Plans, Run, RunId, RunStore, SaidBy, Scope, SessionId, StoreError, Stored, VersionId,
};
use surefoot_store_postgres::{PostgresOptions, PostgresStore};

use crate::database::Database;

pub(crate) const LEASE: Micros = Micros::from_secs(120);

/// One database and a handle on it.
pub(crate) struct World {
    pub(crate) store: PostgresStore,
    pub(crate) offset: Arc<AtomicI64>,
    pub(crate) database: Database,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|options| options).await
    }

    pub(crate) async fn with(change: impl FnOnce(PostgresOptions) -> PostgresOptions) -> Self {
        let database = Database::new().await;
        let offset = Arc::new(AtomicI64::new(0));
        let options = change(database.options().clock_offset(offset.clone()));
        let store = PostgresStore::open_with(options).await.unwrap();
        Self { store, offset, database }
    }

    /// A second handle, as another process would have it.
    pub(crate) async fn other(&self) -> PostgresStore {
        let options = self.database.options().clock_offset(self.offset.clone());
        PostgresStore::open_with(options).await.unwrap()
    }

    pub(crate) fn pass(&self, span: Micros) {
        self.offset.fetch_add(span.get(), Ordering::SeqCst);
    }

    /// New runs, claimed.
    pub(crate) async fn claimed(&self, count: u32) -> Vec<Run> {
        for _ in 0..count {
            self.store.dry_run_create(create()).await.unwrap();
        }
        let runs = self.store.claim_rows(claim(count, next())).await;
        assert_eq!(runs.len(), usize::try_from(count).unwrap());
        runs
    }
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

pub(crate) fn session() -> SessionId {
    SessionId::from_bytes([7; 16])
}

pub(crate) fn app() -> App {
    "inventory".into()
}

pub(crate) fn scope() -> Scope {
    "north".into()
}

/// A run without an event.
pub(crate) fn create() -> CreateDryRun {
    CreateDryRun {
        id: RunId::from_bytes(bytes(next())),
        app: app(),
        scope: scope(),
        workflow: "stock".into(),
        version: VersionId::from_bytes([5; 16]),
        footprint: "f1".to_owned(),
        trigger: None,
        event: Event::new("order.placed", json!({"item": "bolt"})).check().unwrap(),
    }
}

pub(crate) fn claim(limit: u32, nonce: u64) -> ClaimRequest {
    ClaimRequest {
        app: app(),
        mode: Mode::DryRun,
        footprints: vec!["f1".to_owned()],
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

pub(crate) async fn step(store: &PostgresStore, run: &Run) -> Result<Committed, StoreError> {
    store.run_commit(outcome(run, json!({"n": run.seq}))).await
}

pub(crate) async fn load(store: &PostgresStore, run: RunId) -> Stored {
    store.run_load(LoadRequest { run, after: None }).await.unwrap().unwrap()
}
