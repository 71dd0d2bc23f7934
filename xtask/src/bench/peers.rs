//! The turns of others: load programs in a folder that is given, each with a `run.sh` that appends what it measured to a file.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::given::Given;
use super::machine::{OTHERS_MAX_PERCENT, percent};
use super::report::Measured;
use super::server::Database;
use crate::failure::Failure;
use crate::process;

/// The limits: not an engine, the least that one can do.
const LIMITS: &str = "bound";
/// How many runs at once everybody is measured with.
const AT_ONCE: [&str; 3] = ["50", "200", "500"];
/// What their wrapper waits within a measured phase, in all.
const PHASE_REST: Duration = Duration::from_millis(2_300);

/// The folder, and which of them are asked for.
#[derive(Debug)]
pub(super) struct Peers {
    given: Given,
    names: Vec<String>,
}

impl Peers {
    pub(super) const fn new(given: Given, names: Vec<String>) -> Self {
        Self { given, names }
    }

    /// Starts the server that they are measured on, with their own settings.
    pub(super) fn database(&self) -> Result<Database, Failure> {
        let script = ". \"$1/lib/lib.sh\" && pg_start && echo \"$PG_PID $PG_PORT\"";
        let said = process::capture(&mut self.given.shell(script))?;
        let mut words = said.lines().last().unwrap_or_default().split_whitespace();
        let pid = words.next().and_then(|word| word.parse().ok());
        let (Some(pid), Some(port)) = (pid, words.next()) else {
            return Err(Failure::new(format!("the server of the peers was not started: `{said}`")));
        };
        let url = format!("postgres://bench:bench@127.0.0.1:{port}/postgres");
        Ok(Database::of_others(url, pid))
    }

    /// One turn of each of them.
    pub(super) fn round(&self, round: usize, scratch: &Path) -> Result<Vec<Measured>, Failure> {
        let results = scratch.join("peers.jsonl");
        let mut measured = Vec::new();
        for name in std::iter::once(LIMITS).chain(self.names.iter().map(String::as_str)) {
            for at_once in AT_ONCE {
                drop(std::fs::remove_file(&results));
                let mut command = self.given.script(&format!("{name}/run.sh"));
                command.env("RESULTS", &results).env("CORE", "1").env("REPS", "1");
                command.env("ROUND", round.to_string()).env("CONCURRENCY", at_once);
                // What it prints is for people, and standard output is ours.
                process::capture(&mut command)?;
                let text = std::fs::read_to_string(&results);
                let text = text.map_err(|_| Failure::new(format!("`{name}` measured nothing")))?;
                measured.extend(read(&text, at_once.parse().unwrap_or(50)));
            }
        }
        Ok(measured)
    }
}

/// Their lines, as ours.
fn read(lines: &str, at_once: usize) -> Vec<Measured> {
    let mut engines: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
    for line in lines.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        let text = |name: &str| line[name].as_str().map(str::to_owned);
        if let (Some(peer), Some(metric), Some(value)) =
            (text("peer"), text("metric"), line["value"].as_f64())
        {
            engines.entry(peer).or_default().insert(metric, value);
        }
    }
    engines.iter().flat_map(|(engine, figures)| measured(engine, figures, at_once)).collect()
}

fn measured(engine: &str, figures: &BTreeMap<String, f64>, at_once: usize) -> Vec<Measured> {
    let number = |name: &str| figures.get(name).copied();
    let (at_once, base) = match engine.rsplit_once("-c") {
        Some((base, number)) if number.parse::<usize>().is_ok() => {
            (number.parse().unwrap_or(at_once), base)
        }
        _ => (at_once, engine),
    };
    let (kind, name) = match base {
        "bound-pg-upd" => ("idempotent", "limit-postgres"),
        "bound-pg-fold" => ("pure", "limit-postgres"),
        "bound-sqlite-full" => ("idempotent", "limit-sqlite"),
        other => ("idempotent", other),
    };
    let of = |workload: String| Measured {
        workload,
        engine: name.to_owned(),
        at_once,
        per_s: None,
        p50_ms: None,
        p99_ms: None,
        cpu_us_per_step: None,
        wal_bytes_per_step: None,
        durability: None,
        void: false,
    };
    let mut measured = Vec::new();
    let rate = number("steps_per_s");
    let void = others_percent(figures).is_some_and(|others| others > OTHERS_MAX_PERCENT);
    let with_rate = |workload: String| Measured {
        per_s: rate,
        cpu_us_per_step: number("tp_cpu_us_per_step"),
        wal_bytes_per_step: number("tp_wal_bytes_per_step"),
        void,
        ..of(workload)
    };
    if rate.is_some() {
        measured.push(with_rate(format!("ten_{kind}_best")));
        if at_once == 50 {
            measured.push(with_rate(format!("ten_{kind}_50")));
        }
    }
    if let (Some(p50), true) = (number("lat1_p50_ms"), kind == "idempotent") {
        let idle = of("one_step_idle".to_owned());
        measured.push(Measured { p50_ms: Some(p50), p99_ms: number("lat1_p99_ms"), ..idle });
    }
    measured
}

/// What others had of the machine while the rate was taken. How long that was follows from how much was done.
fn others_percent(figures: &BTreeMap<String, f64>) -> Option<f64> {
    let of = |name: &str| figures.get(name).copied();
    let mine: f64 =
        ["tp_cpu_client", "tp_cpu_pg", "tp_cpu_server"].into_iter().filter_map(of).sum();
    let steps = mine * 1e6 / of("tp_cpu_us_per_step")?;
    let took = Duration::try_from_secs_f64(steps / of("steps_per_s")?).ok()?;
    Some(percent(of("tp_cpu_other")?, took + PHASE_REST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(peer: &str, metric: &str, value: f64) -> String {
        serde_json::json!({ "peer": peer, "metric": metric, "value": value }).to_string()
    }

    #[test]
    fn the_limits_are_known_by_what_they_limit() {
        let lines = [
            line("bound-pg-upd", "steps_per_s", 20.0),
            line("bound-pg-upd", "lat1_p50_ms", 1.5),
            line("bound-pg-upd-c500", "steps_per_s", 50.0),
            line("bound-pg-fold", "steps_per_s", 90.0),
        ];
        let read = read(&lines.join("\n"), 50);
        let rows: Vec<(&str, &str, usize)> =
            read.iter().map(|it| (it.workload.as_str(), it.engine.as_str(), it.at_once)).collect();
        let limit = "limit-postgres";
        let expected = [
            ("ten_pure_best", limit, 50),
            ("ten_pure_50", limit, 50),
            ("ten_idempotent_best", limit, 50),
            ("ten_idempotent_50", limit, 50),
            ("one_step_idle", limit, 50),
            ("ten_idempotent_best", limit, 500),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_turn_in_which_others_had_much_is_void() {
        let figures = |other: f64| {
            let of = [
                ("steps_per_s", 10_000.0),
                ("tp_cpu_client", 1.0),
                ("tp_cpu_pg", 2.0),
                ("tp_cpu_us_per_step", 100.0),
                ("tp_cpu_other", other),
            ];
            let of = of.map(|(name, value)| (name.to_owned(), value));
            measured("bound-pg-upd", &BTreeMap::from(of), 50).first().map(|it| it.void)
        };
        assert_eq!(figures(0.01), Some(false));
        assert_eq!(figures(1_000.0), Some(true));
    }

    #[test]
    fn a_line_that_is_none_is_passed_over() {
        assert!(read("not JSON\n{}", 50).is_empty());
    }
}
