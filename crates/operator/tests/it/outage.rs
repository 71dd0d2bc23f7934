//! A provider that is away for a quarter of an hour, in virtual time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::json;
use surefoot_kernel_core::plan::RetryPolicy;
use surefoot_kernel_core::{Event, Micros, PassTime, RunFilter, RunId, RunState, Timestamp};
use surefoot_language::{
    ActionResult, Ambiguous, AmbiguousCx, AmbiguousResult, AmbiguousStop, Idempotent, IdempotentCx,
    Module, PlanResult, Planned, ReconcileResult, Reconciled, StepCx, Stop,
};
use surefoot_operator::Operator;
use surefoot_testkit::{Bench, MemoryStore, VirtualClock};

const OUTAGE: Micros = Micros::from_secs(15 * 60);
const RUNS: usize = 12;

/// What was done, by effect key, by a provider that is away until an instant.
#[derive(Clone)]
struct Provider {
    clock: VirtualClock,
    back_at: Timestamp,
    done: Arc<Mutex<BTreeMap<String, u32>>>,
}

impl Provider {
    fn is_away(&self) -> bool {
        self.clock.now() < self.back_at
    }

    fn act(&self, key: &str) {
        *self.done.lock().unwrap().entry(key.to_owned()).or_default() += 1;
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {}

struct Mail(Provider);

impl Idempotent for Mail {
    const NAME: &'static str = "mail";
    type Input = Order;
    type Output = ();

    async fn run(&self, cx: &IdempotentCx, _: Order) -> ActionResult<()> {
        if self.0.is_away() {
            return Err(Stop::retry("PROVIDER_AWAY", "503"));
        }
        self.0.act(cx.effect_key().as_str());
        Ok(())
    }

    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<()> {
        Ok(Planned::new("Write"))
    }

    /// Patient enough for an outage of an hour.
    fn retry(&self) -> RetryPolicy {
        RetryPolicy { attempts: 20, ..RetryPolicy::default() }
    }
}

struct Pay(Provider);

impl Ambiguous for Pay {
    const NAME: &'static str = "pay";
    type Input = Order;
    type Output = ();

    async fn run(&self, cx: &AmbiguousCx, _: Order) -> AmbiguousResult<()> {
        if self.0.is_away() {
            return Err(AmbiguousStop::nothing_happened_retry("PROVIDER_AWAY", "503"));
        }
        self.0.act(cx.effect_key().as_str());
        Ok(())
    }

    async fn reconcile(&self, _: &AmbiguousCx, _: Order) -> ReconcileResult<()> {
        Ok(Reconciled::NotFound)
    }

    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<()> {
        Ok(Planned::new("Pay"))
    }
}

struct World {
    bench: Bench<MemoryStore>,
    provider: Provider,
    runs: Vec<RunId>,
}

/// Runs of one action that begin with the outage, and where each rests.
async fn outage(action: &str) -> (World, Vec<RunState>) {
    let store = MemoryStore::new();
    let clock = store.clock().clone();
    let provider = Provider { back_at: clock.now().plus(OUTAGE), clock, done: Arc::default() };
    let module = Module::builder("shop", 1)
        .idempotent(Mail(provider.clone()))
        .ambiguous(Pay(provider.clone()))
        .build();
    let bench = Bench::on(store, module.unwrap());
    bench.publish("work", &format!("steps: [{{ {action}: {{}} }}]")).await;
    let scoped = bench.scope();
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.extend(scoped.emit(Event::start("work", json!({}))).await.unwrap().runs);
    }
    let mut states = Vec::new();
    for run in &runs {
        states.push(bench.go_on(*run).await.state);
    }
    (World { bench, provider, runs }, states)
}

impl World {
    fn each_was_done_once(&self) {
        let done = self.provider.done.lock().unwrap();
        assert_eq!((done.len(), done.values().max()), (self.runs.len(), Some(&1)));
    }
}

#[tokio::test]
async fn after_an_outage_patient_runs_finish_by_their_own_retries() {
    let (world, states) = outage("mail").await;
    assert_eq!(states, [RunState::Succeeded; RUNS]);
    world.each_was_done_once();
}

#[tokio::test]
async fn after_an_outage_one_bulk_retry_finishes_the_runs_that_gave_up() {
    let (world, states) = outage("pay").await;
    let gave_up = states.iter().filter(|state| **state == RunState::Failed).count();
    assert!(gave_up > RUNS / 2, "eight attempts do not last a quarter of an hour: {states:?}");
    let store = world.bench.kernel().store();
    store.pass_time(OUTAGE);

    let operator = Operator::new(store.clone(), "ann");
    let failed = RunFilter { states: vec![RunState::Failed], limit: 1_000, ..RunFilter::default() };
    let verdicts = operator.retry_failed(failed, None, "the provider is back").await.unwrap();
    assert_eq!(verdicts.verdicts.len(), gave_up);
    for run in &world.runs {
        let end = world.bench.go_on(*run).await;
        assert_eq!(end.state, RunState::Succeeded, "{}", end.explain());
    }
    world.each_was_done_once();
}
