//! Schedules of a set.

use surefoot_kernel_core::Timestamp;

use super::{By, Changed, Desk, ScheduleView};
use crate::{Key, Resource, ResourceId, ResourceKind, Schedules, Span, SyncError};

/// So many of the next times are shown in a list.
const NEXT_IN_LIST: usize = 1;

impl Desk {
    async fn of(&self, set: &ResourceId) -> Result<(Schedules, Resource), SyncError> {
        let store = self.place.schedule_set(set).await?;
        let resource = Resource { kind: ResourceKind::Schedules, id: set.clone() };
        Ok((Schedules::new(store), resource))
    }

    /// All schedules of a set, by id.
    ///
    /// # Errors
    /// [`SyncError::NotFound`], [`SyncError::Unavailable`].
    pub async fn schedules(&self, set: &ResourceId) -> Result<Vec<ScheduleView>, SyncError> {
        let (schedules, _) = self.of(set).await?;
        let records = schedules.list().await?;
        let now = schedules.store().now();
        records
            .into_iter()
            .map(|record| ScheduleView::new(set, record, now, NEXT_IN_LIST))
            .collect()
    }

    /// One schedule, with its next times.
    ///
    /// # Errors
    /// [`SyncError::NotFound`], [`SyncError::Unavailable`].
    pub async fn schedule(
        &self,
        set: &ResourceId,
        id: &Key,
        next: usize,
    ) -> Result<ScheduleView, SyncError> {
        let (schedules, _) = self.of(set).await?;
        ScheduleView::new(set, schedules.get(id).await?, schedules.store().now(), next)
    }

    /// Runs no slots of a schedule from now on.
    ///
    /// # Errors
    /// [`SyncError::NotFound`], [`SyncError::Unavailable`].
    pub async fn pause_schedule(
        &self,
        set: &ResourceId,
        id: &Key,
        by: &By,
    ) -> Result<Changed, SyncError> {
        let (schedules, resource) = self.of(set).await?;
        let not = "it is paused already";
        if schedules.get(id).await?.paused.is_some() {
            return Ok(Changed::unchanged(not));
        }
        self.note("pause", &resource, Some(id.as_str()), by).await?;
        let done = schedules.pause(id, &by.actor, &by.reason).await?;
        Ok(Changed::of(done, format!("{id} is paused: what runs is finished"), not))
    }

    /// Runs the slots that come from now on.
    ///
    /// # Errors
    /// [`SyncError::NotFound`], [`SyncError::Unavailable`].
    pub async fn resume_schedule(
        &self,
        set: &ResourceId,
        id: &Key,
        by: &By,
    ) -> Result<Changed, SyncError> {
        let (schedules, resource) = self.of(set).await?;
        let not = "it is not paused";
        if schedules.get(id).await?.paused.is_none() {
            return Ok(Changed::unchanged(not));
        }
        self.note("resume", &resource, Some(id.as_str()), by).await?;
        let done = schedules.resume(id).await?;
        let what =
            format!("{id} runs again from its next slot on; what passed is not run by itself");
        Ok(Changed::of(done, what, not))
    }

    /// Asks for a run now. The same request is one run.
    ///
    /// # Errors
    /// Those of [`Schedules::run_now`].
    pub async fn run_schedule(
        &self,
        set: &ResourceId,
        (id, request): (&Key, &Key),
        by: &By,
    ) -> Result<Changed, SyncError> {
        let (schedules, resource) = self.of(set).await?;
        let not = "the request is known already";
        if schedules.get(id).await?.ask(request)?.is_none() {
            return Ok(Changed::unchanged(not));
        }
        self.note("run", &resource, Some(id.as_str()), by).await?;
        let done = schedules.run_now(id, request).await?;
        let what = format!("{id} is asked to run now, by request `{request}`");
        Ok(Changed::of(done, what, not))
    }

    /// Asks for the slots from one instant up to another, both included, that are over.
    ///
    /// # Errors
    /// Those of [`Schedules::backfill`].
    pub async fn backfill_schedule(
        &self,
        set: &ResourceId,
        (id, from, until): (&Key, Timestamp, Timestamp),
        by: &By,
    ) -> Result<Changed, SyncError> {
        if from > until {
            let why = "it is before `from`".to_owned();
            return Err(SyncError::InvalidOption { option: "until", why });
        }
        let (schedules, resource) = self.of(set).await?;
        let span = Span { after: Timestamp::from_micros(from.micros().saturating_sub(1)), until };
        let not = "all of it was asked for before, or is still due by itself";
        if schedules.get(id).await?.backfill(span, schedules.store().now())?.is_none() {
            return Ok(Changed::unchanged(not));
        }
        self.note("backfill", &resource, Some(id.as_str()), by).await?;
        let done = schedules.backfill(id, span).await?;
        let what = format!("{id} is asked to run its slots from {from} to {until}");
        Ok(Changed::of(done, what, not))
    }
}
