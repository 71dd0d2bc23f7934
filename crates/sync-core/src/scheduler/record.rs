//! What is known of one schedule, and every change of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use surefoot_kernel_core::Timestamp;

use super::{Occasion, ScheduleSpec, Span};
use crate::{Backoff, Key, Misfire, Schedule, SyncError};

/// Ended runs that are remembered; a request that is older may run again.
const ENDED_MAX: usize = 50;
/// Requests that wait.
const ASKED_MAX: usize = 100;
const REASON_MAX_CHARS: usize = 1_000;
/// What it did before; what is older was due as the oldest says.
const PAST_MAX: usize = 20;
/// Stretches that somebody asked for, apart from each other.
const BACKFILLED_MAX: usize = 100;
/// Slots that one backfill may ask for.
pub const BACKFILL_SLOTS_MAX: usize = 10_000;

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

/// What a schedule did up to an instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Past {
    until: Timestamp,
    cron: String,
    timezone: Option<String>,
}

/// Why no slot of a schedule is run for now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Since when, by the server's clock.
    pub since: Timestamp,
    /// Who paused it.
    pub by: String,
    /// Why.
    pub reason: String,
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
    /// While this is set, slots are not run; requests and backfills are.
    pub paused: Option<Pause>,
    asked: Vec<Key>,
    ended: Vec<Ended>,
    past: Vec<Past>,
    /// What is still to be run of what was asked for, and all that ever was.
    to_backfill: Vec<Span>,
    backfilled: Vec<Span>,
}

impl ScheduleRecord {
    /// A new schedule: its first slot is the first after now.
    #[must_use]
    pub fn new(spec: ScheduleSpec, now: Timestamp) -> Self {
        Self {
            spec,
            created: now,
            dealt_until: now,
            runs: 0,
            current: None,
            paused: None,
            asked: Vec::new(),
            ended: Vec::new(),
            past: Vec::new(),
            to_backfill: Vec::new(),
            backfilled: Vec::new(),
        }
    }

    /// The same schedule with another spec. With another time to be due it begins anew from now; its counters and the
    /// run that is under way stay. `None` if nothing differs.
    #[must_use]
    pub fn respecified(mut self, spec: ScheduleSpec, now: Timestamp) -> Option<Self> {
        if self.spec == spec {
            return None;
        }
        if (&self.spec.cron, &self.spec.timezone) != (&spec.cron, &spec.timezone) {
            let (cron, timezone) = (self.spec.cron, self.spec.timezone);
            self.past.push(Past { until: now, cron, timezone });
            let spare = self.past.len().saturating_sub(PAST_MAX);
            self.past.drain(..spare);
            self.dealt_until = self.dealt_until.max(now);
        }
        self.spec = spec;
        Some(self)
    }

    /// The same schedule, of which nothing is due up to an instant. `None` if nothing was.
    #[must_use]
    pub fn dealt_up_to(mut self, at: Timestamp) -> Option<Self> {
        if self.dealt_until >= at {
            return None;
        }
        self.dealt_until = at;
        Some(self)
    }

    /// Runs no slots from now on; what is under way ends. `None` if it is paused already.
    #[must_use]
    pub fn pause(&self, pause: Pause) -> Option<Self> {
        self.paused.is_none().then(|| Self { paused: Some(pause), ..self.clone() })
    }

    /// Runs the slots that come from now on; those that passed meanwhile are not run, unless by a backfill. `None` if
    /// it is not paused.
    #[must_use]
    pub fn resume(&self, now: Timestamp) -> Option<Self> {
        self.paused.as_ref()?;
        let dealt_until = self.dealt_until.max(now);
        Some(Self { paused: None, dealt_until, ..self.clone() })
    }

