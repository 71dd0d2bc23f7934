//! A store, kernels on it, and ways to look at what is stored.

use std::time::Duration;

use serde_json::{Value, json};
use surefoot_kernel_core::plan::{Plan, Step};
use surefoot_kernel_core::*;
use surefoot_language::{Module, On};
use surefoot_testkit::{MemoryTx, SeqIds};
use surefoot_worker::{Kernel, Worker, WorkerBuilder};
use tokio::time::Instant;

use crate::actions::{Actions, Log};
use crate::plans::plan;
use crate::store::TestStore;

pub(crate) const APP: &str = "shop";
pub(crate) const SCOPE: &str = "berlin";

/// Process time that goes with tokio's, which may be virtual.
pub(crate) struct TokioClock(Instant);

impl Clock for TokioClock {
    fn wall(&self) -> Timestamp {
        Timestamp::from_micros(1_767_225_600_000_000).plus(self.monotonic())
    }

    fn monotonic(&self) -> Micros {
        self.0.elapsed().into()
    }
}

pub(crate) struct World {
    pub(crate) store: TestStore,
    pub(crate) kernel: Kernel<TestStore>,
    pub(crate) actions: Actions,
    pub(crate) module: Module<On<MemoryTx>>,
    ids: SeqIds,
    /// Of what is published.
    caps: Amounts,
}

impl World {
    pub(crate) fn new(actions: Actions) -> Self {
        Self::on(TestStore::new(), actions)
    }

    pub(crate) fn on(store: TestStore, actions: Actions) -> Self {
        let ids = SeqIds::new();
        let kernel = kernel(&store, APP, &ids);
        let module = actions.module();
        Self { store, kernel, actions, module, ids, caps: Amounts::default() }
    }

    /// Whatever is published has this cap.
    pub(crate) fn capped(mut self, dimension: &str, cap: f64) -> Self {
        self.caps = Amounts::of([(dimension, cap)]).unwrap();
        self
    }

    pub(crate) fn log(&self) -> &Log {
        &self.actions.log
    }

    /// A kernel of another process on the same store, with faults of its own.
    pub(crate) fn other(&self) -> Kernel<TestStore> {
        kernel(&self.store.fork(), APP, &self.ids)
    }

    /// A kernel of another process, with the faults of this one.
    pub(crate) fn kernel_of_its_own(&self) -> Kernel<TestStore> {
        kernel(&self.store, APP, &self.ids)
    }

    pub(crate) fn other_app(&self, app: &str) -> Kernel<TestStore> {
        kernel(&self.store.fork(), app, &self.ids)
    }

    pub(crate) fn builder(&self) -> WorkerBuilder<TestStore> {
        self.kernel.worker(self.module.clone())
    }

    pub(crate) fn worker(&self) -> Worker {
        self.builder().build().unwrap()
    }

    /// A worker of another process.
    pub(crate) fn other_worker(&self) -> Worker {
        self.other().worker(self.module.clone()).build().unwrap()
    }

    pub(crate) async fn publish(&self, workflow: &str, steps: Vec<Step>) -> VersionId {
        self.publish_plan(APP, workflow, plan(self.module.manifest(), steps)).await
    }

    pub(crate) async fn publish_plan(&self, app: &str, workflow: &str, plan: Plan) -> VersionId {
        let publish = Publish {
            app: app.into(),
            scope: SCOPE.into(),
            workflow: workflow.into(),
            version: self.ids.version(),
            plan,
            source: String::new(),
            budget: self.caps.clone(),
            activate: true,
            authorization: None,
            author: "ann".to_owned(),
        };
        self.store.version_publish(publish).await.unwrap().version
    }

    /// Publishes and starts a workflow of these steps.
    pub(crate) async fn start(&self, steps: Vec<Step>) -> RunId {
        self.publish("work", steps).await;
        self.emit("work").await
    }

    pub(crate) async fn emit(&self, workflow: &str) -> RunId {
        let event = Event::start(workflow, json!({}));
        let emission = self.kernel.scope(SCOPE).emit(event).await.unwrap();
        emission.runs[0]
    }

    /// The same, but no worker of this process hears of it.
    pub(crate) async fn emit_quietly(&self, workflow: &str) -> RunId {
        let event = Event::start(workflow, json!({}));
        let emission = self.other().scope(SCOPE).emit(event).await.unwrap();
        emission.runs[0]
    }

    pub(crate) async fn run(&self, run: RunId) -> Run {
        let request = LoadRequest { run, after: None };
        self.store.inner.run_load(request).await.unwrap().unwrap().run
    }

    pub(crate) async fn state(&self, run: RunId) -> RunState {
        self.run(run).await.state()
    }

    pub(crate) async fn facts(&self, run: RunId) -> Vec<Fact> {
        self.commits(run).await.concat()
    }

    /// The facts of each commit.
    pub(crate) async fn commits(&self, run: RunId) -> Vec<Vec<Fact>> {
        let request = LoadRequest { run, after: None };
        let stored = self.store.inner.run_load(request).await.unwrap().unwrap();
        stored.journal.unwrap().into_iter().map(|entry| entry.facts).collect()
    }

    /// The outputs of completed steps, in order.
    pub(crate) async fn outputs(&self, run: RunId) -> Vec<Value> {
        let facts = self.facts(run).await.into_iter();
        facts
            .filter_map(|fact| match fact {
                Fact::StepCompleted { output, .. } => Some(output),
                _ => None,
            })
            .collect()
    }

    pub(crate) async fn error(&self, run: RunId) -> Failure {
        match self.run(run).await.phase {
            Phase::Failed { error, .. } => error,
            Phase::NeedsAttention(Attention { error, .. }) => error,
            other => panic!("no error: {other:?}"),
        }
    }

    /// What an operator or a store does to a row.
    pub(crate) async fn act_on(&self, run: RunId, input: RowInput) -> Result<(), Rejection> {
        let row = self.run(run).await;
        let facts = decide_row(&row, input, self.store.inner.clock().now())?;
        self.store.inner.run_commit(Commit::new(&row, &facts)).await.unwrap();
        Ok(())
    }

    /// Ticks a worker until the run has ended or needs attention, letting virtual time pass.
    pub(crate) async fn settle(&self, worker: &Worker, run: RunId) -> RunState {
        for _ in 0..20_000 {
            worker.tick(surefoot_worker::Tick::max_runs(10)).await.unwrap();
            let state = self.state(run).await;
            if state.is_terminal() || state == RunState::NeedsAttention {
                return state;
            }
            tokio::time::advance(Duration::from_millis(500)).await;
        }
        panic!("the run does not end: {:?}", self.run(run).await);
    }
}

fn kernel(store: &TestStore, app: &str, ids: &SeqIds) -> Kernel<TestStore> {
    let builder = Kernel::builder(app, store.clone());
    builder.clock(TokioClock(Instant::now())).ids(ids.clone()).build()
}

/// Waits for a condition, in virtual time where that is virtual.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..200_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never: {what}");
}
