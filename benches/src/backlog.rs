//! How fast a worker gets through runs that all wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use surefoot::prelude::*;
use surefoot_kernel_core::{Measure, StepKey, Trace};
use tokio::sync::Notify;

use crate::load::{Begin, SCOPE};
use crate::measure::{Measured, mark};
use crate::{Args, Failed};

/// Events at the same time, before it begins.
const EMITS_AT_ONCE: usize = 50;

/// Emits all, then starts a worker with as many slots as runs are to be open.
pub(crate) async fn run<S, B>(
    args: &Args,
    kernel: &Kernel<S>,
    module: Module<B>,
) -> Result<Measured, Failed>
where
    S: TxStore + Clone,
    B: RunsOn<S::Tx>,
{
    emit(args, kernel).await?;
    mark("start");
    let began = Instant::now();
    let ends = Arc::new(Ends { left: AtomicUsize::new(args.runs), none_left: Notify::new() });
    let worker = kernel.worker(module).concurrency(args.concurrency).trace(Counted(ends.clone()));
    let worker = worker.start().await?;
    ends.none_left.notified().await;
    let took = began.elapsed();
    mark("end");
    worker.stop(Duration::from_secs(5)).await;
    Ok(Measured { took, latencies: Vec::new() })
}

async fn emit<S: TxStore + Clone>(args: &Args, kernel: &Kernel<S>) -> Result<(), Failed> {
    let mut tasks = tokio::task::JoinSet::new();
    for nth in 0..EMITS_AT_ONCE {
        let (kernel, events) = (kernel.clone(), args.runs);
        tasks.spawn(async move {
            for _ in (nth..events).step_by(EMITS_AT_ONCE) {
                kernel.scope(SCOPE).emit(Begin { start: 1 }.event()).await?;
            }
            Ok::<(), Failed>(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

/// Runs that have not ended.
struct Ends {
    left: AtomicUsize,
    none_left: Notify,
}

/// Counts their ends.
struct Counted(Arc<Ends>);

impl Trace for Counted {
    fn run_started(&self, _: RunId, _: u64) {}

    fn step_started(&self, _: RunId, _: &StepKey, _: u32) {}

    fn step_finished(&self, _: RunId, _: &StepKey, _: Option<&str>) {}

    fn run_finished(&self, _: RunId, state: RunState) {
        if state.is_terminal() && self.0.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.none_left.notify_one();
        }
    }

    fn measured(&self, _: Measure) {}
}