    /// Asks for the slots of a stretch of time that is over, one run each, as the schedule was then; where it was not
    /// there yet, as it was first. A slot that was asked for before is not run again. `None` if all were.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] for a time to come, and for more than [`BACKFILL_SLOTS_MAX`] slots;
    /// [`SyncError::StoreFull`] if there are too many stretches.
    pub fn backfill(&self, span: Span, now: Timestamp) -> Result<Option<Self>, SyncError> {
        if span.until > now {
            let why = format!("{} is still to come: slots run by themselves then", span.until);
            return Err(SyncError::InvalidOption { option: "until", why });
        }
        // What is due now is not over: it is run as a slot.
        let over = if self.paused.is_some() { now } else { self.dealt_until };
        let span = Span { until: span.until.min(over), ..span };
        let new = span.without(&self.backfilled);
        if new.is_empty() {
            return Ok(None);
        }
        if self.has_more_slots(&new, BACKFILL_SLOTS_MAX)? {
            let why = format!(
                "more than {BACKFILL_SLOTS_MAX} slots lie between it and {}: ask for one part after the other",
                span.until
            );
            return Err(SyncError::InvalidOption { option: "from", why });
        }
        let mut next = self.clone();
        next.backfilled = span.joined_with(&self.backfilled);
        next.to_backfill.extend(new);
        if next.backfilled.len().max(next.to_backfill.len()) > BACKFILLED_MAX {
            let resource = format!("the list of backfills of schedule {}", self.spec.id);
            return Err(SyncError::StoreFull { resource });
        }
        Ok(Some(next))
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
        if let Some(slot) = self.due(now)? {
            self.dealt_until = slot;
            return Ok(Some(Occasion::Slot(slot)));
        }
        Ok(self.take_backfill()?.map(Occasion::Backfill))
    }

    fn due(&self, now: Timestamp) -> Result<Option<Timestamp>, SyncError> {
        if self.paused.is_some() {
            return Ok(None);
        }
        let schedule = self.spec.schedule()?;
        Ok(match self.spec.misfire {
            Misfire::Latest => latest(&schedule, self.dealt_until, now),
            Misfire::All => schedule.next_after(self.dealt_until).filter(|slot| *slot <= now),
        })
    }

    fn take_backfill(&mut self) -> Result<Option<Timestamp>, SyncError> {
        while let Some(span) = self.to_backfill.first().copied() {
            match self.first_slot_in(span)? {
                Some(slot) => {
                    if let Some(span) = self.to_backfill.first_mut() {
                        span.after = slot;
                    }
                    return Ok(Some(slot));
                }
                None => {
                    self.to_backfill.remove(0);
                }
            }
        }
        Ok(None)
    }

    /// Whether there are more slots in some stretches than so many. Looks at no more of them than that.
    fn has_more_slots(&self, spans: &[Span], most: usize) -> Result<bool, SyncError> {
        let mut slots = 0_usize;
        for span in spans {
            let mut left = *span;
            while let Some(slot) = self.first_slot_in(left)? {
                slots = slots.saturating_add(1);
                if slots > most {
                    return Ok(true);
                }
                left.after = slot;
            }
        }
        Ok(false)
    }

    /// By what the schedule did then.
    fn first_slot_in(&self, span: Span) -> Result<Option<Timestamp>, SyncError> {
        let mut after = span.after;
        for past in &self.past {
            let until = past.until.min(span.until);
            if after < until {
                let zone = past.timezone.as_deref();
                let schedule = Schedule::new(&past.cron, zone).map_err(super::refused)?;
                let slot = schedule.next_after(after).filter(|slot| *slot <= until);
                if slot.is_some() {
                    return Ok(slot);
                }
                after = until;
            }
        }
        Ok(self.spec.schedule()?.next_after(after).filter(|slot| *slot <= span.until))
    }

    /// The next slots behind an instant, at most so many, whether it is paused or not.
    ///
    /// # Errors
    /// Those of [`ScheduleSpec::schedule`].
    pub fn next_slots(&self, after: Timestamp, limit: usize) -> Result<Vec<Timestamp>, SyncError> {
        Ok(self.spec.schedule()?.slots(after, Timestamp::MAX, limit))
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
        if !self.asked.is_empty() || !self.to_backfill.is_empty() {
            return Ok(Some(self.dealt_until));
        }
        if self.paused.is_some() {
            return Ok(None);
        }
        Ok(self.spec.schedule()?.next_after(self.dealt_until))
    }
}

impl Occasion {
    fn is_request(&self, request: &Key) -> bool {
        match self {
            Self::Asked(asked) => asked == request,
            Self::Slot(_) | Self::Backfill(_) => false,
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
