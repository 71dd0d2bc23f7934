//! What a soak is judged by: its last three minutes beside an earlier part of it.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use serde_json::{Value, json};

/// Each bucket is two percent wider than the one before.
const STEP: f64 = 1.02;
/// From a microsecond to beyond an hour.
const BUCKETS: usize = 1_200;

/// The minutes that the last ones are compared with: from the second to the fifth.
const EARLY: Range<usize> = 1..5;
const LATE: usize = 3;
/// How much more the last minutes may have, in percent.
const MEMORY_MAX: f64 = 5.0;
const P99_MAX: f64 = 20.0;
/// Dead rows of a table: either is few enough.
const DEAD_MAX_PERCENT: i64 = 20;
const DEAD_MAX: i64 = 50_000;

/// Latencies, in memory that does not grow with their number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Histogram(Vec<u64>);

impl Default for Histogram {
    fn default() -> Self {
        Self(vec![0; BUCKETS])
    }
}

impl Histogram {
    pub(crate) fn add(&mut self, latency: Duration) {
        let micros = (latency.as_secs_f64() * 1e6).max(1.0);
        let bucket = (micros.ln() / STEP.ln()) as usize;
        if let Some(count) = self.0.get_mut(bucket.min(BUCKETS - 1)) {
            *count += 1;
        }
    }

    fn and(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(count, more)| *count += more);
        self
    }

    fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The latency in milliseconds that so many of a hundred do not pass.
    fn percentile_ms(&self, percent: u64) -> f64 {
        let wanted = self.count() * percent / 100;
        let mut seen = 0;
        for (bucket, count) in self.0.iter().enumerate() {
            seen += count;
            if seen > wanted {
                return STEP.powf(bucket as f64 + 1.0) / 1e3;
            }
        }
        0.0
    }
}

/// Rows of a table as the server counts them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) live: i64,
    pub(crate) dead: i64,
}

impl Table {
    const fn is_bloated(&self) -> bool {
        self.dead > DEAD_MAX && self.dead * 100 > self.live * DEAD_MAX_PERCENT
    }
}

/// One minute of load.
#[derive(Debug, Clone, Default)]
pub(crate) struct Minute {
    pub(crate) latencies: Histogram,
    pub(crate) memory: Vec<u64>,
    /// At its end.
    pub(crate) tables: Vec<Table>,
}

impl fmt::Display for Minute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dead = self.tables.iter().max_by_key(|table| table.dead);
        let (runs, p50, p99) = (
            self.latencies.count(),
            self.latencies.percentile_ms(50),
            self.latencies.percentile_ms(99),
        );
        let memory = self.memory.last().copied().unwrap_or_default();
        write!(f, "{runs} runs, p50 {p50:.1} ms, p99 {p99:.1} ms, {memory} KiB")?;
        match dead {
            Some(table) => write!(f, ", most dead rows: {} of {}", table.dead, table.name),
            None => Ok(()),
        }
    }
}

/// A soak that is over.
#[derive(Debug, Default)]
pub(crate) struct Soaked {
    pub(crate) minutes: Vec<Minute>,
    /// Lines of the log that are warnings, or worse.
    pub(crate) warnings: u64,
}

