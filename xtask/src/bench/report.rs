//! What was measured, as medians and ratios.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;

/// One engine's turn at one workload.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measured {
    pub(super) workload: String,
    pub(super) engine: String,
    /// Runs at the same time.
    pub(super) at_once: usize,
    pub(super) per_s: Option<f64>,
    pub(super) p50_ms: Option<f64>,
    pub(super) p99_ms: Option<f64>,
    pub(super) cpu_us_per_step: Option<f64>,
    pub(super) wal_bytes_per_step: Option<f64>,
    /// What the server said of its settings.
    pub(super) durability: Option<String>,
    /// Others used too much of the machine.
    pub(super) void: bool,
}

/// Whether more is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figure {
    Rate,
    Latency,
}

/// A row: the medians of one engine at one workload.
#[derive(Debug)]
struct Row {
    workload: String,
    engine: String,
    at_once: usize,
    rounds: usize,
    void: usize,
    per_s: Option<f64>,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    cpu: Option<f64>,
    wal: Option<f64>,
    durability: Option<String>,
}

impl Row {
    fn is_ours(&self) -> bool {
        self.engine.starts_with("surefoot-")
    }

    fn is_limit(&self) -> bool {
        self.engine.starts_with("limit-")
    }

    fn figure(&self, figure: Figure) -> Option<f64> {
        match figure {
            Figure::Rate => self.per_s,
            Figure::Latency => self.p50_ms,
        }
    }
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(super) struct Report(Vec<Measured>);

impl Report {
    pub(super) fn add(&mut self, measured: Vec<Measured>) {
        self.0.extend(measured);
    }

