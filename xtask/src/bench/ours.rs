//! Our own turns: the load program of `benches`, once for each workload and store.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::machine::{Moment, OTHERS_MAX_PERCENT, Used};
use super::realtime::RealTime;
use super::report::Measured;
use super::server::Database;
use crate::failure::Failure;
use crate::process;
use crate::workspace::Workspace;

/// What is done, how much of it, and how many runs at the same time.
#[derive(Debug, Clone, Copy)]
struct Workload {
    name: &'static str,
    kind: &'static str,
    steps: usize,
    /// At the same time. The best of several counts.
    at_once: &'static [usize],
    runs_postgres: usize,
    runs_sqlite: usize,
    /// Other arguments of the load program.
    more: &'static [&'static str],
    when: When,
}

/// In which rounds a workload is measured, and on what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    /// In each round that is not a quick one.
    Thorough,
    /// As before, on PostgreSQL only.
    OnPostgres,
    /// Once, on PostgreSQL: it fills a database first.
    Once,
}

const AT_BEST: &[usize] = &[50, 200, 500];

const WORKLOADS: [Workload; 16] = [
    Workload {
        when: When::Always,
        ..Workload::ten("ten_idempotent_50", "idempotent", &[50], 3_000)
    },
    Workload {
        when: When::Always,
        ..Workload::ten("ten_idempotent_best", "idempotent", AT_BEST, 6_000)
    },
    Workload::ten("ten_pure_best", "pure", AT_BEST, 10_000),
    Workload::ten("ten_transactional_best", "transactional", AT_BEST, 2_000),
    Workload {
        more: &["--workload", "limit"],
        when: When::OnPostgres,
        ..Workload::ten("ten_transactional_best", "transactional", AT_BEST, 2_000)
    },
    Workload::ten("ten_ambiguous_best", "ambiguous", AT_BEST, 4_000),
    Workload { steps: 1, ..Workload::ten("one_step_idle", "idempotent", &[1], 300) },
    Workload {
        more: &["--workload", "emit"],
        ..Workload::ten("emit_now_50", "idempotent", &[50], 10_000)
    },
    Workload {
        more: &["--workload", "backlog"],
        ..Workload::ten("ten_idempotent_200_from_a_backlog", "idempotent", &[200], 6_000)
    },
    Workload {
        more: &["--workload", "fence"],
        when: When::OnPostgres,
        ..Workload::ten("ten_idempotent_100_beside_a_fence", "idempotent", &[100], 1)
    },
    Workload::claims("claim_1k", &["--workload", "claim", "--queued", "1000"]),
    Workload::claims("claim_1m", &["--workload", "claim", "--queued", "1000000"]),
    Workload::claims(
        "claim_1k_foreign_1m",
        &["--workload", "claim", "--queued", "1000", "--foreign", "1000000"],
    ),
    Workload {
        more: &["--stored", "10000"],
        when: When::Once,
        ..Workload::ten("ten_idempotent_50_stored_10k", "idempotent", &[50], 5_000)
    },
    Workload {
        more: &["--stored", "1000000"],
        when: When::Once,
        ..Workload::ten("ten_idempotent_50_stored_1m", "idempotent", &[50], 5_000)
    },
    Workload {
        more: &["--stored", "10000000"],
        when: When::Once,
        ..Workload::ten("ten_idempotent_50_stored_10m", "idempotent", &[50], 5_000)
    },
];

impl Workload {
    const fn ten(
        name: &'static str,
        kind: &'static str,
        at_once: &'static [usize],
        runs: usize,
    ) -> Self {
        Self {
            name,
            kind,
            steps: 10,
            at_once,
            runs_postgres: runs,
            runs_sqlite: runs / 2,
            more: &[],
            when: When::Thorough,
        }
    }

    const fn claims(name: &'static str, more: &'static [&'static str]) -> Self {
        Self { more, when: When::Once, ..Self::ten(name, "idempotent", &[1], 1) }
    }

    fn is_in(&self, round: usize, quick: bool) -> bool {
        match self.when {
            When::Always => true,
            When::Thorough | When::OnPostgres => !quick,
            When::Once => !quick && round == 0,
        }
    }

    fn stores(&self) -> &'static [Store] {
        match self.when {
            When::Always | When::Thorough => &[Store::Postgres, Store::Sqlite],
            When::OnPostgres | When::Once => &[Store::Postgres],
        }
    }
}

/// Builds the load program, optimised.
pub(super) fn build(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let mut cargo = process::cargo();
    cargo.current_dir(&workspace.root).args(["build", "--release", "-p", "surefoot-bench"]);
    process::run("the load program", &mut cargo)?;
    Ok(workspace.target().join("release").join("surefoot-bench"))
}

/// The load program, and where it runs.
#[derive(Debug)]
pub(super) struct Ours<'a> {
    pub(super) program: PathBuf,
    pub(super) database: &'a Database,
    pub(super) real_time: RealTime,
    /// For files of SQLite: on a disk.
    pub(super) folder: PathBuf,
}

