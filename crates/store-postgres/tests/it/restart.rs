//! The server is killed and started again below a worker: each of the worker's loops goes on by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::{
    Event, Lease, LoadRequest, Micros, OperatorStore, Run, RunFilter, RunId, RunState, RunStore,
};
use surefoot_language::{
    ActionResult, Idempotent, IdempotentCx, Module, PlanResult, Planned, StepCx,
};
use surefoot_store_postgres::{PostgresOptions, PostgresStore};
use surefoot_testkit::servers::Postgres;
use surefoot_worker::{Kernel, Publication};
use tokio::task::spawn_blocking;

const APP: &str = "shop";
const SCOPE: &str = "north";
/// Renewed every two seconds.
const LEASE: Duration = Duration::from_secs(6);

const NOTE: &str = "steps:\n  - note: {}\n";
const HOLD: &str = "steps:\n  - hold: {}\n";
const WAIT: &str = "
steps:
  - waitFor: { kind: approval, key: seven, timeout: 10m }
";
const TICK: &str = "
triggers:
  schedule:
    minutely: { cron: '* * * * *' }
steps:
  - note: {}
";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

struct Note;

impl Idempotent for Note {
    const NAME: &'static str = "note";
    type Input = Nothing;
    type Output = bool;

    async fn run(&self, _: &IdempotentCx, _: Nothing) -> ActionResult<bool> {
        Ok(true)
    }

    async fn plan(&self, _: &StepCx, _: &Nothing) -> PlanResult<bool> {
        Ok(Planned::new("Note"))
    }
}

/// Until it is told to stop.
struct Hold(Arc<AtomicBool>);

impl Idempotent for Hold {
    const NAME: &'static str = "hold";
    type Input = Nothing;
    type Output = bool;

    async fn run(&self, cx: &IdempotentCx, _: Nothing) -> ActionResult<bool> {
        self.0.store(true, Ordering::SeqCst);
        while !cx.is_canceled() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(true)
    }

    async fn plan(&self, _: &StepCx, _: &Nothing) -> PlanResult<bool> {
        Ok(Planned::new("Hold"))
    }
}

async fn run_of(store: &PostgresStore, run: RunId) -> Option<Run> {
    // A reader that lost its connection asks again.
    let loaded = store.run_load(LoadRequest { run, after: None }).await;
    loaded.ok().flatten().map(|stored| stored.run)
}

/// What comes by itself, however busy the machine is.
async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..12_000 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never: {what}");
}

/// Emits until it is known to be recorded.
async fn emit(kernel: &Kernel<PostgresStore>, event: Event) -> Vec<RunId> {
    until("the event is recorded", async || {
        kernel.scope(SCOPE).emit(event.clone()).await.ok().map(|emission| emission.runs)
    })
    .await
}

async fn until_state(store: &PostgresStore, run: RunId, state: RunState) {
    until(&format!("{run} is {state}"), async || {
        run_of(store, run).await.filter(|run| run.state() == state)
    })
    .await;
}

/// Covers field fault 63.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_loop_of_a_worker_survives_a_restart_of_the_server() {
    let mut server = spawn_blocking(|| Postgres::given().unwrap().start().unwrap()).await.unwrap();
    let offset = Arc::new(AtomicI64::new(0));
    let options = PostgresOptions::new(server.url()).unwrap().clock_offset(offset.clone());
    let store = PostgresStore::open_with(options).await.unwrap();
    let pass = |secs| offset.fetch_add(Micros::from_secs(secs).get(), Ordering::SeqCst);
    let kernel = Kernel::new(APP, store.clone());
    let is_held = Arc::new(AtomicBool::new(false));
    let module = Module::builder("shop", 1).idempotent(Note).idempotent(Hold(is_held.clone()));
    let module = module.build().unwrap();
    for (key, source) in [("note", NOTE), ("hold", HOLD), ("wait", WAIT), ("tick", TICK)] {
        let publication = Publication::new(key, source);
        kernel.scope(SCOPE).publish(module.manifest(), publication).await.unwrap();
    }
    let worker = kernel.worker(module).lease(LEASE).wake_bus(store.wake_bus());
    let running = worker.start().await.unwrap();
    let held = emit(&kernel, Event::start("hold", json!({}))).await[0];
    let waiting = emit(&kernel, Event::start("wait", json!({}))).await[0];
    until("it is held", async || is_held.load(Ordering::SeqCst).then_some(())).await;
    until_state(&store, waiting, RunState::Waiting).await;

    let server = spawn_blocking(move || {
        server.kill().unwrap();
        server.restart().unwrap();
        server
    });
    let server = server.await.unwrap();

    // The keeper: leases are renewed.
    let lease = |run: Option<Run>| run.as_ref().and_then(Run::lease).map(|it: &Lease| it.until);
    let before = until("it can be read", async || lease(run_of(&store, held).await)).await;
    until("the lease is renewed", async || {
        lease(run_of(&store, held).await).filter(|until| *until > before)
    })
    .await;
    // The watch for cancels.
    until("the cancel is recorded", async || kernel.cancel(held, "enough").await.ok()).await;
    until_state(&store, held, RunState::Canceled).await;
    // Claims.
    let event = Event::start("note", json!({})).dedupe_key("claimed");
    let noted = emit(&kernel, event).await[0];
    until_state(&store, noted, RunState::Succeeded).await;
    // Dispatch.
    let deferred = Event::start("note", json!({})).dedupe_key("deferred").deferred();
    emit(&kernel, deferred).await;
    let filter =
        || RunFilter { states: vec![RunState::Succeeded], limit: 100, ..RunFilter::default() };
    let ended = async |workflow: &str, count: usize| {
        let rows = store.run_list(filter()).await.ok()?.rows;
        let of_it = rows.iter().filter(|row| row.run.origin.workflow.as_str() == workflow);
        (of_it.count() >= count).then_some(())
    };
    until("the deferred event has its run", async || ended("note", 2).await).await;
    // The scan: deadlines.
    pass(601);
    until_state(&store, waiting, RunState::Succeeded).await;
    // Schedules.
    pass(120);
    until("the schedule has fired", async || ended("tick", 1).await).await;
    // What the worker says of itself.
    let app = APP.into();
    let now = until("the store is there", async || store.store_now().await.ok()).await;
    until("the worker reports", async || {
        let sessions = store.session_list(&app).await.ok()?;
        sessions.iter().any(|session| session.seen_at >= now).then_some(())
    })
    .await;
    running.stop(Duration::from_secs(5)).await;
    spawn_blocking(move || server.stop().unwrap()).await.unwrap();
}
