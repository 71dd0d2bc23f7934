//! What a worker did, counted: an observer that is read as text for Prometheus. Counting is one atomic addition, and
//! no label has more values than this file names.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use surefoot_kernel_core::{
    App, Code, EffectClass, Measure, Micros, NotWritten, RunId, RunState, StepKey, Trace,
};

/// The code under which the codes of applications are counted together: there is no end of them.
const OF_APPLICATION: &str = "application";

/// Upper bounds of spans: microseconds, and the same in seconds.
const SPANS: &[(u64, &str)] = &[
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (2_500_000, "2.5"),
    (5_000_000, "5"),
    (10_000_000, "10"),
    (30_000_000, "30"),
    (60_000_000, "60"),
    (300_000_000, "300"),
];

/// Upper bounds of numbers.
const NUMBERS: &[(u64, &str)] =
    &[(1, "1"), (2, "2"), (5, "5"), (10, "10"), (20, "20"), (50, "50"), (100, "100"), (200, "200")];

const CLASSES: [EffectClass; 4] = [
    EffectClass::Pure,
    EffectClass::Transactional,
    EffectClass::Idempotent,
    EffectClass::Ambiguous,
];

/// Counters and histograms of the worker of a process, in the text format of Prometheus. Clones count together.
///
/// ```
/// use surefoot_worker::Metrics;
///
/// let metrics = Metrics::new("shop");
/// // kernel.worker(module).trace(metrics.clone()).start().await?;
/// assert!(metrics.text().contains("surefoot_worker_runs_taken_total{app=\"shop\"} 0\n"));
/// ```
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    app: String,
    taken: AtomicU64,
    left: Vec<AtomicU64>,
    succeeded: AtomicU64,
    /// By the codes of the kernel; the last one is for all others.
    failed: Vec<AtomicU64>,
    lag: Histogram,
    executed: Vec<Histogram>,
    committed: Histogram,
    facts: Histogram,
    claims: Histogram,
    claimed: AtomicU64,
    not_written: Vec<AtomicU64>,
    woken: AtomicU64,
    finalised: AtomicU64,
    dispatched: AtomicU64,
}

impl Metrics {
    /// For the workers of one application in this process; the name is the label `app`.
    #[must_use]
    pub fn new(app: impl Into<App>) -> Self {
        let app: App = app.into();
        Self(Arc::new(Counts {
            app: escaped(app.as_str()),
            taken: AtomicU64::default(),
            left: zeros(RunState::ALL.len()),
            succeeded: AtomicU64::default(),
            failed: zeros(Code::ALL.len().saturating_add(1)),
            lag: Histogram::of(SPANS),
            executed: CLASSES.iter().map(|_| Histogram::of(SPANS)).collect(),
            committed: Histogram::of(SPANS),
            facts: Histogram::of(NUMBERS),
            claims: Histogram::of(SPANS),
            claimed: AtomicU64::default(),
            not_written: zeros(NotWritten::ALL.len()),
            woken: AtomicU64::default(),
            finalised: AtomicU64::default(),
            dispatched: AtomicU64::default(),
        }))
    }

    /// All of them as text, for a scraper.
    #[must_use]
    pub fn text(&self) -> String {
        let it = &*self.0;
        let mut page = Page { app: &it.app, text: String::with_capacity(16_384) };
        it.runs(&mut page);
        it.steps(&mut page);
        it.store(&mut page);
        page.text
    }
}

impl Counts {
    fn runs(&self, page: &mut Page<'_>) {
        page.head("surefoot_worker_runs_taken_total", "counter", "Runs taken by this worker.");
        page.count("surefoot_worker_runs_taken_total", "", &self.taken);
        let name = "surefoot_worker_runs_left_total";
        page.head(name, "counter", "Runs left by this worker, by the state they were left in.");
        for (state, count) in RunState::ALL.iter().zip(&self.left) {
            page.count(name, &format!(",state=\"{}\"", state.as_str()), count);
        }
        let name = "surefoot_worker_start_lag_seconds";
        page.head(name, "histogram", "From the creation of a run to its first claim.");
        page.histogram(name, "", &self.lag, 1e6);
    }

    fn steps(&self, page: &mut Page<'_>) {
        let name = "surefoot_worker_steps_total";
        page.head(name, "counter", "Steps with an outcome on record.");
        page.count(name, ",outcome=\"succeeded\",code=\"\"", &self.succeeded);
        let codes = Code::ALL.iter().map(Code::as_str).chain([OF_APPLICATION]);
        for (code, count) in codes.zip(&self.failed) {
            page.count(name, &format!(",outcome=\"failed\",code=\"{code}\""), count);
        }
        let name = "surefoot_worker_step_seconds";
        page.head(name, "histogram", "From the call of an action to its answer.");
        for (class, histogram) in CLASSES.iter().zip(&self.executed) {
            page.histogram(name, &format!(",class=\"{class}\""), histogram, 1e6);
        }
    }

