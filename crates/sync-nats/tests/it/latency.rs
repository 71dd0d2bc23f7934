//! How soon a run starts in another process: at once over the bus, within the scan without it.

use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::Event;
use surefoot_language::Module;
use surefoot_sync_nats::Nats;
use surefoot_testkit::MemoryStore;
use surefoot_testkit::servers::Nats as Servers;
use surefoot_worker::{Kernel, Running};

use crate::namespace;
use crate::triggers::{APP, publish};

/// Far longer than a bus takes, and far shorter than the scan of the worker that only hears.
const AT_ONCE: Duration = Duration::from_secs(15);
/// As long as a scan may be.
const DEAF: Duration = Duration::from_secs(60);
const PATIENT: Duration = Duration::from_secs(120);

/// A worker of another process, which scans so often.
async fn worker(store: &MemoryStore, bus: &Nats, scan: Duration) -> Running {
    let module: Module = Module::builder("testkit", 1).build().unwrap();
    let kernel = Kernel::builder(APP, store.clone()).build();
    let worker = kernel.worker(module).scan_every(scan).wake_bus(bus.wake_bus());
    worker.start().await.unwrap()
}

/// Whether a run that is started here ends within a time.
async fn runs_within(kernel: &Kernel<MemoryStore>, limit: Duration) -> bool {
    let emission = kernel.scope("berlin").emit(Event::start("report", json!({}))).await.unwrap();
    tokio::time::timeout(limit, kernel.await_run(emission.runs[0])).await.is_ok()
}

/// The first ones may come before anybody listens.
async fn hears(kernel: &Kernel<MemoryStore>) {
    for _ in 0..20 {
        if runs_within(kernel, Duration::from_secs(5)).await {
            break;
        }
    }
    for _ in 0..3 {
        assert!(runs_within(kernel, AT_ONCE).await, "it was not told");
    }
}

/// Covers field faults 30, 34.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_starts_at_once_over_the_bus_and_by_the_scan_while_it_is_down() {
    let mut server = Servers::given().unwrap().start().unwrap();
    let namespace = namespace();
    let connect = async || Nats::connect(server.url(), namespace.clone()).await.unwrap();
    let (emitting, hearing, scanning) = (connect().await, connect().await, connect().await);
    let store = MemoryStore::new();
    publish(&store).await;
    // It runs no worker itself.
    let kernel = Kernel::builder(APP, store.clone()).wake_bus(emitting.wake_bus()).build();
    let deaf = worker(&store, &hearing, DEAF).await;
    hears(&kernel).await;
    server.kill().unwrap();
    let scans = worker(&store, &scanning, Duration::from_secs(1)).await;
    for _ in 0..3 {
        assert!(runs_within(&kernel, PATIENT).await, "the scan goes on");
    }
    scans.stop(Duration::from_secs(1)).await;
    server.restart().unwrap();
    hears(&kernel).await;
    deaf.stop(Duration::from_secs(1)).await;
}
