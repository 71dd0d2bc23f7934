//! What the runs of others feel of a step that keeps its run's row locked for seconds (PostgreSQL).

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use surefoot::postgres::sqlx;
use surefoot::prelude::*;

use crate::load::SCOPE;
use crate::measure::{mark, millis, one_run};
use crate::{Args, Failed};

/// How long the step is at work, and how long it is measured without it.
const HELD: Duration = Duration::from_secs(5);

/// Starts the run that holds its row.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Begin {}

impl Trigger for Begin {
    const KIND: &'static str = "hold";
    const EVENT: &'static str = "bench.hold";
}

/// Nothing.
#[derive(Debug, Deserialize, JsonSchema)]
struct NoInput {}

/// Is in its transaction for as long as it is measured.
#[derive(Debug, Clone, Copy)]
struct Hold;

impl Transactional<PostgresTx> for Hold {
    const NAME: &'static str = "hold";
    const ABOUT: &'static str = "Keeps its run's row locked.";
    type Input = NoInput;
    type Output = ();

    async fn run(&self, cx: &mut TransactionalCx<'_, PostgresTx>, _: NoInput) -> ActionResult<()> {
        sqlx::query("UPDATE tally SET count = count + 1 WHERE slot = 0").execute(cx.tx()).await?;
        tokio::time::sleep(HELD).await;
        Ok(())
    }

    async fn plan(&self, _: &StepCx, _: &NoInput) -> PlanResult<()> {
        Ok(Planned::new("Hold"))
    }
}

/// Adds what the measurement needs to a module.
pub(crate) fn with(builder: ModuleBuilder<On<PostgresTx>>) -> ModuleBuilder<On<PostgresTx>> {
    builder.trigger::<Begin>().transactional(Hold)
}

/// Measures runs alone, beside the one that holds its row, and alone again.
pub(crate) async fn run<S: TxStore + Clone>(
    args: &Args,
    kernel: &Kernel<S>,
    module: Module<On<PostgresTx>>,
) -> Result<String, Failed>
where
    On<PostgresTx>: RunsOn<S::Tx>,
{
    let publication = Publication::new("hold", "triggers:\n  hold: {}\nsteps:\n  - hold: {}\n");
    kernel.scope(SCOPE).publish(module.manifest(), publication).await?;
    let worker = kernel.worker(module).concurrency(2 * args.concurrency).start().await?;
    // Once for the caches.
    latencies(kernel, args.concurrency).await?;
    mark("start");
    let mut alone = latencies(kernel, args.concurrency).await?;
    let emitted = kernel.scope(SCOPE).emit(Begin {}.event()).await?;
    let holds = *emitted.runs.first().ok_or("the event started no run")?;
    let beside = latencies(kernel, args.concurrency).await?;
    let ended = kernel.await_run(holds).await?;
    // Before and after, so that what only takes longer by and by is on both sides.
    alone.extend(latencies(kernel, args.concurrency).await?);
    alone.sort_unstable();
    mark("end");
    worker.stop(Duration::from_secs(5)).await;
    if ended.state() != RunState::Succeeded {
        return Err(format!("the run that holds its row ended as {:?}", ended.phase).into());
    }
    let (p50, p50_alone) = (millis(&beside, 50), millis(&alone, 50));
    let (p99, p99_alone) = (millis(&beside, 99), millis(&alone, 99));
    eprintln!("== beside the fence p50 {p50:?} p99 {p99:?} ms, alone {p50_alone:?} {p99_alone:?}");
    Ok(json!({
        "engine": "surefoot-postgres",
        "concurrency": args.concurrency,
        "steps_in_all": (alone.len() + beside.len()) * args.steps,
        "p50_ms": p50,
        "p99_ms": p99,
        "alone_p50_ms": p50_alone,
        "alone_p99_ms": p99_alone,
    })
    .to_string())
}

/// From event to known end, of so many runs at a time for nearly as long as the row is held.
async fn latencies<S: TxStore + Clone>(
    kernel: &Kernel<S>,
    at_once: usize,
) -> Result<Vec<Duration>, Failed> {
    let until = Instant::now() + HELD.mul_f64(0.9);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..at_once {
        let kernel = kernel.clone();
        tasks.spawn(async move {
            let mut seen = Vec::new();
            while Instant::now() < until {
                let began = Instant::now();
                one_run(&kernel).await?;
                seen.push(began.elapsed());
            }
            Ok::<Vec<Duration>, Failed>(seen)
        });
    }
    let mut seen = Vec::new();
    while let Some(some) = tasks.join_next().await {
        seen.extend(some??);
    }
    seen.sort_unstable();
    Ok(seen)
}
