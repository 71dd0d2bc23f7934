//! The load programs behind `cargo xtask bench`: one workload on one store, and its figures as one JSON line.

mod backlog;
mod claim;
mod emit;
mod fence;
mod fill;
mod limit;
mod load;
mod log;
mod look;
mod measure;
mod postgres;
mod soak;
mod sqlite;
mod verdict;

use std::process::ExitCode;

use clap::Parser;

use load::Kind;

/// Tasks free on one thread what was allocated on another, where the allocator of glibc makes threads wait.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Why there are no figures.
pub(crate) type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Runs one workload on one store and prints what was measured as a JSON line.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// `sqlite:FILE`, a file that does not exist yet, or the `postgres://` URL of a server on which a database is made
    /// for the time of the load.
    #[arg(long)]
    store: String,
    /// What is done.
    #[arg(long, value_enum, default_value = "steps")]
    workload: Workload,
    /// What the steps call.
    #[arg(long, value_enum, default_value = "idempotent")]
    kind: Kind,
    /// Steps of a run.
    #[arg(long, default_value_t = 10)]
    steps: usize,
    /// Runs in all.
    #[arg(long, default_value_t = 1_000)]
    runs: usize,
    /// Runs at the same time.
    #[arg(long, default_value_t = 50)]
    concurrency: usize,
    /// Steps of ended runs that are in the store before it begins (PostgreSQL); for `look`, ended runs.
    #[arg(long, default_value_t = 0)]
    stored: usize,
    /// Runs that wait for a worker before `claim` begins (PostgreSQL).
    #[arg(long, default_value_t = 1_000)]
    queued: usize,
    /// So many more wait for a module that nobody has.
    #[arg(long, default_value_t = 0)]
    foreign: usize,
    /// How long `soak` goes on.
    #[arg(long, default_value_t = 10)]
    minutes: usize,
}

/// What is done and measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Workload {
    /// Runs from their events to their known ends.
    Steps,
    /// Events, each with the run that it starts; nobody works.
    Emit,
    /// Runs that all wait before the worker starts, until their known ends.
    Backlog,
    /// Claims and passes of recovery (PostgreSQL).
    Claim,
    /// The least that transactional steps cost, without a kernel (PostgreSQL).
    Limit,
    /// Runs alone, and beside a step that keeps its run's row locked for five seconds (PostgreSQL).
    Fence,
    /// Runs for minutes, at 70 % of what is possible: whether anything grows (PostgreSQL).
    Soak,
    /// Pages of the console and answers of the API on a store with very many runs (PostgreSQL).
    Look,
}

#[tokio::main]
async fn main() -> ExitCode {
    log::count_warnings();
    let done = run(&Args::parse()).await;
    match done {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("surefoot-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> Result<String, Failed> {
    match args.store.split_once(':') {
        Some(("sqlite", file)) => sqlite::run(args, file).await,
        Some(("postgres" | "postgresql", _)) => postgres::run(args, &args.store).await,
        _ => {
            Err(format!("`{}` is not a store: give sqlite:FILE or postgres://…", args.store).into())
        }
    }
}
