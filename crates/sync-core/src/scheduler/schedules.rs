//! What people and applications do to schedules, on whatever keeps their records.

use std::sync::Arc;

use surefoot_kernel_core::Timestamp;

use super::{Pause, Recorded, ScheduleRecord, ScheduleSpec, ScheduleStore, Span};
use crate::{Key, SyncError};

/// How often a change is decided anew because somebody else changed the record meanwhile.
const TRIES: usize = 20;

/// Schedules of one set. Clones are one handle.
#[derive(Clone)]
pub struct Schedules {
    store: Arc<dyn ScheduleStore>,
}

impl std::fmt::Debug for Schedules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schedules").field("id", self.store.id()).finish()
    }
}

/// What creating a schedule did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleCreated {
    /// It is new.
    New,
    /// It was there and does something else now; its past stays.
    Changed,
    /// It was there.
    Unchanged,
}

impl Schedules {
    /// On a set of schedules.
    #[must_use]
    pub fn new(store: Arc<dyn ScheduleStore>) -> Self {
        Self { store }
    }

    /// What keeps the records.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn ScheduleStore> {
        &self.store
    }

    /// Creates a schedule, or changes what it does. Repeatable. A new one begins with the first slot after now; one that
    /// is due at other times as well.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`], [`SyncError::Conflict`] if others change it all the time.
    pub async fn create(&self, spec: ScheduleSpec) -> Result<ScheduleCreated, SyncError> {
        self.put(spec, None).await
    }

    /// The same for one that stands elsewhere too: it has no slots up to an instant, and a new one has those behind it,
    /// also if they have passed.
    ///
    /// # Errors
    /// Those of [`Schedules::create`].
    pub async fn keep(
        &self,
        spec: ScheduleSpec,
        since: Timestamp,
    ) -> Result<ScheduleCreated, SyncError> {
        self.put(spec, Some(since)).await
    }

    async fn put(
        &self,
        spec: ScheduleSpec,
        since: Option<Timestamp>,
    ) -> Result<ScheduleCreated, SyncError> {
        for _ in 0..TRIES {
            let there = self.store.schedule_load(&spec.id).await?;
            let begins = since.unwrap_or_else(|| self.store.now());
            let Some(Recorded { record, revision }) = there else {
                let mut record = ScheduleRecord::new(spec.clone(), self.store.now());
                record.dealt_until = begins;
                if self.store.schedule_save(&record, 0).await?.is_some() {
                    return Ok(ScheduleCreated::New);
                }
                continue;
            };
            let changed = record.clone().respecified(spec.clone(), begins);
            let created = match changed {
                Some(_) => ScheduleCreated::Changed,
                None => ScheduleCreated::Unchanged,
            };
            let kept = changed.clone().unwrap_or(record);
            let next = since.and_then(|since| kept.dealt_up_to(since)).or(changed);
            let Some(next) = next else { return Ok(created) };
            if self.store.schedule_save(&next, revision).await?.is_some() {
                return Ok(created);
            }
        }
        Err(busy(&spec.id))
    }

    /// Deletes a schedule with all that is known of it; `false` if there is none. A run that is under way ends, and
    /// nothing is recorded of it.
    ///
    /// # Errors
    /// Those of [`Schedules::create`].
    pub async fn delete(&self, id: &Key) -> Result<bool, SyncError> {
        for _ in 0..TRIES {
            let Some(there) = self.store.schedule_load(id).await? else { return Ok(false) };
            if self.store.schedule_delete(id, there.revision).await? {
                return Ok(true);
            }
        }
        Err(busy(id))
    }

    /// All schedules, by id.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`], [`SyncError::Corrupt`].
    pub async fn list(&self) -> Result<Vec<ScheduleRecord>, SyncError> {
        let all = self.store.schedule_list().await?;
        Ok(all.into_iter().map(|recorded| recorded.record).collect())
    }

    /// One schedule.
    ///
    /// # Errors
    /// [`SyncError::NotFound`], [`SyncError::Unavailable`], [`SyncError::Corrupt`].
    pub async fn get(&self, id: &Key) -> Result<ScheduleRecord, SyncError> {
        let there = self.store.schedule_load(id).await?;
        there.map(|it| it.record).ok_or_else(|| missing(id))
    }

    /// Asks for a run beside the slots, which stay as they are, also of one that is paused. The same request is one
    /// run, also when it is repeated after that has ended, as long as the run is among the last fifty. `false` if the
    /// request is known already.
    ///
    /// # Errors
    /// [`SyncError::NotFound`] if there is no such schedule, [`SyncError::StoreFull`] if a hundred requests wait; else
    /// those of [`Schedules::create`].
    pub async fn run_now(&self, id: &Key, request: &Key) -> Result<bool, SyncError> {
        self.change_or_missing(id, |record, _| record.ask(request)).await
    }

    /// Runs no slots from now on; what is under way ends. `false` if it is paused already.
    ///
    /// # Errors
    /// [`SyncError::NotFound`]; else those of [`Schedules::create`].
    pub async fn pause(&self, id: &Key, by: &str, reason: &str) -> Result<bool, SyncError> {
        let pause = |record: &ScheduleRecord, now| {
            let (by, reason) = (by.to_owned(), reason.to_owned());
            Ok(record.pause(Pause { since: now, by, reason }))
        };
        self.change_or_missing(id, pause).await
    }

    /// Runs the slots that come from now on, not those that passed. `false` if it is not paused.
    ///
    /// # Errors
    /// [`SyncError::NotFound`]; else those of [`Schedules::create`].
    pub async fn resume(&self, id: &Key) -> Result<bool, SyncError> {
        self.change_or_missing(id, |record, now| Ok(record.resume(now))).await
    }

    /// Asks for the slots of a stretch of time that is over, as [`ScheduleRecord::backfill`] says. `false` if all of it
    /// was asked for before.
    ///
    /// # Errors
    /// [`SyncError::NotFound`]; [`SyncError::InvalidOption`] for a time to come; [`SyncError::StoreFull`]; else those of
    /// [`Schedules::create`].
    pub async fn backfill(&self, id: &Key, span: Span) -> Result<bool, SyncError> {
        self.change_or_missing(id, |record, now| record.backfill(span, now)).await
    }

    async fn change_or_missing(
        &self,
        id: &Key,
        decide: impl Fn(&ScheduleRecord, Timestamp) -> Result<Option<ScheduleRecord>, SyncError>
        + Send
        + Sync,
    ) -> Result<bool, SyncError> {
        self.change(id, decide).await?.ok_or_else(|| missing(id))
    }

    /// Decides on the record and the present, and writes what was decided, anew if somebody else was first. Whether
    /// anything changed; `None` if there is no such schedule.
    ///
    /// # Errors
    /// Those of the decision, and of [`Schedules::create`].
    pub async fn change(
        &self,
        id: &Key,
        decide: impl Fn(&ScheduleRecord, Timestamp) -> Result<Option<ScheduleRecord>, SyncError>
        + Send
        + Sync,
    ) -> Result<Option<bool>, SyncError> {
        for _ in 0..TRIES {
            let Some(there) = self.store.schedule_load(id).await? else { return Ok(None) };
            let Some(next) = decide(&there.record, self.store.now())? else {
                return Ok(Some(false));
            };
            if self.store.schedule_save(&next, there.revision).await?.is_some() {
                return Ok(Some(true));
            }
        }
        Err(busy(id))
    }
}

fn busy(id: &Key) -> SyncError {
    SyncError::Conflict { what: format!("schedule {id}") }
}

fn missing(id: &Key) -> SyncError {
    SyncError::NotFound { what: format!("schedule {id}") }
}
