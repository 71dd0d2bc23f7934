//! How far the show is: a line that changes on a terminal, a line now and then elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use surefoot_kernel_core::RunState;

/// Without a terminal, no more often than this.
const LINE_EVERY: Duration = Duration::from_secs(2);

/// How far the show is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) emitted: u32,
    pub(super) events: u32,
    pub(super) runs: Vec<(RunState, u64)>,
}

impl Standing {
    pub(super) fn count(&self, state: RunState) -> u64 {
        self.runs.iter().filter(|(it, _)| *it == state).map(|(_, count)| count).sum()
    }

    /// Whether every event was emitted and no run moves by itself any more.
    pub(super) fn is_settled(&self) -> bool {
        let moving = [RunState::Queued, RunState::Running, RunState::Waiting];
        self.emitted == self.events && moving.iter().all(|state| self.count(*state) == 0)
    }

    fn line(&self) -> String {
        // A show that is only finished emits nothing.
        let emitted =
            (self.events > 0).then(|| format!("emitted {}/{}", self.emitted, self.events));
        let some = |state: &RunState| {
            let count = self.count(*state);
            (count > 0).then(|| format!("{} {count}", state.as_str().replace('_', " ")))
        };
        let parts: Vec<String> =
            emitted.into_iter().chain(RunState::ALL.iter().filter_map(some)).collect();
        parts.join(" · ")
    }
}

/// Writes to standard error: talk, not data.
#[derive(Debug)]
pub(super) struct Progress {
    is_live: bool,
    last: Option<(Instant, Standing)>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { is_live: std::io::stderr().is_terminal(), last: None }
    }

    /// Shows where the show stands.
    pub(super) fn show(&mut self, standing: &Standing) {
        if self.last.as_ref().is_some_and(|(_, last)| last == standing) {
            return;
        }
        let recent = self.last.as_ref().is_some_and(|(at, _)| at.elapsed() < LINE_EVERY);
        let mut out = std::io::stderr().lock();
        // Nobody may be looking: that is no reason to stop the show.
        let _ = if self.is_live {
            write!(out, "\r\x1b[2K{}", standing.line()).and_then(|()| out.flush())
        } else if recent && !standing.is_settled() {
            return;
        } else {
            writeln!(out, "{}", standing.line())
        };
        self.last = Some((Instant::now(), standing.clone()));
    }

    /// Says something once; the live line goes on below it.
    pub(super) fn say(&mut self, sentence: &str) {
        let start = if self.is_live { "\r\x1b[2K" } else { "" };
        let _ = writeln!(std::io::stderr().lock(), "{start}{sentence}");
        self.last = None;
    }

    /// The live line stays as it is.
    pub(super) fn end(&mut self) {
        if self.is_live && self.last.take().is_some() {
            let _ = writeln!(std::io::stderr().lock());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_what_there_is_to_tell() {
        let runs = vec![(RunState::Running, 2), (RunState::NeedsAttention, 1)];
        let playing = Standing { emitted: 3, events: 9, runs: runs.clone() };
        assert_eq!(playing.line(), "emitted 3/9 · running 2 · needs attention 1");
        let finishing = Standing { emitted: 0, events: 0, runs };
        assert_eq!(finishing.line(), "running 2 · needs attention 1");
    }
}
