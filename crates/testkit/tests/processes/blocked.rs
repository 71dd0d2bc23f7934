//! Actions that never give their thread back, on a store whose writer needs one.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use surefoot_kernel_core::{Event, RunState};
use surefoot_language::{
    ActionResult, Idempotent, IdempotentCx, Module, PlanResult, Planned, StepCx,
};
use surefoot_store_sqlite::SqliteStore;
use surefoot_worker::{Kernel, Publication};

const LEASE: Duration = Duration::from_millis(600);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// Blocks its thread for two leases, or until it is told to stop.
struct Block(Arc<Mutex<Vec<(bool, Duration)>>>);

impl Idempotent for Block {
    const NAME: &'static str = "block";
    type Input = Nothing;
    type Output = bool;

    async fn run(&self, cx: &IdempotentCx, _: Nothing) -> ActionResult<bool> {
        let began = Instant::now();
        while cx.attempt() == 1 && began.elapsed() < LEASE * 2 && !cx.is_canceled() {
            std::thread::yield_now();
        }
        self.0.lock().unwrap().push((cx.is_canceled(), began.elapsed()));
        Ok(true)
    }

    async fn plan(&self, _: &StepCx, _: &Nothing) -> PlanResult<bool> {
        Ok(Planned::new("Block"))
    }
}

/// Covers field fault 41.
#[test]
fn an_action_that_blocks_every_thread_keeps_its_lease_or_hears_of_its_end_in_time() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(async {
        let blocked: Arc<Mutex<Vec<(bool, Duration)>>> = Arc::default();
        let module = Module::builder("shop", 1).idempotent(Block(blocked.clone())).build().unwrap();
        let kernel = Kernel::new("shop", SqliteStore::in_memory().await.unwrap());
        let scope = kernel.scope("north");
        let publication = Publication::new("block", "steps: [ { block: {} } ]");
        scope.publish(module.manifest(), publication).await.unwrap();
        let mut runs = Vec::new();
        for _ in 0..2 {
            runs.push(scope.emit(Event::start("block", json!({}))).await.unwrap().runs[0]);
        }
        let running = kernel.worker(module).lease(LEASE).start().await.unwrap();
        for run in runs {
            assert_eq!(kernel.await_run(run).await.unwrap().state(), RunState::Succeeded);
        }
        running.stop(Duration::from_secs(1)).await;
        for (told, after) in blocked.lock().unwrap().iter() {
            println!("told to stop: {told}, after {after:?}");
            assert!(!told || *after < LEASE, "told to stop after {after:?} of {LEASE:?}");
        }
        assert!(blocked.lock().unwrap().len() >= 2);
    });
}