    fn store(&self, page: &mut Page<'_>) {
        let name = "surefoot_worker_commit_seconds";
        page.head(name, "histogram", "From the first try of a commit to its answer.");
        page.histogram(name, "", &self.committed, 1e6);
        let name = "surefoot_worker_commit_facts";
        page.head(name, "histogram", "Facts in one commit.");
        page.histogram(name, "", &self.facts, 1.0);
        let name = "surefoot_worker_claim_seconds";
        page.head(name, "histogram", "From a claim to its answer.");
        page.histogram(name, "", &self.claims, 1e6);
        let name = "surefoot_worker_claimed_runs_total";
        page.head(name, "counter", "Runs that claims brought.");
        page.count(name, "", &self.claimed);
        let name = "surefoot_worker_writes_refused_total";
        page.head(name, "counter", "Writes that were not done as they were decided.");
        for (why, count) in NotWritten::ALL.iter().zip(&self.not_written) {
            page.count(name, &format!(",why=\"{}\"", why.as_str()), count);
        }
        let name = "surefoot_worker_recovered_total";
        page.head(name, "counter", "What recovery found to do.");
        for (what, count) in [
            ("woken", &self.woken),
            ("finalised", &self.finalised),
            ("dispatched", &self.dispatched),
        ] {
            page.count(name, &format!(",what=\"{what}\""), count);
        }
    }
}

impl Trace for Metrics {
    fn run_started(&self, _: RunId, _: u64) {
        add(&self.0.taken, 1);
    }

    fn step_started(&self, _: RunId, _: &StepKey, _: u32) {}

    fn step_finished(&self, _: RunId, _: &StepKey, code: Option<&str>) {
        let Some(code) = code else { return add(&self.0.succeeded, 1) };
        let known = Code::ALL.iter().position(|it| it.as_str() == code);
        add_at(&self.0.failed, Some(known.unwrap_or(Code::ALL.len())));
    }

    fn run_finished(&self, _: RunId, state: RunState) {
        add_at(&self.0.left, RunState::ALL.iter().position(|it| *it == state));
    }

    fn measured(&self, measure: Measure) {
        let it = &*self.0;
        match measure {
            Measure::Claimed { runs, took } => {
                add(&it.claimed, number(runs));
                it.claims.add(micros(took));
            }
            Measure::FirstTaken { lag } => it.lag.add(micros(lag)),
            Measure::Executed { class, took } => {
                let known = CLASSES.iter().position(|it| *it == class);
                if let Some(histogram) = known.and_then(|at| it.executed.get(at)) {
                    histogram.add(micros(took));
                }
            }
            Measure::Committed { facts, took } => {
                it.committed.add(micros(took));
                it.facts.add(number(facts));
            }
            Measure::NotWritten(why) => {
                add_at(&it.not_written, NotWritten::ALL.iter().position(|it| *it == why));
            }
            Measure::Recovered { woken, finalised, dispatched } => {
                add(&it.woken, number(woken));
                add(&it.finalised, number(finalised));
                add(&it.dispatched, number(dispatched));
            }
        }
    }
}

/// How many values lie between bounds, and their sum.
#[derive(Debug)]
struct Histogram {
    bounds: &'static [(u64, &'static str)],
    /// One more than there are bounds.
    counts: Vec<AtomicU64>,
    sum: AtomicU64,
}

impl Histogram {
    fn of(bounds: &'static [(u64, &'static str)]) -> Self {
        let counts = zeros(bounds.len().saturating_add(1));
        Self { bounds, counts, sum: AtomicU64::default() }
    }

    fn add(&self, value: u64) {
        add_at(&self.counts, Some(self.bounds.partition_point(|(bound, _)| *bound < value)));
        add(&self.sum, value);
    }
}

struct Page<'a> {
    app: &'a str,
    text: String,
}

impl Page<'_> {
    fn head(&mut self, name: &str, kind: &str, about: &str) {
        let _ = writeln!(self.text, "# HELP {name} {about}\n# TYPE {name} {kind}");
    }

    fn count(&mut self, name: &str, labels: &str, count: &AtomicU64) {
        let (app, count) = (self.app, count.load(Ordering::Relaxed));
        let _ = writeln!(self.text, "{name}{{app=\"{app}\"{labels}}} {count}");
    }

    /// `unit` is by how much values are divided.
    #[expect(clippy::cast_precision_loss, reason = "the format knows floats only")]
    fn histogram(&mut self, name: &str, labels: &str, histogram: &Histogram, unit: f64) {
        let app = self.app;
        let sum = histogram.sum.load(Ordering::Relaxed) as f64 / unit;
        let mut total = 0_u64;
        let bounds = histogram.bounds.iter().map(|(_, text)| *text).chain(["+Inf"]);
        for (bound, count) in bounds.zip(&histogram.counts) {
            total = total.saturating_add(count.load(Ordering::Relaxed));
            let _ = writeln!(
                self.text,
                "{name}_bucket{{app=\"{app}\"{labels},le=\"{bound}\"}} {total}"
            );
        }
        let _ = writeln!(self.text, "{name}_sum{{app=\"{app}\"{labels}}} {sum}");
        let _ = writeln!(self.text, "{name}_count{{app=\"{app}\"{labels}}} {total}");
    }
}

fn zeros(count: usize) -> Vec<AtomicU64> {
    (0..count).map(|_| AtomicU64::default()).collect()
}

fn add(count: &AtomicU64, by: u64) {
    count.fetch_add(by, Ordering::Relaxed);
}

fn add_at(counts: &[AtomicU64], at: Option<usize>) {
    if let Some(count) = at.and_then(|at| counts.get(at)) {
        add(count, 1);
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// A clock that went back measures nothing.
fn micros(span: Micros) -> u64 {
    u64::try_from(span.get()).unwrap_or_default()
}

fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
