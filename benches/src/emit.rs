//! How fast events are recorded, each with the run that it starts, while nobody works.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use surefoot::prelude::*;

use crate::load::{Begin, SCOPE};
use crate::measure::{Measured, mark};
use crate::{Args, Failed};

/// Emits, so many at a time, and waits for each answer.
pub(crate) async fn run<S: TxStore + Clone>(
    args: &Args,
    kernel: &Kernel<S>,
) -> Result<Measured, Failed> {
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
    latencies.sort_unstable();
    Ok(Measured { took, latencies })
}

async fn one_after_another<S: TxStore + Clone>(
    kernel: Kernel<S>,
    next: Arc<AtomicUsize>,
    events: usize,
) -> Result<Vec<Duration>, Failed> {
    let scope = kernel.scope(SCOPE);
    let mut latencies = Vec::new();
    while next.fetch_add(1, Ordering::Relaxed) < events {
        let began = Instant::now();
        let emitted = scope.emit(Begin { start: 1 }.event()).await?;
        if emitted.runs.len() != 1 {
            return Err("the event started no run".into());
        }
        latencies.push(began.elapsed());
    }
    Ok(latencies)
}
