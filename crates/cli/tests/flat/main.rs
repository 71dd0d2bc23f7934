//! What a step costs does not grow with the number of steps before it.
//!
//! Counted, on both local stores through a real worker: calls to the store, facts of the journal that are read, and
//! allocations and CPU time of the whole process. Of CPU time the cheapest windows are compared, and only in
//! memory: there one thread does everything. What the threads of a file's connections spend on waiting for each other
//! changes with what else the machine does; it is printed.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use std::alloc::System;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use surefoot_kernel_core::{Dependency, Event, RunId, RunState, Signal, TxStore};
use surefoot_language::{
    ActionResult, Idempotent, IdempotentCx, Limits, Module, PlanResult, Planned, StepCx, Stop,
};
use surefoot_store_sqlite::SqliteStore;
use surefoot_testkit::{FaultPlan, FaultyStore, MemoryStore, Method};
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
const PERCENT_MORE_CPU: usize = 20;
const CPU: &str = "microseconds of CPU";

/// Microseconds of its processors that the whole process has used.
fn cpu() -> usize {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let used: Duration = used.try_into().unwrap();
    usize::try_from(used.as_micros()).unwrap()
}

/// Everything at one moment.
#[derive(Debug, Clone, Copy)]
struct Look {
    /// Microseconds.
    cpu: usize,
    allocations: usize,
    bytes: usize,
    calls: usize,
    facts: usize,
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
                cpu: cpu(),
                allocations: stats.allocations + stats.reallocations,
                bytes: stats.bytes_allocated,
                calls: usize::try_from(calls).unwrap(),
                facts: usize::try_from(self.plan.facts_read()).unwrap(),
            });
        }
    }

    /// Windows at the beginning and at the end, cheapest first.
    fn windows(&self, of: impl Fn(&Look) -> usize) -> (Vec<usize>, Vec<usize>) {
        let looks = self.looks.lock().unwrap();
        let windows: Vec<usize> = looks.windows(2).map(|two| of(&two[1]) - of(&two[0])).collect();
        let sorted = |windows: &[usize]| {
            let mut sorted = windows.to_vec();
            sorted.sort_unstable();
            sorted
        };
        (sorted(&windows[..WINDOWS]), sorted(&windows[windows.len() - WINDOWS..]))
    }

    fn are_flat(&self, is_one_thread: bool) {
        let (calls, facts) = (self.windows(|look| look.calls), self.windows(|look| look.facts));
        println!("calls to the store: {calls:?}\nfacts read: {facts:?}");
        // A renewal, or a flush that was due by time, may fall into any window: the median has none.
        let median = WINDOWS / 2;
        assert_eq!(calls.0[median], calls.1[median], "calls to the store");
        assert_eq!(facts.0[median], facts.1[median], "facts read from the journal");
        for (what, windows, nth, more) in [
            ("allocations", self.windows(|look| look.allocations), median, PERCENT_MORE),
            ("bytes allocated", self.windows(|look| look.bytes), median, PERCENT_MORE),
            (CPU, self.windows(|look| look.cpu), 0, PERCENT_MORE_CPU),
        ] {
            let (first, last) = (windows.0[nth], windows.1[nth]);
            println!("{what}: {first} in a window at first, {last} at last");
            if what == CPU && !is_one_thread {
                continue;
            }
            let most = first + first * more / 100;
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

/// The allocator counts what the whole process does: one thing at a time.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn started<S: TxStore>(
    store: S,
    counters: &Counters,
    workflow: &str,
) -> (Kernel<FaultyStore<S>>, Worker, RunId) {
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

async fn ended<S: TxStore>(kernel: &Kernel<S>, run: RunId) {
    assert_eq!(kernel.await_run(run).await.unwrap().state(), RunState::Succeeded);
}

async fn recorded_steps<S: TxStore>(store: S, is_one_thread: bool) {
    let items = (0..100).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
    let workflow = format!(
        "steps:\n- forEach: [{items}]\n  as: row\n  do:\n  - forEach: [{items}]\n    as: column\n    do: [ {{ touch: {{}} }} ]\n"
    );
    let counters = Counters::new();
    let (kernel, worker, run) = started(store, &counters, &workflow).await;
    assert_eq!(worker.run_one().await.unwrap(), Some(run));
    ended(&kernel, run).await;
    assert_eq!(*counters.steps.lock().unwrap(), ALL);
    counters.are_flat(is_one_thread);
}

async fn parks<S: TxStore>(store: S, is_one_thread: bool) {
    let counters = Counters::new();
    let (kernel, worker, run) = started(store, &counters, "steps: [ { await: {} } ]").await;
    for number in 1..=ALL {
        assert_eq!(worker.run_one().await.unwrap(), Some(run));
        let go = Signal::new("go", number.to_string());
        assert_eq!(kernel.scope("here").signal(go).await.unwrap().woken, [run]);
    }
    assert_eq!(worker.run_one().await.unwrap(), Some(run));
    ended(&kernel, run).await;
    counters.are_flat(is_one_thread);
}

/// Covers field fault 138.
#[tokio::test]
async fn ten_thousand_recorded_steps() {
    let _alone = ALONE.lock().await;
    recorded_steps(SqliteStore::in_memory().await.unwrap(), false).await;
}

/// Covers field fault 138.
#[tokio::test]
async fn ten_thousand_recorded_steps_in_memory() {
    let _alone = ALONE.lock().await;
    recorded_steps(MemoryStore::new(), true).await;
}

#[tokio::test]
async fn ten_thousand_parks() {
    let _alone = ALONE.lock().await;
    parks(SqliteStore::in_memory().await.unwrap(), false).await;
}

#[tokio::test]
async fn ten_thousand_parks_in_memory() {
    let _alone = ALONE.lock().await;
    parks(MemoryStore::new(), true).await;
}
