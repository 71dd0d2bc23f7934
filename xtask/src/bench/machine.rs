//! What the machine did in the meantime: who used its processors.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// Ticks in a second, on every Linux that programs see.
const TICKS: f64 = 100.0;
/// Of the machine, in hundredths: others may not take more in a round that counts.
pub(super) const OTHERS_MAX_PERCENT: f64 = 10.0;

/// The processors at one moment.
#[derive(Debug)]
pub(super) struct Moment {
    at: Instant,
    /// Ticks that all programs used.
    all: f64,
    /// Ticks that the named processes and all below them used.
    named: f64,
}

/// What was used between two moments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Used {
    /// Processor time of the named processes and all below them.
    pub(super) named: Duration,
    /// Processor time of everybody.
    all: Duration,
    took: Duration,
}

impl Moment {
    /// Reads the counters of the system. `roots` are the processes that are counted with all their children.
    pub(super) fn now(roots: &[u32]) -> Result<Self, Failure> {
        let stat = read("/proc/stat")?;
        let all = all_ticks(&stat).ok_or_else(|| Failure::new("/proc/stat is not understood"))?;
        Ok(Self { at: Instant::now(), all, named: ticks_of(roots)? })
    }

    pub(super) fn until(&self, later: &Self) -> Used {
        let time = |ticks: f64| Duration::from_secs_f64((ticks / TICKS).max(0.0));
        Used {
            named: time(later.named - self.named),
            all: time(later.all - self.all),
            took: later.at.duration_since(self.at),
        }
    }
}

impl Used {
    /// What others had of the machine, in percent.
    pub(super) fn others_percent(&self) -> f64 {
        percent(self.all.saturating_sub(self.named).as_secs_f64(), self.took)
    }
}

/// So many seconds of processor time, of all that the machine had in that time.
pub(super) fn percent(seconds: f64, of: Duration) -> f64 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    seconds * 100.0 / (of.as_secs_f64() * cores).max(f64::EPSILON)
}

fn read(path: &str) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| Failure::new(format!("{path}: {error}")))
}

/// User, nice, system and interrupt ticks of the first line.
fn all_ticks(stat: &str) -> Option<f64> {
    let mut fields = stat.lines().next()?.split_whitespace().skip(1).map(str::parse::<f64>);
    let mut next = || fields.next()?.ok();
    let (user, nice, system) = (next()?, next()?, next()?);
    let (_idle, _io) = (next()?, next()?);
    let (irq, soft) = (next()?, next()?);
    Some(user + nice + system + irq + soft)
}

/// Ticks of processes and all below them.
fn ticks_of(roots: &[u32]) -> Result<f64, Failure> {
    let mut seen = BTreeMap::new();
    let processes = fs::read_dir("/proc").map_err(|error| Failure::new(error.to_string()))?;
    for entry in processes.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // One that has ended since is not counted.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        if let Some((parent, ticks)) = parent_and_ticks(&stat) {
            seen.insert(pid, (parent, ticks));
        }
    }
    Ok(roots.iter().map(|root| sum_below(&seen, *root)).sum())
}

/// The parent, and the ticks in user and system mode, of a line of `/proc/PID/stat`.
fn parent_and_ticks(stat: &str) -> Option<(u32, f64)> {
    // The name in parentheses may hold anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<f64>().ok();
    let parent = fields.get(1)?.parse().ok()?;
    Some((parent, number(11)? + number(12)?))
}

fn sum_below(seen: &BTreeMap<u32, (u32, f64)>, root: u32) -> f64 {
    let own = seen.get(&root).map_or(0.0, |(_, ticks)| *ticks);
    let children = seen.iter().filter(|(_, (parent, _))| *parent == root);
    own + children.map(|(child, _)| sum_below(seen, *child)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_nobodys() {
        assert_eq!(all_ticks("cpu  10 2 30 4000 50 1 2 9 0 0\ncpu0 1"), Some(45.0));
        assert_eq!(all_ticks("cpu 1 2"), None);
    }

    #[test]
    fn a_name_with_a_parenthesis_is_passed_over() {
        let stat = "77 (a) b) S 5 77 77 0 -1 4194560 1 2 3 4 11 22 0 0 20 0 1 0 9 1 1";
        assert_eq!(parent_and_ticks(stat), Some((5, 33.0)));
    }

    #[test]
    fn a_process_has_the_ticks_of_all_below_it() {
        let seen = [(1, (0, 1.0)), (2, (1, 10.0)), (3, (2, 100.0)), (4, (0, 1_000.0))].into();
        assert_eq!(sum_below(&seen, 1), 111.0);
    }

    #[test]
    fn others_are_what_is_left() {
        let second = Duration::from_secs(1);
        let used = |named| Used { named, all: second, took: second };
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        assert_eq!(used(second).others_percent(), 0.0);
        assert!((used(Duration::ZERO).others_percent() - 100.0 / cores).abs() < 1e-9);
    }
}