impl Soaked {
    /// What has grown that should not; empty is well.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let late = self.minutes.len().saturating_sub(LATE)..self.minutes.len();
        let mut complaints = if late.start < EARLY.end {
            vec![format!("{} minutes are too few to compare", self.minutes.len())]
        } else {
            self.growth(late.clone())
        };
        for minute in self.minutes.get(late).unwrap_or_default() {
            for table in minute.tables.iter().filter(|table| table.is_bloated()) {
                complaints.push(format!(
                    "table {}: {} dead rows beside {} live ones",
                    table.name, table.dead, table.live
                ));
            }
        }
        if self.warnings > 0 {
            complaints.push(format!("{} warnings in the log", self.warnings));
        }
        complaints
    }

    /// What the last minutes take more of than the early ones.
    fn growth(&self, late: Range<usize>) -> Vec<String> {
        let figures = [
            ("memory in KiB", self.memory(EARLY), self.memory(late.clone()), MEMORY_MAX),
            ("p99 in ms", self.p99(EARLY), self.p99(late), P99_MAX),
        ];
        let grown =
            figures.iter().filter(|(_, early, late, most)| *late > early * (1.0 + most / 100.0));
        grown
            .map(|(what, early, late, _)| format!("{what}: {early:.1} early, {late:.1} late"))
            .collect()
    }

    /// As one JSON object.
    pub(crate) fn figures(&self) -> Value {
        let late = self.minutes.len().saturating_sub(LATE)..self.minutes.len();
        let tables: Vec<Value> = self.minutes.last().map_or_else(Vec::new, |minute| {
            let row = |it: &Table| json!({ "table": it.name, "live": it.live, "dead": it.dead });
            minute.tables.iter().map(row).collect()
        });
        json!({
            "engine": "surefoot-postgres",
            "minutes": self.minutes.len(),
            "runs": self.minutes.iter().map(|it| it.latencies.count()).sum::<u64>(),
            "memory_kib_early": self.memory(EARLY),
            "memory_kib_late": self.memory(late.clone()),
            "p99_ms_early": self.p99(EARLY),
            "p99_ms_late": self.p99(late),
            "tables": tables,
            "warnings": self.warnings,
            "complaints": self.complaints(),
        })
    }

    /// The mean over some minutes.
    fn memory(&self, of: Range<usize>) -> f64 {
        let samples = self.part(of).iter().flat_map(|minute| &minute.memory);
        let (count, sum) = samples.fold((0_u32, 0.0), |(n, sum), kib| (n + 1, sum + *kib as f64));
        sum / f64::from(count.max(1))
    }

    fn p99(&self, of: Range<usize>) -> f64 {
        let all = self.part(of).iter().map(|minute| &minute.latencies);
        all.fold(Histogram::default(), Histogram::and).percentile_ms(99)
    }

    /// As far as there are such minutes.
    fn part(&self, of: Range<usize>) -> &[Minute] {
        let end = of.end.min(self.minutes.len());
        self.minutes.get(of.start.min(end)..end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(memory: u64, latency_ms: u64, dead: i64) -> Minute {
        let mut latencies = Histogram::default();
        (0..100).for_each(|_| latencies.add(Duration::from_millis(latency_ms)));
        let tables = vec![Table { name: "run".to_owned(), live: 1_000, dead }];
        Minute { latencies, memory: vec![memory], tables }
    }

    fn soaked(late: &Minute) -> Soaked {
        let early = minute(1_000, 10, 0);
        let minutes = (0..10).map(|at| if at < 7 { early.clone() } else { late.clone() });
        Soaked { minutes: minutes.collect(), warnings: 0 }
    }

    #[test]
    fn what_stays_as_it_was_is_well() {
        assert_eq!(soaked(&minute(1_040, 11, 50_000)).complaints(), Vec::<String>::new());
    }

    #[test]
    fn what_grows_is_complained_of() {
        for (late, what) in [
            (minute(1_060, 10, 0), "memory"),
            (minute(1_000, 13, 0), "p99"),
            (minute(1_000, 10, 50_001), "table run"),
        ] {
            let complaints = soaked(&late).complaints();
            assert!(complaints.iter().all(|it| it.starts_with(what)), "{complaints:?}");
            assert!(!complaints.is_empty(), "{what}");
        }
        let warned = Soaked { warnings: 1, ..soaked(&minute(1_000, 10, 0)) };
        assert_eq!(warned.complaints(), ["1 warnings in the log"]);
    }

    #[test]
    fn few_minutes_show_nothing() {
        let short = Soaked { minutes: vec![minute(1, 1, 0)], warnings: 0 };
        assert_eq!(short.complaints(), ["1 minutes are too few to compare"]);
    }

    #[test]
    fn a_percentile_is_as_good_as_a_bucket() {
        let mut seen = Histogram::default();
        (1..=100_u64).for_each(|ms| seen.add(Duration::from_millis(ms)));
        let (p50, p99) = (seen.percentile_ms(50), seen.percentile_ms(99));
        assert!((50.0..53.0).contains(&p50) && (99.0..103.0).contains(&p99), "{p50} {p99}");
    }
}
