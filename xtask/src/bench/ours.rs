//! Our own turns: the load program of `benches`, once for each workload and store.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::machine::{Moment, OTHERS_MAX_PERCENT};
use super::report::Measured;
use super::server::Database;
use crate::failure::Failure;
use crate::process;
use crate::workspace::Workspace;

/// Which steps, how many of them, and how many runs at the same time.
#[derive(Debug, Clone, Copy)]
struct Workload {
    name: &'static str,
    kind: &'static str,
    steps: usize,
    /// At the same time. The best of several counts.
    at_once: &'static [usize],
    runs_postgres: usize,
    runs_sqlite: usize,
}

const AT_BEST: &[usize] = &[50, 200, 500];

const WORKLOADS: [Workload; 6] = [
    Workload::ten("ten_idempotent_50", "idempotent", &[50], 3_000),
    Workload::ten("ten_idempotent_best", "idempotent", AT_BEST, 6_000),
    Workload::ten("ten_pure_best", "pure", AT_BEST, 10_000),
    Workload::ten("ten_transactional_best", "transactional", AT_BEST, 3_000),
    Workload::ten("ten_ambiguous_best", "ambiguous", AT_BEST, 6_000),
    Workload {
        name: "one_step_idle",
        kind: "idempotent",
        steps: 1,
        at_once: &[1],
        runs_postgres: 300,
        runs_sqlite: 300,
    },
];

impl Workload {
    const fn ten(
        name: &'static str,
        kind: &'static str,
        at_once: &'static [usize],
        runs: usize,
    ) -> Self {
        Self { name, kind, steps: 10, at_once, runs_postgres: runs, runs_sqlite: runs / 2 }
    }
}

/// Builds the load program, optimised.
pub(super) fn build(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let mut cargo = process::cargo();
    cargo.current_dir(&workspace.root).args(["build", "--release", "-p", "surefoot-bench"]);
    process::run("the load program", &mut cargo)?;
    Ok(workspace.target().join("release").join("surefoot-bench"))
}

/// One turn of everything.
pub(super) fn round(
    program: &Path,
    database: &Database,
    quick: bool,
) -> Result<Vec<Measured>, Failure> {
    let folder = std::env::temp_dir().join(format!("surefoot-bench-{}", std::process::id()));
    let mut measured = Vec::new();
    for workload in WORKLOADS.iter().filter(|it| !quick || it.name.starts_with("ten_idempotent")) {
        for at_once in workload.at_once {
            measured.push(turn(program, *workload, *at_once, Store::Postgres(database))?);
        }
        // SQLite has one writer: more at once make larger commits, and no more of them.
        let at_once = workload.at_once.last().copied().unwrap_or(1);
        std::fs::create_dir_all(&folder).map_err(|error| Failure::new(error.to_string()))?;
        let turned = turn(program, *workload, at_once, Store::Sqlite(&folder.join("bench.db")));
        // What is left behind in a temporary folder is not worth a failure.
        drop(std::fs::remove_dir_all(&folder));
        measured.push(turned?);
    }
    Ok(measured)
}

#[derive(Debug, Clone, Copy)]
enum Store<'a> {
    Postgres(&'a Database),
    Sqlite(&'a Path),
}

fn turn(
    program: &Path,
    workload: Workload,
    at_once: usize,
    store: Store<'_>,
) -> Result<Measured, Failure> {
    let (url, runs, server) = match store {
        Store::Postgres(database) => (database.url.clone(), workload.runs_postgres, database.pid),
        Store::Sqlite(file) => (format!("sqlite:{}", file.display()), workload.runs_sqlite, None),
    };
    let numbers = [workload.steps.to_string(), runs.to_string(), at_once.to_string()];
    let [steps, runs, concurrency] = &numbers;
    let mut command = Command::new(program);
    command.args(["--store", &url, "--kind", workload.kind, "--steps", steps]);
    command.args(["--runs", runs, "--concurrency", concurrency]);
    let before = Moment::now(server)?;
    let line = process::capture(&mut command)?;
    let used = before.until(&Moment::now(server)?);
    let figures: Value = serde_json::from_str(&line)
        .map_err(|error| Failure::new(format!("the load program said `{line}`: {error}")))?;
    let number = |name: &str| figures[name].as_f64();
    let client = Duration::from_secs_f64(number("client_cpu_s").unwrap_or_default());
    let others = used.others_percent(client + used.named);
    let engine = figures["engine"].as_str().unwrap_or("surefoot").to_owned();
    eprintln!(
        "{:24} {engine:18} {at_once:4} at once  {:9.0} steps/s  others {others:.0} %",
        workload.name,
        number("per_s").unwrap_or_default()
    );
    let done = number("steps_in_all").unwrap_or(1.0);
    Ok(Measured {
        workload: workload.name.to_owned(),
        engine,
        at_once,
        per_s: number("per_s"),
        p50_ms: number("p50_ms"),
        p99_ms: number("p99_ms"),
        cpu_us_per_step: Some((client + used.named).as_secs_f64() * 1e6 / done),
        wal_bytes_per_step: number("wal_bytes_per_step"),
        durability: figures["durability"].as_str().map(str::to_owned),
        void: others > OTHERS_MAX_PERCENT,
    })
}
