//! What is known of one schedule, and every change of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use surefoot_kernel_core::Timestamp;

use super::{Occasion, ScheduleSpec};
use crate::{Backoff, Key, Misfire, Schedule, SyncError};

/// Ended runs that are remembered; a request that is older may run again.
const ENDED_MAX: usize = 50;
/// Requests that wait.
const ASKED_MAX: usize = 100;
const REASON_MAX_CHARS: usize = 1_000;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Well.
    Succeeded,
    /// Its last attempt failed, for this reason.
    Failed(String),
}

/// A run that began, in the hands of a worker for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// When the schedule was created: one that is created again is another.
    pub created: Timestamp,
    /// Counts the runs of the schedule, from 1.
    pub number: u64,
    /// Why it runs.
    pub occasion: Occasion,
    /// The first is 1.
    pub attempt: u32,
    /// Until when a worker holds it, or until when it waits for its next attempt.
    pub until: Timestamp,
    /// A worker holds it.
    pub held: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Ended {
    number: u64,
    occasion: Occasion,
    outcome: Outcome,
}

/// Everything that is known of a schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleRecord {
    /// What it does.
    pub spec: ScheduleSpec,
    /// When it was created, by the server's clock.
    pub created: Timestamp,
    /// Slots up to here are dealt with, or were before its time.
    pub dealt_until: Timestamp,
    /// How many runs began.
    pub runs: u64,
    /// The run that is under way.
    pub current: Option<Begun>,
    asked: Vec<Key>,
    ended: Vec<Ended>,
}

impl ScheduleRecord {
    /// A new schedule: its first slot is the first after now.
    #[must_use]
    pub fn new(spec: ScheduleSpec, now: Timestamp) -> Self {
        let (asked, ended) = (Vec::new(), Vec::new());
        Self { spec, created: now, dealt_until: now, runs: 0, current: None, asked, ended }
    }

    /// The same schedule with another spec. With another time to be due it begins anew from now; its counters and the
    /// run that is under way stay. `None` if nothing differs.
    #[must_use]
    pub fn respecified(mut self, spec: ScheduleSpec, now: Timestamp) -> Option<Self> {
        if self.spec == spec {
            return None;
        }
        if (&self.spec.cron, &self.spec.timezone) != (&spec.cron, &spec.timezone) {
            self.dealt_until = self.dealt_until.max(now);
        }
        self.spec = spec;
        Some(self)
    }

    /// Begins what is due, or takes over what nobody holds any more; `None` if there is nothing to do now. The run is in
    /// [`current`](Self::current) of the new record, held for a time.
    ///
    /// # Errors
    /// Those of [`ScheduleSpec::schedule`].
    pub fn begin(&self, now: Timestamp, hold: Duration) -> Result<Option<Self>, SyncError> {
        let mut next = self.clone();
        let until = now.plus(hold.into());
        if let Some(current) = &mut next.current {
            if current.until > now {
                return Ok(None);
            }
            if current.held && current.attempt >= self.spec.attempts_max {
                // Its last holder died. What is due behind it may begin at once.
                let lost = Outcome::Failed("the last attempt's worker died".to_owned());
                return Ok(Some(next.over(lost)));
            }
            current.attempt = current.attempt.saturating_add(u32::from(current.held));
            (current.until, current.held) = (until, true);
            return Ok(Some(next));
        }
        let Some(occasion) = next.take_occasion(now)? else { return Ok(None) };
        next.runs = next.runs.saturating_add(1);
        let (created, number) = (next.created, next.runs);
        next.current = Some(Begun { created, number, occasion, attempt: 1, until, held: true });
        Ok(Some(next))
    }

    fn take_occasion(&mut self, now: Timestamp) -> Result<Option<Occasion>, SyncError> {
        if !self.asked.is_empty() {
            return Ok(Some(Occasion::Asked(self.asked.remove(0))));
        }
        let schedule = self.spec.schedule()?;
        let slot = match self.spec.misfire {
            Misfire::Latest => latest(&schedule, self.dealt_until, now),
            Misfire::All => schedule.next_after(self.dealt_until).filter(|slot| *slot <= now),
        };
        if let Some(slot) = slot {
            self.dealt_until = slot;
        }
        Ok(slot.map(Occasion::Slot))
    }

