//! Plays a script: the fleet, the application, and a person who tells the truth.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::{
    Amounts, App, Attention, Code, Commit, Event, Ids, Micros, OperatorStore, Phase, PlanStore,
    Publish, RowInput, Run, RunFilter, RunState, RunStore, Signal, Verdict, decide_row,
};
use surefoot_language::{Bindings, compile_and_bind};
use surefoot_worker::{Kernel, Tick};
use tokio::task::JoinHandle;

use super::Played;
use super::judge::judge;
use super::script::{Move, Script};
use super::shop::{Desk, SOURCE};
use super::sky::{FRONT, Line, SkewedClock, Sky, Trouble};
use crate::fault::FaultPlan;
use crate::living::LEASE;
use crate::matrix::Provider;
use crate::suite::StoreFactory;
use crate::{FaultyStore, SeqIds};

pub(super) const APP: &str = "simulation";
pub(super) const SCOPE: &str = "simulation";
const WORKFLOW: &str = "order";
/// Between two passes of a worker.
const PASS: Duration = Duration::from_secs(5);
/// Until a worker that died is started again.
const RESTART: Duration = Duration::from_secs(5);
/// Between two looks of the person.
const LOOK: Duration = Duration::from_secs(10);
/// The person waits longer than anything can be under way.
const PERSON_AFTER: Micros = Micros::from_secs(60);
/// What has not ended by then never will.
const END_MS: u64 = 4 * 3_600_000;

/// The world of one simulation.
pub(super) struct Stage<F: StoreFactory> {
    sky: Arc<Sky<F>>,
    /// A handle that nothing happens to.
    clean: F::Store,
    provider: Provider,
    ids: SeqIds,
    count: Arc<AtomicU64>,
    calls: Arc<Mutex<Vec<FaultPlan>>>,
    verdicts: AtomicU64,
}

impl<F: StoreFactory> Stage<F> {
    pub(super) async fn new(script: Script) -> Self {
        let factory = F::fresh().await;
        let clean = factory.open().await;
        Self {
            sky: Arc::new(Sky::new(script, factory)),
            clean,
            provider: Provider::new(),
            ids: SeqIds::new(),
            count: Arc::default(),
            calls: Arc::default(),
            verdicts: AtomicU64::new(0),
        }
    }

    pub(super) async fn play(self) -> Played {
        let stage = Arc::new(self);
        let failures = match stage.clone().live().await {
            Ok(runs) => judge::<F>(&stage.sky.script, &stage.clean, &runs, &stage.provider).await,
            Err(why) => vec![why],
        };
        let lives = stage.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = lives.iter().map(|life| life.calls().len() as u64).sum();
        Played {
            failures,
            log: stage.provider.log(),
            calls,
            verdicts: stage.verdicts.load(Ordering::SeqCst),
            took_ms: stage.sky.now().get() / 1_000,
        }
    }

    /// Until every run has ended.
    async fn live(self: Arc<Self>) -> Result<Vec<Run>, String> {
        self.publish().await?;
        let mut fleet = Fleet(BTreeMap::new());
        for process in 0..self.sky.script.clocks.len() {
            fleet.put(process, self.clone().work(process, Duration::ZERO));
        }
        for (at, one) in self.sky.script.moves.clone() {
            self.sky.reach(at).await;
            self.clone().make(one, &mut fleet);
        }
        self.sky.reach(self.sky.script.calm_after).await;
        let mut since = BTreeMap::new();
        while self.sky.now() < Micros::from(Duration::from_millis(END_MS)) {
            tokio::time::sleep(LOOK).await;
            self.sky.tell().await;
            let runs = self.runs().await?;
            for run in &runs {
                self.help(run, &mut since).await?;
            }
            let ended = runs.iter().filter(|run| run.state() == RunState::Succeeded).count();
            if ended == self.sky.script.orders().len() {
                return Ok(runs);
            }
        }
        Err(format!("not every run succeeds: {:?}", self.runs().await?))
    }

    fn make(self: Arc<Self>, one: Move, fleet: &mut Fleet) {
        match one {
            Move::Emit(order) => drop(tokio::spawn(self.emit(order))),
            Move::Approve(order) => drop(tokio::spawn(self.approve(order))),
            Move::Kill(process) => fleet.put(process, self.work(process, RESTART)),
            Move::Pause(process, ms) => self.sky.trouble(Trouble::Pause, process, ms),
            Move::Cut(process, ms) => self.sky.trouble(Trouble::Cut, process, ms),
        }
    }

    async fn publish(&self) -> Result<(), String> {
        let (desk, _) = self.desk(FRONT);
        let module = desk.module().map_err(text)?;
        let plan = compile_and_bind(SOURCE, module.manifest(), &Bindings::new()).map_err(text)?;
        let publish = Publish {
            app: APP.into(),
            scope: SCOPE.into(),
            workflow: WORKFLOW.into(),
            version: self.ids.version(),
            plan,
            source: SOURCE.to_owned(),
            budget: Amounts::default(),
            activate: true,
            authorization: None,
            author: "the simulation".to_owned(),
        };
        self.clean.version_publish(publish).await.map(drop).map_err(text)
    }

