//! The lives of one process: it works, in passes or in loops, dies, and is started again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use surefoot_worker::{Kernel, Running, Tick, Worker};
use tokio::task::JoinHandle;

use super::play::{APP, PASS, Stage};
use super::shop::Desk;
use super::sky::{Line, SkewedClock};
use crate::FaultyStore;
use crate::fault::FaultPlan;
use crate::living::LEASE;
use crate::suite::StoreFactory;

/// Until a worker that died is started again.
pub(super) const RESTART: Duration = Duration::from_secs(5);

/// A handle of one process.
pub(super) type KernelOf<F> = Kernel<FaultyStore<<F as StoreFactory>::Store>>;

/// One life. When it is dropped, the process is dead: what is left of it reaches neither store nor provider.
struct Life {
    plan: FaultPlan,
    running: Option<Running>,
}

impl Drop for Life {
    fn drop(&mut self) {
        self.plan.kill();
        // Its loops end, so that they do not turn for ever; where the whole simulation ends, nobody needs that.
        if let (Some(running), Ok(runtime)) =
            (self.running.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(running.stop(Duration::ZERO));
        }
    }
}

impl<F: StoreFactory> Stage<F> {
    /// What a new life of a process works with. Opening a store in memory takes no time.
    pub(super) fn desk(&self, process: usize) -> (Desk<F>, FaultPlan) {
        let mut lives = self.lives();
        let line = Line { sky: self.sky.clone(), process, life: lives.len() as u64 };
        let plan = FaultPlan::under(Arc::new(line));
        lives.push(plan.clone());
        let store = FaultyStore::new(self.clean.clone(), plan.clone());
        let (sky, provider, count) = (self.sky.clone(), self.provider.clone(), self.count.clone());
        (Desk { sky, provider, process, store, count }, plan)
    }

    pub(super) async fn open(&self, process: usize) -> (Desk<F>, FaultPlan, KernelOf<F>) {
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
    pub(super) async fn work(self: Arc<Self>, process: usize, after: Duration) {
        tokio::time::sleep(after).await;
        let is_started = self.sky.script.started.contains(&process);
        loop {
            let (desk, plan, kernel) = self.open(process).await;
            let Ok(module) = desk.module() else { return };
            let worker = kernel.worker(module).lease(LEASE.into()).scan_every(PASS).build();
            let Ok(worker) = worker else { return };
            self.kernels().insert(process, kernel);
            let mut life = Life { plan, running: None };
            if is_started {
                life.running = worker.start().await.ok();
            }
            while !life.plan.is_dead() {
                if !is_started {
                    pass(&worker).await;
                }
                tokio::time::sleep(PASS).await;
            }
            drop(life);
            tokio::time::sleep(RESTART).await;
        }
    }
}

/// What the store did not answer is done in a later pass.
async fn pass(worker: &Worker) {
    let _ = worker.tick(Tick::max_runs(3)).await;
}

/// The processes that live. One that is replaced, or left behind, is killed.
#[derive(Default)]
pub(super) struct Fleet(BTreeMap<usize, JoinHandle<()>>);

impl Fleet {
    pub(super) fn put(&mut self, process: usize, life: impl Future<Output = ()> + Send + 'static) {
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
