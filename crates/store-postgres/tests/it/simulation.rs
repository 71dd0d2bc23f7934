//! The fleet under a bad sky, on a real server: its time is paused, and the server's calls are made aside.

use std::sync::OnceLock;

use surefoot_kernel_core::{Micros, StoreError};
use surefoot_store_postgres::{PostgresStore, PostgresTx};
use surefoot_testkit::simulation::{Script, simulate};
use surefoot_testkit::suite::{StoreFactory, Tamper, Tampered};
use surefoot_testkit::{Aside, FaultPlan, FaultyStore};
use tokio::runtime::{Builder, Runtime};

use crate::suite::{NEWEST, OwnDatabase};

const WORKERS: usize = 5;

/// Where the store's connections live.
fn aside() -> Aside {
    static REAL: OnceLock<Runtime> = OnceLock::new();
    let runtime = REAL.get_or_init(|| {
        Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
    });
    Aside::new(runtime.handle())
}

struct Elsewhere(OwnDatabase<{ NEWEST }>);

impl StoreFactory for Elsewhere {
    type Store = FaultyStore<PostgresStore>;

    async fn fresh() -> Self {
        Self(aside().call(OwnDatabase::fresh()).await)
    }

    async fn open(&self) -> Self::Store {
        let store = aside().call(self.0.open()).await;
        FaultyStore::new(store, FaultPlan::aside(aside()))
    }

    async fn pass_time(&self, span: Micros) {
        self.0.pass_time(span).await;
    }

    async fn turn_back(&self, span: Micros) {
        self.0.turn_back(span).await;
    }

    async fn write_row(tx: &mut PostgresTx, key: &str, value: &str) -> Result<(), StoreError> {
        aside().call(OwnDatabase::<{ NEWEST }>::write_row(tx, key, value)).await
    }

    async fn read_row(store: &Self::Store, key: &str) -> Option<String> {
        aside().call(OwnDatabase::<{ NEWEST }>::read_row(store.inner(), key)).await
    }

    async fn tamper(&self, tamper: Tamper) -> Tampered {
        aside().call(self.0.tamper(tamper)).await
    }
}

/// Plays seeds, each in a time of its own.
fn hold(seeds: impl Iterator<Item = u64>) {
    let (mut calls, mut carried_out) = (0, 0);
    for seed in seeds {
        let script = Script::of(seed, WORKERS);
        let mut runtime = Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        let played = runtime.block_on(simulate::<Elsewhere>(&script));
        assert!(played.failures.is_empty(), "seed {seed}: {:#?}", played.failures);
        calls += played.calls;
        carried_out += played.log.len();
        println!("seed {seed}: {} calls in {} virtual ms", played.calls, played.took_ms);
    }
    assert!(calls > 0 && carried_out > 0);
}

/// Covers field faults 1, 8, 16, 20, 23, 24, 30.
#[test]
fn no_effect_is_done_twice_and_none_is_dropped() {
    hold(0..2);
}

#[test]
#[ignore = "soak"]
fn hundreds_of_seeds() {
    hold(2..200);
}
