//! Runs the load and measures it: so many runs at a time, each from its event to its known end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use surefoot::prelude::*;

use crate::load::{Begin, SCOPE};
use crate::{Args, Failed, Workload};

/// What stands in the store afterwards.
#[derive(Debug)]
pub(crate) struct Counted {
    /// Rows of the journal: commits with facts.
    pub(crate) rows: i64,
    /// Facts in them.
    pub(crate) facts: i64,
    /// Runs that succeeded.
    pub(crate) ended: i64,
    /// Bytes of log that the server wrote in the meantime, if it tells.
    pub(crate) wal_bytes: Option<i64>,
    /// What the store says of its own durability.
    pub(crate) durability: String,
}

/// What the load saw.
#[derive(Debug)]
pub(crate) struct Measured {
    /// From the first event to the last known end.
    pub(crate) took: Duration,
    /// From event to known end, of each run, in order of length.
    pub(crate) latencies: Vec<Duration>,
}

/// The latency that so many of a hundred do not pass, of those in order of length.
pub(crate) fn millis(latencies: &[Duration], percent: usize) -> Option<f64> {
    latencies.get(latencies.len() * percent / 100).map(|latency| latency.as_secs_f64() * 1e3)
}

impl Measured {
    /// The figures, if what was counted in the store is what was asked for.
    pub(crate) fn line(
        &self,
        engine: &str,
        args: &Args,
        counted: &Counted,
    ) -> Result<String, Failed> {
        let runs = i64::try_from(args.runs)?;
        let steps = match args.workload {
            Workload::Emit => args.runs,
            Workload::Steps
            | Workload::Backlog
            | Workload::Limit
            | Workload::Claim
            | Workload::Soak
            | Workload::Fence
            | Workload::Look => args.runs * args.steps,
        };
        let is_less = args.workload != Workload::Emit && counted.facts < i64::try_from(steps)?;
        if counted.ended != runs || is_less {
            return Err(format!("{runs} runs were asked for, the store has {counted:?}").into());
        }
        let seconds = self.took.as_secs_f64();
        Ok(json!({
            "engine": engine,
            "kind": format!("{:?}", args.kind).to_lowercase(),
            "stored": args.stored,
            "steps": args.steps,
            "runs": args.runs,
            "concurrency": args.concurrency,
            "seconds": seconds,
            "per_s": steps as f64 / seconds,
            "p50_ms": millis(&self.latencies, 50),
            "p99_ms": millis(&self.latencies, 99),
            "steps_in_all": steps,
            "wal_bytes_per_step": counted.wal_bytes.map(|bytes| bytes as f64 / steps as f64),
            "durability": counted.durability,
            "journal_rows": counted.rows,
            "facts": counted.facts,
        })
        .to_string())
    }
}

/// Publishes the workflow.
pub(crate) async fn publish<S, B>(
    args: &Args,
    kernel: &Kernel<S>,
    module: &Module<B>,
) -> Result<(), Failed>
where
    S: TxStore + Clone,
    B: RunsOn<S::Tx>,
{
    let source = args.kind.workflow(args.steps);
    let publication = Publication::new("load", source);
    kernel.scope(SCOPE).publish(module.manifest(), publication).await?;
    Ok(())
}

/// Starts a worker and runs the load.
pub(crate) async fn run<S, B>(
    args: &Args,
    kernel: &Kernel<S>,
    module: Module<B>,
) -> Result<Measured, Failed>
where
    S: TxStore + Clone,
    B: RunsOn<S::Tx>,
{
    // Slots are no limit here: as many runs are open as there are tasks.
    let worker = kernel.worker(module).concurrency(2 * args.concurrency).start().await?;
    mark("start");
    let began = Instant::now();
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..args.concurrency.min(args.runs) {
        tasks.spawn(one_after_another(kernel.clone(), next.clone(), args.runs));
    }
    let mut latencies = Vec::with_capacity(args.runs);
    while let Some(done) = tasks.join_next().await {
        latencies.extend(done??);
    }
    let took = began.elapsed();
    mark("end");
    worker.stop(Duration::from_secs(5)).await;
    latencies.sort_unstable();
    Ok(Measured { took, latencies })
}

async fn one_after_another<S: TxStore + Clone>(
    kernel: Kernel<S>,
    next: Arc<AtomicUsize>,
    runs: usize,
) -> Result<Vec<Duration>, Failed> {
    let mut latencies = Vec::new();
    while next.fetch_add(1, Ordering::Relaxed) < runs {
        let began = Instant::now();
        one_run(&kernel).await?;
        latencies.push(began.elapsed());
    }
    Ok(latencies)
}

/// One run from its event to its known end.
pub(crate) async fn one_run<S: TxStore + Clone>(kernel: &Kernel<S>) -> Result<RunId, Failed> {
    let emitted = kernel.scope(SCOPE).emit(Begin { start: 1 }.event()).await?;
    let run = *emitted.runs.first().ok_or("the event started no run")?;
    let ended = kernel.await_run(run).await?;
    if ended.state() == RunState::Succeeded {
        Ok(run)
    } else {
        Err(format!("run {run} ended as {:?}", ended.phase).into())
    }
}

/// Tells who watches that what is measured begins, or is over.
pub(crate) fn mark(what: &str) {
    println!("{}", json!({ "mark": what }));
}