#[derive(Debug, Clone, Copy)]
enum Store {
    Postgres,
    Sqlite,
}

impl Ours<'_> {
    /// One turn of everything.
    pub(super) fn round(&self, round: usize, quick: bool) -> Result<Vec<Measured>, Failure> {
        let mut measured = Vec::new();
        for workload in WORKLOADS.iter().filter(|it| it.is_in(round, quick)) {
            for at_once in workload.at_once {
                for store in workload.stores() {
                    measured.push(self.turn(*workload, *at_once, *store)?);
                }
            }
        }
        Ok(measured)
    }

    fn turn(&self, workload: Workload, at_once: usize, store: Store) -> Result<Measured, Failure> {
        let (url, runs, server) = match store {
            Store::Postgres => {
                (self.database.url.clone(), workload.runs_postgres, self.database.pid)
            }
            Store::Sqlite => {
                remade(&self.folder)?;
                (format!("sqlite:{}/bench.db", self.folder.display()), workload.runs_sqlite, None)
            }
        };
        let mut command = self.real_time.command(&self.program);
        command.args(["--store", &url, "--kind", workload.kind]);
        command.args(["--steps", &workload.steps.to_string(), "--runs", &runs.to_string()]);
        command.args(["--concurrency", &at_once.to_string()]).args(workload.more);
        let (figures, used) = watched(&mut command, server)?;
        let number = |name: &str| figures[name].as_f64();
        let engine = figures["engine"].as_str().unwrap_or("surefoot").to_owned();
        let others = used.others_percent();
        eprintln!(
            "{:28} {engine:18} {at_once:4} at once {:9.0}/s  p99 {:8.2} ms  others {others:.0} %",
            workload.name,
            number("per_s").unwrap_or_default(),
            number("p99_ms").unwrap_or_default()
        );
        let done = number("steps_in_all").unwrap_or(1.0);
        Ok(Measured {
            workload: workload.name.to_owned(),
            engine,
            at_once,
            per_s: number("per_s"),
            p50_ms: number("p50_ms"),
            p99_ms: number("p99_ms"),
            cpu_us_per_step: Some(used.named.as_secs_f64() * 1e6 / done),
            wal_bytes_per_step: number("wal_bytes_per_step"),
            durability: figures["durability"].as_str().map(str::to_owned),
            void: others > OTHERS_MAX_PERCENT,
        })
    }
}

/// An empty folder.
fn remade(folder: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("{}: {error}", folder.display()));
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(failed)?;
    }
    std::fs::create_dir_all(folder).map_err(failed)
}

/// Runs a load program: its figures, and what it and the server used between the marks that it prints.
pub(super) fn watched(
    command: &mut Command,
    server: Option<u32>,
) -> Result<(Value, Used), Failure> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let failed = |error: std::io::Error| Failure::new(format!("the load program: {error}"));
    let mut child = command.spawn().map_err(failed)?;
    let roots: Vec<u32> = server.into_iter().chain([child.id()]).collect();
    let heard = hear(&mut child, &roots);
    if heard.is_err() {
        // It may have ended already.
        drop(child.kill());
    }
    let status = child.wait().map_err(failed)?;
    let (figures, used) = heard?;
    if !status.success() {
        return Err(Failure::new(format!("the load program failed ({status}); see above")));
    }
    Ok((figures, used))
}

fn hear(child: &mut Child, roots: &[u32]) -> Result<(Value, Used), Failure> {
    let out = child.stdout.take().ok_or_else(|| Failure::new("the load program has no output"))?;
    let (mut began, mut used, mut figures) = (None, None, None);
    for line in BufReader::new(out).lines() {
        let line = line.map_err(|error| Failure::new(format!("the load program: {error}")))?;
        let said: Value = serde_json::from_str(&line)
            .map_err(|error| Failure::new(format!("the load program said `{line}`: {error}")))?;
        match said["mark"].as_str() {
            Some("start") => began = Some(Moment::now(roots)?),
            Some(_) => {
                let now = Moment::now(roots)?;
                used = began.as_ref().map(|began: &Moment| began.until(&now));
            }
            None => figures = Some(said),
        }
    }
    figures.zip(used).ok_or_else(|| Failure::new("the load program measured nothing; see above"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_round_has_the_idempotent_steps_alone() {
        let names = |round, quick| -> Vec<&str> {
            let wanted = WORKLOADS.iter().filter(|it| it.is_in(round, quick));
            wanted.map(|it| it.name).collect()
        };
        assert_eq!(names(0, true), ["ten_idempotent_50", "ten_idempotent_best"]);
        assert_eq!(names(0, false).len(), WORKLOADS.len());
        assert!(!names(1, false).iter().any(|name| name.starts_with("claim_")));
    }

    #[test]
    fn what_fills_a_database_is_for_a_server() {
        let filled = WORKLOADS.iter().filter(|it| it.when == When::Once);
        assert!(filled.flat_map(Workload::stores).all(|store| matches!(store, Store::Postgres)));
    }
}
