//! Many workers beside each other, with nothing to do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use surefoot_kernel_core::RunState;
use surefoot_worker::{Running, Tick};
use tokio::time::Instant;

use crate::actions::Actions;
use crate::plans::wait_for;
use crate::store::Verdict;
use crate::world::World;

const WORKERS: usize = 200;

/// When each question came, in milliseconds since the workers were started.
type Asked = Arc<Mutex<Vec<u64>>>;

/// A run waits, so that the workers know what is wanted; and workers that were all started at the same moment.
async fn idle_fleet() -> (World, Vec<Running>, Asked) {
    let world = World::new(Actions::default());
    let run = world.start(vec![wait_for("approval", "7", None)]).await;
    world.worker().tick(Tick::max_runs(1)).await.unwrap();
    assert_eq!(world.state(run).await, RunState::Waiting);
    let asked = Asked::default();
    let (began, seen) = (Instant::now(), asked.clone());
    world.store.on(move |_| {
        seen.lock().unwrap().push(u64::try_from(began.elapsed().as_millis()).unwrap());
        Verdict::Go
    });
    let mut fleet = Vec::new();
    for _ in 0..WORKERS {
        fleet.push(world.kernel_of_its_own().worker(world.module.clone()).start().await.unwrap());
    }
    (world, fleet, asked)
}

/// How many questions came in each span of so many milliseconds.
fn per_span(asked: &Asked, span: u64) -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    for at in asked.lock().unwrap().iter() {
        *counts.entry(at / span).or_default() += 1;
    }
    counts
}

/// Covers field faults 79, 80.
#[tokio::test(start_paused = true)]
async fn an_idle_fleet_asks_seldom_and_not_in_step() {
    let (_world, fleet, asked) = idle_fleet().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let seconds = per_span(&asked, 1_000);
    let steady: usize = (10..30).map(|second| seconds[&second]).sum::<usize>() / 20;
    // One question for all that may be due, and now and then a report and a look at schedules.
    assert!(steady <= WORKERS * 3 / 2, "{steady}");
    // Who it is, what is wanted, what is due, what is scheduled: a start asks each of it once.
    let peak = *seconds.values().max().unwrap();
    assert!(peak <= WORKERS * 5, "{peak} in one second, {steady} in most");
    let slices = per_span(&asked, 100);
    let busiest = (100..300).filter_map(|slice| slices.get(&slice)).max().unwrap();
    assert!(*busiest <= steady / 10 * 2, "{busiest} in a tenth of a second, {steady} in one");
    for running in fleet {
        running.stop(Duration::ZERO).await;
    }
}
