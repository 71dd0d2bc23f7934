//! Schedules: cron in a time zone, as instants. Pure: the present is an argument, and the zones are built in.

mod cron;
mod search;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use surefoot_kernel_core::Timestamp;
use surefoot_kernel_core::plan::SchedulePlan;

pub use cron::{BadCron, Cron};

/// When something is due: a cron expression in a time zone.
///
/// ```
/// use surefoot_sync_core::Schedule;
/// let nightly = Schedule::new("30 2 * * *", Some("Europe/Berlin"))?;
/// let next = nightly.next_after("2026-11-29T12:00:00Z".parse()?).unwrap();
/// assert_eq!(next.to_string(), "2026-11-30T01:30:00.000000Z");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Schedule {
    cron: Cron,
    zone: TimeZone,
    /// As it is stored; absent is UTC.
    zone_name: Option<String>,
}

/// A schedule that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSchedule {
    /// The cron expression.
    #[error(transparent)]
    Cron(#[from] BadCron),
    /// The time zone.
    #[error("there is no time zone `{0}`: write it like `Europe/Berlin`")]
    Zone(String),
}

impl Schedule {
    /// A schedule of five fields, in UTC unless a zone of the IANA database is named.
    ///
    /// # Errors
    /// [`BadSchedule`] says what is wrong and how to write it.
    pub fn new(cron: &str, timezone: Option<&str>) -> Result<Self, BadSchedule> {
        let cron = cron.parse()?;
        let unknown = |name: &str| BadSchedule::Zone(name.to_owned());
        let (zone, zone_name) = match timezone {
            None => (TimeZone::UTC, None),
            Some(name) => {
                let zone = TimeZone::get(name).map_err(|_| unknown(name))?;
                let known = zone.iana_name().map(str::to_owned).ok_or_else(|| unknown(name))?;
                (zone, Some(known))
            }
        };
        Ok(Self { cron, zone, zone_name })
    }

    /// As a plan keeps it.
    ///
    /// # Errors
    /// [`BadSchedule`] if another version of the language wrote it.
    pub fn of_plan(plan: &SchedulePlan) -> Result<Self, BadSchedule> {
        Self::new(&plan.cron, plan.timezone.as_deref())
    }

    /// As a plan keeps it: normalised, so that equal schedules read the same.
    #[must_use]
    pub fn to_plan(&self) -> SchedulePlan {
        SchedulePlan { cron: self.cron.to_string(), timezone: self.zone_name.clone() }
    }

    /// The first slot after an instant. `None` only where the calendar ends.
    ///
    /// Over changes of the clock: a wall-clock time that comes twice is one slot, at its first pass, and one that
    /// is skipped is a slot at the first instant after the gap. Where the hour is `*` or `*/n`, the schedule follows
    /// elapsed time instead: slots of both passes, none for a gap.
    #[must_use]
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        search::next_after(&self.cron, &self.zone, after)
    }

    /// The last slot after one instant up to another.
    #[must_use]
    pub fn latest(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let slots = std::iter::successors(self.next_after(after), |slot| self.next_after(*slot));
        slots.take_while(|slot| *slot <= until).last()
    }

    /// The slots after one instant up to another, at most `limit`, the oldest first.
    #[must_use]
    pub fn slots(&self, after: Timestamp, until: Timestamp, limit: usize) -> Vec<Timestamp> {
        let next = |slot: &Timestamp| self.next_after(*slot);
        let slots = std::iter::successors(self.next_after(after), next);
        slots.take_while(|slot| *slot <= until).take(limit).collect()
    }
}

/// What is done about slots that passed while nobody was there to fire them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Misfire {
    /// Fires the last one.
    #[default]
    Latest,
    /// Fires each of them, the oldest first.
    All,
}

/// What makes a slot of a workflow's schedule one event, whoever finds it due.
#[must_use]
pub fn slot_key(workflow: &str, schedule: &str, slot: Timestamp) -> String {
    format!("{workflow}/{schedule}@{slot}")
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
