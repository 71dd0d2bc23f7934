//! Plays a script: what happens when, from the first event to the end of all runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::{
    Amounts, App, Event, Ids, Micros, OperatorStore, PlanStore, Publish, Run, RunFilter, RunId,
    RunState, Signal,
};
use surefoot_language::{Bindings, compile_and_bind};

use super::Played;
use super::judge::judge;
use super::life::{Fleet, KernelOf, RESTART};
use super::person::Known;
use super::script::{Move, Script};
use super::shop::WORKFLOWS;
use super::sky::{FRONT, Sky, Trouble};
use crate::SeqIds;
use crate::fault::FaultPlan;
use crate::matrix::Provider;
use crate::suite::StoreFactory;

pub(super) const APP: &str = "simulation";
pub(super) const SCOPE: &str = "simulation";
/// Between two passes of a worker.
pub(super) const PASS: Duration = Duration::from_secs(5);
/// Between two looks of the person.
const LOOK: Duration = Duration::from_secs(10);
/// What has not ended by then never will.
const END_MS: u64 = 4 * 3_600_000;

/// The world of one simulation.
pub(super) struct Stage<F: StoreFactory> {
    pub(super) sky: Arc<Sky<F>>,
    /// A handle that nothing happens to.
    pub(super) clean: F::Store,
    pub(super) provider: Provider,
    pub(super) ids: SeqIds,
    pub(super) count: Arc<AtomicU64>,
    /// Of every life of every process.
    lives: Mutex<Vec<FaultPlan>>,
    /// Of every process that has a worker, in its last life.
    kernels: Mutex<BTreeMap<usize, KernelOf<F>>>,
    /// The runs of orders.
    orders: Mutex<BTreeMap<u64, RunId>>,
    pub(super) verdicts: AtomicU64,
    eager: AtomicU64,
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
            lives: Mutex::default(),
            kernels: Mutex::default(),
            orders: Mutex::default(),
            verdicts: AtomicU64::new(0),
            eager: AtomicU64::new(0),
        }
    }

    pub(super) async fn play(self) -> Played {
        let stage = Arc::new(self);
        let (failures, runs) = match stage.clone().live().await {
            Ok(runs) => {
                let (script, provider) = (&stage.sky.script, &stage.provider);
                (judge::<F>(script, &stage.clean, &runs, provider).await, runs)
            }
            Err(why) => (vec![why], Vec::new()),
        };
        let calls = stage.lives().iter().map(|life| life.calls().len() as u64).sum();
        let ended = |state| runs.iter().filter(|run| run.state() == state).count() as u64;
        Played {
            failures,
            log: stage.provider.log(),
            calls,
            verdicts: stage.verdicts.load(Ordering::SeqCst),
            eager: stage.eager.load(Ordering::SeqCst),
            canceled: ended(RunState::Canceled),
            declined: ended(RunState::Failed),
            took_ms: stage.sky.now().get() / 1_000,
        }
    }

    /// Until every run has ended.
    async fn live(self: Arc<Self>) -> Result<Vec<Run>, String> {
        self.publish().await?;
        let mut fleet = Fleet::default();
        for process in 0..self.sky.script.clocks.len() {
            fleet.put(process, self.clone().work(process, Duration::ZERO));
        }
        for (at, one) in self.sky.script.moves.clone() {
            self.sky.reach(at).await;
            self.clone().make(one, &mut fleet);
        }
        self.sky.reach(self.sky.script.calm_after).await;
        let mut known = Known::new();
        while self.sky.now() < Micros::from(Duration::from_millis(END_MS)) {
            tokio::time::sleep(LOOK).await;
            self.sky.tell().await;
            let runs = self.runs().await?;
            for run in &runs {
                self.help(run, &mut known).await?;
            }
            let roots = runs.iter().filter(|run| run.origin.parent.is_none()).count();
            let is_over = |run: &Run| {
                // Whose retries are over is tried again by the person.
                let retried = known.contains_key(&(run.id, run.revision));
                run.state().is_terminal() && !retried
            };
            if roots == self.sky.script.orders().len() && runs.iter().all(is_over) {
                return Ok(runs);
            }
        }
        Err(format!("not every run ends: {:?}", self.runs().await?))
    }

    fn make(self: Arc<Self>, one: Move, fleet: &mut Fleet) {
        match one {
            Move::Emit(order) => drop(tokio::spawn(self.emit(order, None))),
            Move::EmitBeside(order, process) => {
                drop(tokio::spawn(self.emit(order, Some(process))));
            }
            Move::Approve(order) => drop(tokio::spawn(self.approve(order))),
            Move::Cancel(order) => drop(tokio::spawn(self.cancel(order))),
            Move::Meddle(order) => drop(tokio::spawn(async move {
                if let Some(run) = self.run_of(order) {
                    // What cannot be read now is left alone.
                    let _ = self.meddle(run).await;
                }
            })),
            Move::Kill(process) => fleet.put(process, self.work(process, RESTART)),
            Move::Pause(process, ms) => self.sky.trouble(Trouble::Pause, process, ms),
            Move::Cut(process, ms) => self.sky.trouble(Trouble::Cut, process, ms),
        }
    }

    async fn publish(&self) -> Result<(), String> {
        let (desk, _) = self.desk(FRONT);
        let module = desk.module().map_err(text)?;
        for (workflow, source) in WORKFLOWS {
            let plan = compile_and_bind(source, module.manifest(), &Bindings::new());
            let publish = Publish {
                app: APP.into(),
                scope: SCOPE.into(),
                workflow: workflow.into(),
                version: self.ids.version(),
                plan: plan.map_err(text)?,
                source: source.to_owned(),
                budget: Amounts::default(),
                activate: true,
                authorization: None,
                author: "the simulation".to_owned(),
            };
            self.clean.version_publish(publish).await.map_err(text)?;
        }
        Ok(())
    }

    /// Emits the event of an order until it is recorded: in the process of a worker, or in one that has none.
    async fn emit(self: Arc<Self>, order: u64, beside: Option<usize>) {
        let (_, _, front) = self.open(FRONT).await;
        let name = order.to_string();
        loop {
            let near = beside.and_then(|process| self.kernels().get(&process).cloned());
            let kernel = near.unwrap_or_else(|| front.clone());
            let (workflow, _) = WORKFLOWS[0];
            let event = Event::start(workflow, json!({ "order": name })).dedupe_key(name.clone());
            if let Ok(emission) = kernel.scope(SCOPE).emit(event).await {
                self.eager.fetch_add(emission.started.len() as u64, Ordering::SeqCst);
                self.orders().extend(emission.runs.first().map(|run| (order, *run)));
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

    /// Asks to cancel an order once it has a run, until the request is recorded.
    async fn cancel(self: Arc<Self>, order: u64) {
        let (_, _, kernel) = self.open(FRONT).await;
        loop {
            if let Some(run) = self.run_of(order)
                && kernel.cancel(run, "nobody wants it").await.is_ok()
            {
                return;
            }
            tokio::time::sleep(PASS).await;
        }
    }

    /// The runs of orders, and their children.
    pub(super) async fn runs(&self) -> Result<Vec<Run>, String> {
        let mut runs = self.listed(None).await?;
        for at in 0..runs.len() {
            let parent = runs.get(at).map(|run| run.id);
            runs.extend(self.listed(parent).await?);
        }
        Ok(runs)
    }

    async fn listed(&self, parent: Option<RunId>) -> Result<Vec<Run>, String> {
        let app = Some(App::from(APP));
        let filter = RunFilter { app, parent, limit: 1_000, ..RunFilter::default() };
        let page = self.clean.run_list(filter).await.map_err(text)?;
        Ok(page.rows.into_iter().map(|row| row.run).collect())
    }

    fn run_of(&self, order: u64) -> Option<RunId> {
        self.orders().get(&order).copied()
    }

    pub(super) fn order_of(&self, root: RunId) -> Option<u64> {
        self.orders().iter().find(|(_, run)| **run == root).map(|(order, _)| *order)
    }

    pub(super) fn lives(&self) -> MutexGuard<'_, Vec<FaultPlan>> {
        self.lives.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn kernels(&self) -> MutexGuard<'_, BTreeMap<usize, KernelOf<F>>> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn orders(&self) -> MutexGuard<'_, BTreeMap<u64, RunId>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
