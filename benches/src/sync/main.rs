//! The load behind `cargo xtask bench --sync`: the coordination primitives beside the bare operations they are made of,
//! taking turns on the same server, and how soon a run starts in another process.

mod latency;
mod ours;
mod raw;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use serde_json::json;
use surefoot::nats::Nats;
use surefoot::sync::Namespace;

use raw::Raw;

/// Why there are no figures.
pub(crate) type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Measures and prints one JSON line for each operation: its rate, that of the bare ones, and the ratio.
#[derive(Debug, Parser)]
struct Args {
    /// The server.
    #[arg(long, env = "NATS_URL")]
    nats: String,
    /// Messages of a round.
    #[arg(long, default_value_t = 10_000)]
    messages: usize,
    /// At the same time.
    #[arg(long, default_value_t = 64)]
    at_once: usize,
    /// Locks that are taken and given back in a round, one after the other.
    #[arg(long, default_value_t = 2_000)]
    locks: usize,
    /// Runs whose start is measured.
    #[arg(long, default_value_t = 300)]
    starts: usize,
    /// Turns of each; the median counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The other process: a worker on this file.
    #[arg(long, hide = true)]
    worker: Option<String>,
    /// Its namespace.
    #[arg(long, hide = true, default_value = "bench")]
    namespace: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("surefoot-bench-sync: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> Result<(), Failed> {
    if let Some(file) = &args.worker {
        return latency::work(&args.nats, &args.namespace, file).await;
    }
    let mut rates: Vec<(&str, Vec<Pair>)> = Vec::new();
    for round in 0..args.rounds {
        // Nothing of one round is in the way of the next.
        let namespace = Namespace::new(format!("bench-{}-{round}", std::process::id()))?;
        let nats = Nats::connect(&args.nats, namespace.clone()).await?;
        let raw = Raw::connect(&args.nats, namespace.as_str()).await?;
        for (name, pair) in turns(args, &nats, &raw, round).await? {
            match rates.iter_mut().find(|(known, _)| *known == name) {
                Some((_, pairs)) => pairs.push(pair),
                None => rates.push((name, vec![pair])),
            }
        }
        raw.remove_all(namespace.as_str()).await?;
    }
    for (name, pairs) in rates {
        println!("{}", line(name, pairs));
    }
    println!("{}", latency::measure(&args.nats, args.starts).await?);
    Ok(())
}

/// What the bare operations took, and what ours took.
#[derive(Debug, Clone, Copy)]
struct Pair {
    count: usize,
    raw: Duration,
    ours: Duration,
}

async fn turns(
    args: &Args,
    nats: &Nats,
    raw: &Raw,
    round: usize,
) -> Result<Vec<(&'static str, Pair)>, Failed> {
    let (count, at_once) = (args.messages, args.at_once);
    let jobs = ours::jobs(nats).await?;
    let locks = ours::mutex(nats).await?;
    raw.declare(at_once).await?;
    let mut pairs = Vec::new();
    // Who is first in one round is second in the next.
    let swap = round % 2 == 1;
    let (raw_took, took) =
        both(swap, raw.publish(count, at_once), ours::submit(&jobs, count, at_once)).await?;
    pairs.push(("submit", Pair { count, raw: raw_took, ours: took }));
    let (raw_took, took) =
        both(swap, raw.consume(count, at_once), ours::process(&jobs, count, at_once)).await?;
    pairs.push(("process", Pair { count, raw: raw_took, ours: took }));
    let count = args.locks;
    let (raw_took, took) = both(swap, raw.lock(count), ours::lock(&locks, count)).await?;
    pairs.push(("lock and release", Pair { count, raw: raw_took, ours: took }));
    Ok(pairs)
}

async fn both(
    swap: bool,
    raw: impl Future<Output = Result<(), Failed>>,
    ours: impl Future<Output = Result<(), Failed>>,
) -> Result<(Duration, Duration), Failed> {
    if swap {
        let ours = timed(ours).await?;
        Ok((timed(raw).await?, ours))
    } else {
        Ok((timed(raw).await?, timed(ours).await?))
    }
}

async fn timed(work: impl Future<Output = Result<(), Failed>>) -> Result<Duration, Failed> {
    let began = Instant::now();
    work.await?;
    Ok(began.elapsed())
}

fn line(name: &str, pairs: Vec<Pair>) -> String {
    let rate = |pair: &Pair, took: Duration| pair.count as f64 / took.as_secs_f64();
    let raw = median(pairs.iter().map(|pair| rate(pair, pair.raw)).collect());
    let ours = median(pairs.iter().map(|pair| rate(pair, pair.ours)).collect());
    let ratio =
        median(pairs.iter().map(|pair| pair.raw.as_secs_f64() / pair.ours.as_secs_f64()).collect());
    json!({ "operation": name, "raw_per_s": raw, "ours_per_s": ours, "ours_of_raw": ratio })
        .to_string()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