    /// One JSON object a line.
    pub(super) fn json(&self) -> String {
        let rows = self.rows();
        let mut text = String::new();
        for row in &rows {
            let (limit, peer) = ratios(&rows, row);
            let line = json!({
                "workload": row.workload, "engine": row.engine, "at_once": row.at_once,
                "rounds": row.rounds, "void_rounds": row.void, "per_s": row.per_s,
                "p50_ms": row.p50_ms, "p99_ms": row.p99_ms, "cpu_us_per_step": row.cpu,
                "wal_bytes_per_step": row.wal, "durability": row.durability,
                "ratio_to_limit": limit, "ratio_to_best_peer": peer,
            });
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// The same for people.
    pub(super) fn table(&self) -> String {
        let rows = self.rows();
        let mut text = format!(
            "{:28} {:20} {:>7} {:>9} {:>8} {:>8} {:>8} {:>9} {:>9}  rounds\n",
            "workload",
            "engine",
            "at once",
            "steps/s",
            "p50 ms",
            "p99 ms",
            "CPU us",
            "of limit",
            "of peer"
        );
        for row in &rows {
            let (limit, peer) = ratios(&rows, row);
            let shown = |value: Option<f64>, digits: usize| {
                value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
            };
            let _ = writeln!(
                text,
                "{:28} {:20} {:>7} {:>9} {:>8} {:>8} {:>8} {:>9} {:>9}  {}{}",
                row.workload,
                row.engine,
                row.at_once,
                shown(row.per_s, 0),
                shown(row.p50_ms, 2),
                shown(row.p99_ms, 2),
                shown(row.cpu, 0),
                shown(limit, 2),
                shown(peer, 2),
                row.rounds,
                if row.void > 0 { format!(", {} void", row.void) } else { String::new() },
            );
        }
        for said in rows.iter().filter_map(|row| row.durability.as_ref()).take(1) {
            let _ = writeln!(text, "durability as the server says it: {said}");
        }
        text
    }

    /// The medians; of an engine that was measured with several numbers of runs at once, its best.
    fn rows(&self) -> Vec<Row> {
        let mut groups: BTreeMap<(&str, &str, usize), Vec<&Measured>> = BTreeMap::new();
        for one in &self.0 {
            groups.entry((&one.workload, &one.engine, one.at_once)).or_default().push(one);
        }
        let mut best: BTreeMap<(&str, &str), Row> = BTreeMap::new();
        for ((workload, engine, at_once), all) in groups {
            let row = row((workload, engine, at_once), &all);
            let rate = |row: &Row| row.per_s.unwrap_or_default();
            match best.get(&(workload, engine)) {
                Some(before) if rate(before) >= rate(&row) => {}
                _ => drop(best.insert((workload, engine), row)),
            }
        }
        best.into_values().collect()
    }
}

fn row((workload, engine, at_once): (&str, &str, usize), all: &[&Measured]) -> Row {
    // If all are void, there is nothing better; the count says so.
    let counted: Vec<&Measured> = all.iter().copied().filter(|one| !one.void).collect();
    let counted = if counted.is_empty() { all.to_vec() } else { counted };
    let of = |get: fn(&Measured) -> Option<f64>| {
        median(counted.iter().filter_map(|it| get(it)).collect())
    };
    Row {
        workload: workload.to_owned(),
        engine: engine.to_owned(),
        at_once,
        rounds: all.len(),
        void: all.iter().filter(|one| one.void).count(),
        per_s: of(|it| it.per_s),
        p50_ms: of(|it| it.p50_ms),
        p99_ms: of(|it| it.p99_ms),
        cpu: of(|it| it.cpu_us_per_step),
        wal: of(|it| it.wal_bytes_per_step),
        durability: counted.iter().find_map(|it| it.durability.clone()),
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => values.get(middle).copied(),
        _ => Some(f64::midpoint(*values.get(middle - 1)?, *values.get(middle)?)),
    }
}

/// To the limit of the same store, and to the best of the others.
fn ratios(rows: &[Row], of: &Row) -> (Option<f64>, Option<f64>) {
    let figure = if of.workload == "one_step_idle" { Figure::Latency } else { Figure::Rate };
    let Some(own) = of.figure(figure) else { return (None, None) };
    let others =
        || rows.iter().filter(|row| row.workload == of.workload && row.engine != of.engine);
    let store = of.engine.rsplit('-').next().unwrap_or_default();
    let limit = others().find(|row| row.is_limit() && row.engine.ends_with(store));
    let limit = limit.and_then(|row| row.figure(figure));
    let peers = others().filter(|row| !row.is_limit() && !row.is_ours());
    let peers = peers.filter_map(|row| row.figure(figure));
    let best = match figure {
        Figure::Rate => peers.reduce(f64::max),
        Figure::Latency => peers.reduce(f64::min),
    };
    (limit.map(|limit| own / limit), best.map(|best| own / best))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(workload: &str, engine: &str, at_once: usize, per_s: f64) -> Measured {
        Measured {
            workload: workload.to_owned(),
            engine: engine.to_owned(),
            at_once,
            per_s: Some(per_s),
            p50_ms: None,
            p99_ms: None,
            cpu_us_per_step: None,
            wal_bytes_per_step: None,
            durability: None,
            void: false,
        }
    }

    #[test]
    fn each_engine_is_compared_at_its_own_best() {
        let mut report = Report::default();
        report.add(vec![
            measured("w", "surefoot-postgres", 50, 10.0),
            measured("w", "surefoot-postgres", 500, 40.0),
            measured("w", "limit-postgres", 500, 80.0),
            measured("w", "peer-a", 50, 4.0),
            measured("w", "peer-b", 50, 5.0),
        ]);
        let rows = report.rows();
        let ours = rows.iter().find(|row| row.is_ours()).unwrap();
        assert_eq!(ours.at_once, 500);
        assert_eq!(ratios(&rows, ours), (Some(0.5), Some(8.0)));
    }

    #[test]
    fn void_rounds_do_not_count_while_there_are_others() {
        let void = Measured { void: true, ..measured("w", "surefoot-postgres", 50, 1.0) };
        let mut report = Report::default();
        report.add(vec![void, measured("w", "surefoot-postgres", 50, 9.0)]);
        let rows = report.rows();
        assert_eq!((rows[0].per_s, rows[0].rounds, rows[0].void), (Some(9.0), 2, 1));
    }

    #[test]
    fn of_latencies_the_least_is_the_best() {
        let idle = |engine: &str, p50: f64| Measured {
            per_s: None,
            p50_ms: Some(p50),
            ..measured("one_step_idle", engine, 1, 0.0)
        };
        let mut report = Report::default();
        report.add(vec![idle("surefoot-postgres", 2.0), idle("a", 4.0), idle("b", 8.0)]);
        let rows = report.rows();
        let ours = rows.iter().find(|row| row.is_ours()).unwrap();
        assert_eq!(ratios(&rows, ours).1, Some(0.5));
    }

    #[test]
    fn a_median_of_two_is_between_them() {
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }
}
