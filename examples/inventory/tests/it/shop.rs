//! A shop of its own for each test: a store in a place of its own, with the application's tables.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde_json::Value;
use surefoot::prelude::*;
use surefoot_inventory::bank::Bank;
use surefoot_inventory::database::create_tables;
use surefoot_inventory::store::{AppStore, AppTx};
use surefoot_inventory::{APP, QUOTE, REORDER, module};

use crate::place::Place;

/// A test that waits longer has found something.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub(crate) struct Shop {
    pub(crate) store: AppStore,
    clock: Arc<AtomicI64>,
    _place: Arc<Place>,
}

pub(crate) async fn open() -> Shop {
    let place = Place::new().await;
    let clock = Arc::new(AtomicI64::new(0));
    let store = place.open(clock.clone()).await;
    create_tables(&store).await.unwrap();
    Shop { store, clock, _place: Arc::new(place) }
}

impl Shop {
    /// The store's clock goes on by this much.
    pub(crate) fn later(&self, by: Duration) {
        self.clock.fetch_add(i64::try_from(by.as_micros()).unwrap(), Ordering::SeqCst);
    }

    /// A worker whose provider is not there.
    pub(crate) async fn staff(&self) -> Staff {
        self.staff_with(Bank::at(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)))).await
    }

    /// A worker, with both workflows published.
    pub(crate) async fn staff_with(&self, bank: Bank) -> Staff {
        let kernel = Kernel::new(APP, self.store.clone());
        let module = module(self.store.clone(), bank).unwrap();
        for (key, source) in [REORDER, QUOTE] {
            let publication = Publication::new(key, source);
            kernel.scope("berlin").publish(module.manifest(), publication).await.unwrap();
        }
        let scan = Duration::from_millis(20);
        let worker = kernel.worker(module).scan_every(scan).start().await.unwrap();
        Staff { kernel, _worker: worker }
    }
}

/// A worker at work.
pub(crate) struct Staff {
    pub(crate) kernel: Kernel<AppStore>,
    _worker: Running,
}

impl Staff {
    pub(crate) async fn emit(&self, event: Event) -> RunId {
        let emission = self.kernel.scope("berlin").emit(event).await.unwrap();
        assert_eq!(emission.runs.len(), 1, "one workflow listens");
        emission.runs[0]
    }

    pub(crate) async fn stored(&self, run: RunId) -> Stored {
        let request = LoadRequest { run, after: None };
        self.kernel.store().run_load(request).await.unwrap().unwrap()
    }

    pub(crate) async fn state(&self, run: RunId) -> RunState {
        self.stored(run).await.run.state()
    }

    /// Waits until the run is in a state.
    pub(crate) async fn until(&self, run: RunId, state: RunState) {
        self.until_it(run, &format!("be {state}"), |run| run.state() == state).await;
    }

    /// Waits until somebody has claimed the run anew.
    pub(crate) async fn until_generation(&self, run: RunId, generation: u64) {
        let is_there = |run: &Run| run.generation >= generation;
        self.until_it(run, &format!("have generation {generation}"), is_there).await;
    }

    pub(crate) async fn until_it(&self, run: RunId, what: &str, is_there: impl Fn(&Run) -> bool) {
        let waiting = async {
            while !is_there(&self.stored(run).await.run) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            panic!("the run did not come to {what}: {:?}", self.stored(run).await);
        }
    }

    /// The output of a completed step.
    pub(crate) async fn output(&self, run: RunId, wanted: &StepKey) -> Value {
        let journal = self.stored(run).await.journal.unwrap();
        let output = journal.iter().flat_map(|entry| &entry.facts).find_map(|fact| match fact {
            Fact::StepCompleted { step, output, .. } if step == wanted => Some(output.clone()),
            _ => None,
        });
        output.unwrap()
    }

    pub(crate) async fn failure(&self, run: RunId) -> Failure {
        match self.stored(run).await.run.phase {
            Phase::Failed { error, .. } => error,
            other => panic!("the run has not failed: {other:?}"),
        }
    }
}

/// The worker holds the run.
pub(crate) struct Always;

/// Another worker has taken the run over.
pub(crate) struct Never;

impl Always {
    pub(crate) fn shared() -> SharedFence<AppTx> {
        Arc::new(Self)
    }
}

impl Never {
    pub(crate) fn shared() -> SharedFence<AppTx> {
        Arc::new(Self)
    }
}

impl Fence<AppTx> for Always {
    fn hold<'a>(&'a self, _: &'a mut AppTx) -> BoxFuture<'a, Result<(), FenceError>> {
        Box::pin(async { Ok(()) })
    }
}

impl Fence<AppTx> for Never {
    fn hold<'a>(&'a self, _: &'a mut AppTx) -> BoxFuture<'a, Result<(), FenceError>> {
        Box::pin(async { Err(FenceError::LeaseLost) })
    }
}