    /// What a new life of a process works with. Opening a store in memory takes no time.
    fn desk(&self, process: usize) -> (Desk<F>, FaultPlan) {
        let mut lives = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let line = Line { sky: self.sky.clone(), process, life: lives.len() as u64 };
        let plan = FaultPlan::under(Arc::new(line));
        lives.push(plan.clone());
        let store = FaultyStore::new(self.clean.clone(), plan.clone());
        let (sky, provider, count) = (self.sky.clone(), self.provider.clone(), self.count.clone());
        (Desk { sky, provider, process, store, count }, plan)
    }

    async fn open(&self, process: usize) -> (Desk<F>, FaultPlan, Kernel<FaultyStore<F::Store>>) {
        let (mut desk, plan) = self.desk(process);
        desk.store = FaultyStore::new(self.sky.factory().open().await, plan.clone());
        let clocks = &self.sky.script.clocks;
        let (skew_ms, rate) = clocks.get(process).copied().unwrap_or_default();
        let clock = SkewedClock { began: tokio::time::Instant::now(), skew_ms, rate };
        let builder = Kernel::builder(APP, desk.store.clone());
        let kernel = builder.clock(clock).ids(self.ids.clone()).build();
        (desk, plan, kernel)
    }

    /// Life after life of one process.
    async fn work(self: Arc<Self>, process: usize, after: Duration) {
        tokio::time::sleep(after).await;
        loop {
            let (desk, plan, kernel) = self.open(process).await;
            let Ok(module) = desk.module() else { return };
            let Ok(worker) = kernel.worker(module).lease(LEASE.into()).build() else { return };
            while !plan.is_dead() {
                // What the store did not answer is done in a later pass.
                let _ = worker.tick(Tick::max_runs(3)).await;
                tokio::time::sleep(PASS).await;
            }
            tokio::time::sleep(RESTART).await;
        }
    }

    async fn emit(self: Arc<Self>, order: u64) {
        let (_, _, kernel) = self.open(FRONT).await;
        let name = order.to_string();
        loop {
            let event = Event::start(WORKFLOW, json!({ "order": name })).dedupe_key(name.clone());
            if kernel.scope(SCOPE).emit(event).await.is_ok() {
                return;
            }
            tokio::time::sleep(PASS).await;
        }
    }

    async fn approve(self: Arc<Self>, order: u64) {
        let (_, _, kernel) = self.open(FRONT).await;
        let signal = Signal::new("approval", order.to_string());
        while kernel.scope(SCOPE).signal(signal.clone()).await.is_err() {
            tokio::time::sleep(PASS).await;
        }
    }

    async fn runs(&self) -> Result<Vec<Run>, String> {
        let filter = RunFilter { app: Some(App::from(APP)), limit: 1_000, ..RunFilter::default() };
        let page = self.clean.run_list(filter).await.map_err(text)?;
        Ok(page.rows.into_iter().map(|row| row.run).collect())
    }

    /// What a person does about a run that nobody else can help: says what is true, when nothing is under way any more.
    async fn help(
        &self,
        run: &Run,
        since: &mut BTreeMap<(surefoot_kernel_core::RunId, u64), Micros>,
    ) -> Result<(), String> {
        let input = match &run.phase {
            Phase::NeedsAttention(Attention { effect: Some(effect), .. }) => {
                let knows = self.provider.knows(&run.effect_key(&effect.step));
                let verdict = match knows {
                    true => Verdict::Succeeded { output: json!(1) },
                    false => Verdict::NotPerformed,
                };
                RowInput::Resolve { step: effect.step.clone(), verdict }
            }
            Phase::Failed { error, .. } if error.code == Code::RETRY_EXHAUSTED => RowInput::Retry,
            Phase::NeedsAttention(_) | Phase::Failed { .. } | Phase::Canceled { .. } => {
                return Err(format!("a run ends where it should not: {run:?}"));
            }
            Phase::Queued { .. }
            | Phase::Running { .. }
            | Phase::Waiting(_)
            | Phase::Succeeded { .. } => return Ok(()),
        };
        let now = self.sky.now();
        let seen = *since.entry((run.id, run.revision)).or_insert(now);
        if now.get().saturating_sub(seen.get()) < PERSON_AFTER.get() {
            return Ok(());
        }
        self.verdicts.fetch_add(1, Ordering::SeqCst);
        let at = self.clean.store_now().await.map_err(text)?;
        let facts = decide_row(run, input, at).map_err(text)?;
        self.clean.run_commit(Commit::new(run, &facts)).await.map(drop).map_err(text)
    }
}

/// The processes that live. One that is replaced, or left behind, is killed.
struct Fleet(BTreeMap<usize, JoinHandle<()>>);

impl Fleet {
    fn put(&mut self, process: usize, life: impl Future<Output = ()> + Send + 'static) {
        if let Some(killed) = self.0.remove(&process) {
            killed.abort();
        }
        self.0.insert(process, tokio::spawn(life));
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.0.values().for_each(JoinHandle::abort);
    }
}

pub(super) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
