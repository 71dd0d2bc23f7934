//! A scheduler: handlers that run at the slots of a schedule, one run at a time for each schedule.
//!
//! Everything that is known of a schedule is one record, and every change of it is decided here and written by an
//! adapter under the condition that nobody changed it meanwhile. So two workers never begin one slot at once, and what
//! passed while nobody was there is found in the record and not in anybody's memory.

mod record;
mod schedules;
mod span;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use surefoot_kernel_core::Timestamp;

use crate::{BadSchedule, Key, Misfire, ResourceId, Schedule, SyncError};

pub use record::{BACKFILL_SLOTS_MAX, Begun, Outcome, Pause, ScheduleRecord};
pub use schedules::{ScheduleCreated, Schedules};
pub use span::Span;

/// What a schedule does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleSpec {
    /// Its id.
    pub id: Key,
    /// Five fields, normalised.
    pub cron: String,
    /// A zone of the IANA database; none is UTC.
    pub timezone: Option<String>,
    /// What is done about slots that passed unnoticed.
    pub misfire: Misfire,
    /// Attempts of a run, the first included.
    pub attempts_max: u32,
    /// Who created it, if that was no person: it is deleted by the same.
    pub owner: Option<String>,
}

impl ScheduleSpec {
    /// A schedule with five attempts, of which only the latest missed slot is run.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] says what is wrong with cron or zone.
    pub fn new(id: Key, cron: &str, timezone: Option<&str>) -> Result<Self, SyncError> {
        let plan = Schedule::new(cron, timezone).map_err(refused)?.to_plan();
        let (misfire, attempts_max, owner) = (Misfire::default(), 5, None);
        Ok(Self { id, cron: plan.cron, timezone: plan.timezone, misfire, attempts_max, owner })
    }

    /// Runs each missed slot, or the latest only.
    #[must_use]
    pub fn misfire(mut self, misfire: Misfire) -> Self {
        self.misfire = misfire;
        self
    }

    /// So many attempts of a run, at least one.
    #[must_use]
    pub fn attempts(mut self, most: u32) -> Self {
        self.attempts_max = most.max(1);
        self
    }

    /// Created, and deleted, by something that keeps many.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// As something that is due.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] if it was not made by [`ScheduleSpec::new`] and cannot be.
    pub fn schedule(&self) -> Result<Schedule, SyncError> {
        Schedule::new(&self.cron, self.timezone.as_deref()).map_err(refused)
    }
}

fn refused(error: BadSchedule) -> SyncError {
    let option = match error {
        BadSchedule::Cron(_) => "cron",
        BadSchedule::Zone(_) => "timezone",
    };
    SyncError::InvalidOption { option, why: error.to_string() }
}

/// Why a run runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    /// A slot is due.
    Slot(Timestamp),
    /// Somebody asked, with an id of the request.
    Asked(Key),
    /// A slot that was over, and somebody asked for it.
    Backfill(Timestamp),
}

/// A record, and what the adapter knows its state by.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// What is known of the schedule.
    pub record: ScheduleRecord,
    /// It changes with every write.
    pub revision: u64,
}

/// Keeps the records of one set of schedules.
#[async_trait]
pub trait ScheduleStore: Send + Sync {
    /// Which set.
    fn id(&self) -> &ResourceId;

    /// The clock that decides when something is due: the server's.
    fn now(&self) -> Timestamp;

    /// All records, in the order of their ids.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`], [`SyncError::Corrupt`].
    async fn schedule_list(&self) -> Result<Vec<Recorded>, SyncError>;

    /// One record.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`], [`SyncError::Corrupt`].
    async fn schedule_load(&self, id: &Key) -> Result<Option<Recorded>, SyncError>;

    /// Writes a record if its revision is still this, 0 for one that is not there; the new revision, or `None`.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`]: it may be written; load it.
    async fn schedule_save(
        &self,
        record: &ScheduleRecord,
        revision: u64,
    ) -> Result<Option<u64>, SyncError>;

    /// Removes a record with everything that is known, if its revision is still this.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn schedule_delete(&self, id: &Key, revision: u64) -> Result<bool, SyncError>;
}
