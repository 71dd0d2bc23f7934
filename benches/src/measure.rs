//! Runs the load and measures it: so many runs at a time, each from its event to its known end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use surefoot::prelude::*;

use crate::load::{APP, Begin, SCOPE};
use crate::{Args, Failed};

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
    took: Duration,
    /// From event to known end, of each run, in order of length.
    latencies: Vec<Duration>,
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
        let steps = args.runs * args.steps;
        if counted.ended != runs || counted.facts < i64::try_from(steps)? {
            return Err(format!("{runs} runs were asked for, the store has {counted:?}").into());
        }
        let millis = |at: usize| {
            let found = self.latencies.get(self.latencies.len() * at / 100);
            found.map(|latency| latency.as_secs_f64() * 1e3)
        };
        let seconds = self.took.as_secs_f64();
        Ok(json!({
            "engine": engine,
            "kind": format!("{:?}", args.kind).to_lowercase(),
            "steps": args.steps,
            "runs": args.runs,
            "concurrency": args.concurrency,
            "seconds": seconds,
            "per_s": steps as f64 / seconds,
            "p50_ms": millis(50),
            "p99_ms": millis(99),
            "steps_in_all": steps,
            // From the start of the program, since others count from there.
            "client_cpu_s": cpu().as_secs_f64(),
            "wal_bytes_per_step": counted.wal_bytes.map(|bytes| bytes as f64 / steps as f64),
            "durability": counted.durability,
            "journal_rows": counted.rows,
            "facts": counted.facts,
        })
        .to_string())
    }
}

/// Publishes the workflow, starts a worker, and runs the load.
pub(crate) async fn run<S, B>(args: &Args, store: S, module: Module<B>) -> Result<Measured, Failed>
where
    S: TxStore + Clone,
    B: RunsOn<S::Tx>,
{
    let kernel = Kernel::new(APP, store);
    let scope = kernel.scope(SCOPE);
    let source = args.kind.workflow(args.steps);
    scope.publish(module.manifest(), Publication::new("load", source)).await?;
    let worker = kernel.worker(module).concurrency(args.concurrency).start().await?;
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
    worker.stop(Duration::from_secs(5)).await;
    latencies.sort_unstable();
    Ok(Measured { took, latencies })
}

async fn one_after_another<S: TxStore + Clone>(
    kernel: Kernel<S>,
    next: Arc<AtomicUsize>,
    runs: usize,
) -> Result<Vec<Duration>, Failed> {
    let scope = kernel.scope(SCOPE);
    let mut latencies = Vec::new();
    while next.fetch_add(1, Ordering::Relaxed) < runs {
        let began = Instant::now();
        let emitted = scope.emit(Begin { start: 1 }.event()).await?;
        let run = emitted.runs.first().ok_or("the event started no run")?;
        let ended = kernel.await_run(*run).await?;
        if ended.state() != RunState::Succeeded {
            return Err(format!("run {run} ended as {:?}", ended.phase).into());
        }
        latencies.push(began.elapsed());
    }
    Ok(latencies)
}

/// The processor time of this process so far.
fn cpu() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(spent).unwrap_or_default()
}
