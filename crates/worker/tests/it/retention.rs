//! The slow pass: old payloads are emptied by whoever works.

use std::time::Duration;

use surefoot_kernel_core::{EventFilter, OperatorStore, RunState};
use surefoot_worker::{Tick, Worker};

use crate::actions::{Actions, n};
use crate::plans::act;
use crate::world::World;

const HOUR: u64 = 3_600;

/// Whether the one event is expired, once time has passed and the worker has made a pass.
async fn is_expired_after(world: &World, worker: &Worker, seconds: u64) -> bool {
    tokio::time::advance(Duration::from_secs(seconds)).await;
    worker.tick(Tick::max_runs(1)).await.unwrap();
    let filter = EventFilter { limit: 100, ..EventFilter::default() };
    let rows = world.store.event_list(filter).await.unwrap().rows;
    assert_eq!(rows.len(), 1);
    rows[0].is_expired
}

/// Covers behaviour 84.
#[tokio::test(start_paused = true)]
async fn a_worker_empties_old_payloads_once_an_hour() {
    let world = World::new(Actions::default());
    let worker = world.worker();
    let run = world.start(vec![act("mail", n(1))]).await;
    assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
    assert!(!is_expired_after(&world, &worker, 30 * 24 * HOUR - 600).await);
    assert!(!is_expired_after(&world, &worker, 1_200).await, "this hour's pass was made before");
    assert!(is_expired_after(&world, &worker, HOUR).await);
    assert_eq!(world.state(run).await, RunState::Succeeded);
}