    /// Holds a run for a time again; `None` if it is not this worker's any more.
    #[must_use]
    pub fn hold(&self, run: &Begun, now: Timestamp, hold: Duration) -> Option<Self> {
        let mut next = self.clone();
        let current = next.current.as_mut().filter(|current| current.is(run))?;
        current.until = now.plus(hold.into());
        Some(next)
    }

    /// Ends an attempt: a failed one is made again after a wait, until they are spent. `None` if the run is not this
    /// worker's any more.
    #[must_use]
    pub fn end(
        &self,
        run: &Begun,
        outcome: Outcome,
        now: Timestamp,
        backoff: &Backoff,
    ) -> Option<Self> {
        let mut next = self.clone();
        let current = next.current.as_mut().filter(|current| current.is(run))?;
        let tries_again =
            matches!(outcome, Outcome::Failed(_)) && current.attempt < self.spec.attempts_max;
        if !tries_again {
            return Some(next.over(outcome));
        }
        current.until = now.plus(backoff.after(current.attempt).into());
        current.attempt = current.attempt.saturating_add(1);
        current.held = false;
        Some(next)
    }

    fn over(mut self, outcome: Outcome) -> Self {
        let outcome = match outcome {
            Outcome::Succeeded => Outcome::Succeeded,
            Outcome::Failed(why) => Outcome::Failed(why.chars().take(REASON_MAX_CHARS).collect()),
        };
        if let Some(Begun { number, occasion, .. }) = self.current.take() {
            self.ended.push(Ended { number, occasion, outcome });
            let spare = self.ended.len().saturating_sub(ENDED_MAX);
            self.ended.drain(..spare);
        }
        self
    }

    /// Asks for a run beside the slots. `None` if the request is known already: it waits, runs, or has ended.
    ///
    /// # Errors
    /// [`SyncError::StoreFull`] if too many requests wait.
    pub fn ask(&self, request: &Key) -> Result<Option<Self>, SyncError> {
        if self.asked.contains(request)
            || self.current.as_ref().is_some_and(|run| run.occasion.is_request(request))
            || self.outcome_of(request).is_some()
        {
            return Ok(None);
        }
        if self.asked.len() >= ASKED_MAX {
            let resource = format!("the list of requests of schedule {}", self.spec.id);
            return Err(SyncError::StoreFull { resource });
        }
        let mut next = self.clone();
        next.asked.push(request.clone());
        Ok(Some(next))
    }

    /// How the run of a request ended, if it did.
    #[must_use]
    pub fn outcome_of(&self, request: &Key) -> Option<&Outcome> {
        let ended = self.ended.iter().rev().find(|run| run.occasion.is_request(request));
        ended.map(|run| &run.outcome)
    }

    /// How the last run ended.
    #[must_use]
    pub fn last_outcome(&self) -> Option<&Outcome> {
        self.ended.last().map(|run| &run.outcome)
    }

    /// When there is something to do next. An instant that has passed is now.
    ///
    /// # Errors
    /// Those of [`ScheduleSpec::schedule`].
    pub fn next_at(&self) -> Result<Option<Timestamp>, SyncError> {
        if let Some(current) = &self.current {
            return Ok(Some(current.until));
        }
        if !self.asked.is_empty() {
            return Ok(Some(self.dealt_until));
        }
        Ok(self.spec.schedule()?.next_after(self.dealt_until))
    }
}

impl Occasion {
    fn is_request(&self, request: &Key) -> bool {
        match self {
            Self::Asked(asked) => asked == request,
            Self::Slot(_) => false,
        }
    }
}

impl Begun {
    /// The same attempt of the same run; how long it is held does not matter.
    fn is(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.created, it.number, it.attempt);
        self.held && of(self) == of(other)
    }
}

/// The last slot up to now, without walking a long absence minute by minute.
fn latest(schedule: &Schedule, after: Timestamp, now: Timestamp) -> Option<Timestamp> {
    const HOUR_US: i64 = 3_600_000_000;
    let mut span = HOUR_US;
    loop {
        let from = Timestamp::from_micros(now.micros().saturating_sub(span)).max(after);
        let found = schedule.latest(from, now);
        if found.is_some() || from == after {
            return found;
        }
        span = span.saturating_mul(4);
    }
}

#[cfg(test)]
mod tests;
