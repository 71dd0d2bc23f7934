//! How soon a run starts in another process that hears of it over the wake bus.

use std::process::Stdio;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use surefoot::nats::Nats;
use surefoot::prelude::*;
use surefoot::sync::Namespace;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::Failed;

const APP: &str = "bench";
const SCOPE: &str = "latency";
const WORKFLOW: &str = "inputs:\n  sent: { type: integer, required: true }\ntriggers:\n  begin:\n    with: { sent: \"${{ trigger.sent }}\" }\nsteps:\n  - took: { sent: \"${{ inputs.sent }}\" }\n";
/// Nothing of one start is left when the next one begins.
const PAUSE: Duration = Duration::from_millis(30);

/// One clock for all processes of a machine, in microseconds.
fn now_us() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1_000
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Begin {
    sent: i64,
}

impl Trigger for Begin {
    const KIND: &'static str = "begin";
    const EVENT: &'static str = "bench.begin";
}

/// Says how long ago the event was about to be emitted.
#[derive(Debug, Clone, Copy)]
struct Took;

impl Idempotent for Took {
    const NAME: &'static str = "took";
    const ABOUT: &'static str = "Tells how long the start took.";
    type Input = Begin;
    type Output = i64;

    async fn run(&self, _: &IdempotentCx, begin: Begin) -> ActionResult<i64> {
        let took = now_us() - begin.sent;
        println!("took {took}");
        Ok(took)
    }

    async fn plan(&self, _: &StepCx, _: &Begin) -> PlanResult<i64> {
        Ok(Planned::new("Tell"))
    }
}

fn module() -> Result<Module, Failed> {
    Ok(Module::builder(APP, 1).trigger::<Begin>().idempotent(Took).build()?)
}

/// The other process.
pub(crate) async fn work(url: &str, namespace: &str, file: &str) -> Result<(), Failed> {
    let nats = Nats::connect(url, Namespace::new(namespace)?).await?;
    let kernel = Kernel::new(APP, SqliteStore::open(file).await?);
    let worker = kernel.worker(module()?).wake_bus(nats.wake_bus()).start().await?;
    println!("ready");
    // Until the parent ends it.
    std::future::pending::<()>().await;
    drop(worker);
    Ok(())
}

pub(crate) async fn measure(url: &str, starts: usize) -> Result<String, Failed> {
    let folder = std::env::temp_dir().join(format!("surefoot-bench-sync-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let measured = starting(url, starts, &folder.join("bench.db").display().to_string()).await;
    drop(std::fs::remove_dir_all(&folder));
    measured
}

async fn starting(url: &str, starts: usize, file: &str) -> Result<String, Failed> {
    let namespace = format!("latency-{}", std::process::id());
    let nats = Nats::connect(url, Namespace::new(namespace.clone())?).await?;
    let store = SqliteStore::open(file).await?;
    let kernel = Kernel::builder(APP, store).wake_bus(nats.wake_bus()).build();
    let scope = kernel.scope(SCOPE);
    scope.publish(module()?.manifest(), Publication::new("latency", WORKFLOW)).await?;
    let mut worker = Command::new(std::env::current_exe()?);
    worker.args(["--nats", url, "--worker", file, "--namespace", &namespace]);
    let mut worker = worker.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let said = worker.stdout.take().ok_or("the worker says nothing")?;
    let mut said = BufReader::new(said).lines();
    while said.next_line().await?.ok_or("the worker ended")? != "ready" {}
    let mut took_us: Vec<i64> = Vec::with_capacity(starts);
    // The first ones warm up.
    for number in 0..starts + 10 {
        scope.emit(Begin { sent: now_us() }.event()).await?;
        let line = said.next_line().await?.ok_or("the worker ended")?;
        let took = line.strip_prefix("took ").ok_or("the worker said something else")?.parse()?;
        if number >= 10 {
            took_us.push(took);
        }
        tokio::time::sleep(PAUSE).await;
    }
    took_us.sort_unstable();
    let at =
        |percent: usize| took_us.get(took_us.len() * percent / 100).map(|took| *took as f64 / 1e3);
    Ok(json!({
        "operation": "start in another process", "starts": starts,
        "p50_ms": at(50), "p90_ms": at(90), "p99_ms": at(99),
    })
    .to_string())
}
