//! What a step costs does not grow with the number of steps before it.
//!
//! Counted, on the embedded store through a real worker: calls to the store, and allocations of the whole process.
//! What a worker reads of the journal is allocated, so bytes read are in the second number. CPU time is printed and not
//! judged: on a shared machine, seconds say nothing.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use std::alloc::System;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use surefoot_kernel_core::{Dependency, Event, RunId, RunState, Signal};
use surefoot_language::{
    ActionResult, Idempotent, IdempotentCx, Limits, Module, PlanResult, Planned, StepCx, Stop,
};
use surefoot_store_sqlite::SqliteStore;
use surefoot_testkit::{FaultPlan, FaultyStore, Method};
use surefoot_worker::{Kernel, Publication, Worker};

#[global_allocator]
static ALLOCATIONS: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Recorded steps, and parks.
const ALL: usize = 10_000;
/// Steps between two looks.
const WINDOW: usize = 100;
/// Windows at the beginning, from step 100 on, and as many at the end.
const WINDOWS: usize = 10;
/// What the last windows may cost more than the first ones.
const PERCENT_MORE: usize = 5;

/// Everything at one moment.
#[derive(Debug, Clone, Copy)]
struct Look {
    at: Instant,
    allocations: usize,
    bytes: usize,
    calls: usize,
}

/// Looks at the counters after each window.
#[derive(Clone)]
struct Counters {
    plan: FaultPlan,
    looks: Arc<Mutex<Vec<Look>>>,
    steps: Arc<Mutex<usize>>,
}

impl Counters {
    fn new() -> Self {
        Self { plan: FaultPlan::new(), looks: Arc::default(), steps: Arc::default() }
    }

    /// One step more.
    fn step(&self) {
        let mut steps = self.steps.lock().unwrap();
        *steps += 1;
        if steps.is_multiple_of(WINDOW) {
            let stats = ALLOCATIONS.stats();
            let calls = Method::ALL.iter().map(|method| self.plan.count(*method)).sum::<u64>();
            self.looks.lock().unwrap().push(Look {
                at: Instant::now(),
                allocations: stats.allocations + stats.reallocations,
                bytes: stats.bytes_allocated,
                calls: usize::try_from(calls).unwrap(),
            });
        }
    }

    /// The median window at the beginning and at the end.
    fn compare(&self, of: impl Fn(&Look) -> usize) -> (usize, usize) {
        let looks = self.looks.lock().unwrap();
        let windows: Vec<usize> = looks.windows(2).map(|two| of(&two[1]) - of(&two[0])).collect();
        let median = |windows: &[usize]| {
            let mut sorted = windows.to_vec();
            sorted.sort_unstable();
            sorted[sorted.len() / 2]
        };
        (median(&windows[..WINDOWS]), median(&windows[windows.len() - WINDOWS..]))
    }

    fn are_flat(&self) {
        let start = self.looks.lock().unwrap()[0].at;
        let micros = |look: &Look| usize::try_from((look.at - start).as_micros()).unwrap();
        println!("store calls, first and last windows: {:?}", self.compare(|look| look.calls));
        println!("allocations: {:?}", self.compare(|look| look.allocations));
        println!("bytes allocated: {:?}", self.compare(|look| look.bytes));
        println!("microseconds (not judged): {:?}", self.compare(micros));
        let (first, last) = self.compare(|look| look.calls);
        assert_eq!(first, last, "calls to the store");
        for (what, (first, last)) in [
            ("allocations", self.compare(|look| look.allocations)),
            ("bytes allocated", self.compare(|look| look.bytes)),
        ] {
            let most = first + first * PERCENT_MORE / 100;
            assert!(last <= most, "{what}: {first} in a window at first, {last} at last");
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// An effect that is over at once.
struct Touch(Counters);

impl Idempotent for Touch {
    const NAME: &'static str = "touch";
    type Input = Nothing;
    type Output = i64;

    async fn run(&self, _: &IdempotentCx, _: Nothing) -> ActionResult<i64> {
        self.0.step();
        Ok(7)
    }

    async fn plan(&self, _: &StepCx, _: &Nothing) -> PlanResult<i64> {
        Ok(Planned::new("touch"))
    }
}

/// Waits for one thing after another.
struct Await(Counters);

impl Idempotent for Await {
    const NAME: &'static str = "await";
    type Input = Nothing;
    type Output = i64;

    async fn run(&self, _: &IdempotentCx, _: Nothing) -> ActionResult<i64> {
        self.0.step();
        let number = *self.0.steps.lock().unwrap();
        if number > ALL {
            return Ok(7);
        }
        Err(Stop::wait_for(Dependency::on("go", number.to_string())))
    }

    async fn plan(&self, _: &StepCx, _: &Nothing) -> PlanResult<i64> {
        Ok(Planned::new("await"))
    }
}

type Store = FaultyStore<SqliteStore>;

async fn started(counters: &Counters, workflow: &str) -> (Kernel<Store>, Worker, RunId) {
    let store = SqliteStore::in_memory().await.unwrap();
    let store = FaultyStore::new(store, counters.plan.clone());
    let module = Module::builder("flat", 1)
        .limits(Limits::default())
        .idempotent(Touch(counters.clone()))
        .idempotent(Await(counters.clone()))
        .build()
        .unwrap();
    let kernel = Kernel::new("flat", store);
    let scope = kernel.scope("here");
    let publication = Publication::new("flat", workflow);
    scope.publish(module.manifest(), publication).await.unwrap();
    let worker = kernel.worker(module).lease(Duration::from_secs(600)).build().unwrap();
    let start = Event::start("flat", serde_json::json!({}));
    let run = scope.emit(start).await.unwrap().runs[0];
    (kernel, worker, run)
}

async fn ended(kernel: &Kernel<Store>, run: RunId) {
    assert_eq!(kernel.await_run(run).await.unwrap().state(), RunState::Succeeded);
}

#[tokio::test]
async fn ten_thousand_recorded_steps() {
    let items = (0..100).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
    let workflow = format!(
        "steps:\n- forEach: [{items}]\n  as: row\n  do:\n  - forEach: [{items}]\n    as: column\n    do: [ {{ touch: {{}} }} ]\n"
    );
    let counters = Counters::new();
    let (kernel, worker, run) = started(&counters, &workflow).await;
    assert_eq!(worker.run_one().await.unwrap(), Some(run));
    ended(&kernel, run).await;
    assert_eq!(*counters.steps.lock().unwrap(), ALL);
    counters.are_flat();
}

#[tokio::test]
async fn ten_thousand_parks() {
    let counters = Counters::new();
    let (kernel, worker, run) = started(&counters, "steps: [ { await: {} } ]").await;
    for number in 1..=ALL {
        assert_eq!(worker.run_one().await.unwrap(), Some(run));
        let go = Signal::new("go", number.to_string());
        assert_eq!(kernel.scope("here").signal(go).await.unwrap().woken, [run]);
    }
    assert_eq!(worker.run_one().await.unwrap(), Some(run));
    ended(&kernel, run).await;
    counters.are_flat();
}
