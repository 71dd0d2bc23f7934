//! Fires the schedules of the app's live versions by a scheduler on a coordination server.
//!
//! What is live stands in the store. Each pass brings the server's records in line with it, so a start restores them,
//! and a run asks the store once more whether its schedule is live. The key of a slot is the one that workers without such
//! a scheduler use: where both run, a slot is one event all the same.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use surefoot_kernel_core::canonical::hash_text;
use surefoot_kernel_core::{Event, ScheduleRow, Timestamp, TxStore, schedule_event};
use surefoot_sync_core::{
    Backoff, Key, Occasion, ScheduleRecord, ScheduleSpec, ScheduleStore, Schedules, SyncError,
    slot_key,
};

use super::Engine;
use super::schedules::{Fires, LOOK_EVERY, before};
use super::shift::{Phase, Shift};
use crate::WorkerError;
use crate::coordinate::{ProcessOptions, ScheduleCx, Scheduler, WorkStop};
use crate::engine::life::with_causes;

/// Events that are recorded at the same time.
const AT_ONCE: usize = 4;
/// A slot is not given up because the store is away for long.
const ATTEMPTS: u32 = u32::MAX;
/// So much of a schedule's name is readable in its id.
const READABLE_MAX_CHARS: usize = 48;
/// Digits of the hash behind it.
const HASH_CHARS: usize = 16;

impl<S: TxStore> Engine<S> {
    /// Keeps the records in line and runs what is due, until the worker stops.
    pub(super) async fn trigger_until_stopped(
        self: &Arc<Self>,
        shift: &Arc<Shift>,
        store: &Arc<dyn ScheduleStore>,
    ) {
        let scheduler = scheduler(store);
        let mut scheduling = scheduler.process(self.at_once(), self.clone().trigger());
        loop {
            let wait = match self.keep_records(scheduler.schedules()).await {
                Ok(()) => {
                    shift.lives.schedules.well();
                    Duration::from(LOOK_EVERY)
                }
                Err(error) => {
                    shift.lives.schedules.failed(&with_causes(&error));
                    self.settings.scan.into()
                }
            };
            tokio::select! {
                biased;
                () = shift.reached(Phase::Draining) => break,
                () = self.published.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        scheduling.drain().await;
    }

    /// One pass of both.
    pub(super) async fn trigger_due(
        self: &Arc<Self>,
        store: &Arc<dyn ScheduleStore>,
    ) -> Result<Fires, WorkerError> {
        let scheduler = scheduler(store);
        self.keep_records(scheduler.schedules()).await?;
        let passed = scheduler.pass(self.at_once(), self.clone().trigger()).await;
        let new = passed.map_err(WorkerError::Schedules)?;
        Ok(Fires { new, ..Fires::default() })
    }

    fn at_once(&self) -> ProcessOptions {
        ProcessOptions { concurrency: AT_ONCE, runtime_max: Duration::from_secs(60) }
    }

    /// One record for each live schedule, and none for one that is gone.
    async fn keep_records(&self, schedules: &Schedules) -> Result<(), WorkerError> {
        // Read before the store: what is not in the store then is gone, and not new.
        let there = schedules.list().await.map_err(WorkerError::Schedules)?;
        let listed = self.kernel.store().schedule_list(self.kernel.app()).await?;
        let now = schedules.store().now();
        let mut live = BTreeMap::new();
        for row in listed.rows {
            match self.spec(&row) {
                Ok(spec) => {
                    live.insert(spec.id.clone(), (spec, row));
                }
                Err(error) => {
                    let (workflow, name) = (row.workflow.as_str(), row.key.as_str());
                    tracing::error!(workflow, name, %error, "a schedule cannot be read: publish it again");
                }
            }
        }
        let owner = self.owner();
        let is_own = |record: &ScheduleRecord| record.spec.owner.as_ref() == Some(&owner);
        for record in there.into_iter().filter(is_own) {
            match live.remove(&record.spec.id) {
                Some((spec, row)) => {
                    let since = self.fires_since(&row, now);
                    if record.spec != spec || record.dealt_until < since {
                        schedules.keep(spec, since).await.map_err(WorkerError::Schedules)?;
                    }
                }
                None => {
                    schedules.delete(&record.spec.id).await.map_err(WorkerError::Schedules)?;
                }
            }
        }
        for (spec, row) in live.into_values() {
            let since = self.fires_since(&row, now);
            schedules.keep(spec, since).await.map_err(WorkerError::Schedules)?;
        }
        Ok(())
    }

    /// Slots up to here do not fire: they were before its time, are too old, or passed while it was disabled.
    fn fires_since(&self, row: &ScheduleRow, now: Timestamp) -> Timestamp {
        if row.enabled { row.since.max(before(now, self.settings.catch_up)) } else { now }
    }

    fn owner(&self) -> String {
        format!("workflows of {}", self.kernel.app())
    }

    fn spec(&self, row: &ScheduleRow) -> Result<ScheduleSpec, SyncError> {
        let zone = row.schedule.timezone.as_deref();
        let spec = ScheduleSpec::new(self.record_id(row)?, &row.schedule.cron, zone)?;
        Ok(spec.misfire(self.settings.misfire).attempts(ATTEMPTS).owner(self.owner()))
    }

    /// Readable, and another one for each schedule of each app.
    fn record_id(&self, row: &ScheduleRow) -> Result<Key, SyncError> {
        let whole = json!([self.kernel.app(), row.scope, row.workflow, row.key]).to_string();
        let hash: String = hash_text(&whole).chars().take(HASH_CHARS).collect();
        let name = format!("{}/{}", row.workflow.as_str(), row.key);
        let plain = |c: char| if c.is_ascii_graphic() { c } else { '_' };
        let readable: String = name.chars().map(plain).take(READABLE_MAX_CHARS).collect();
        Key::new(format!("{readable}-{hash}"))
    }

    fn trigger(
        self: Arc<Self>,
    ) -> impl Fn(ScheduleCx) -> std::pin::Pin<Box<dyn Future<Output = Result<(), WorkStop>> + Send>>
    + Send
    + Sync
    + 'static {
        move |cx| {
            let engine = self.clone();
            Box::pin(async move { engine.trigger_for(&cx).await })
        }
    }

    /// Records the event of a run, if its schedule is live.
    async fn trigger_for(&self, cx: &ScheduleCx) -> Result<(), WorkStop> {
        let listed = self.kernel.store().schedule_list(self.kernel.app()).await?;
        let is_meant = |row: &&ScheduleRow| self.record_id(row).is_ok_and(|id| id == cx.schedule);
        let Some(row) = listed.rows.iter().find(is_meant).filter(|row| row.enabled) else {
            let schedule = cx.schedule.as_str();
            tracing::debug!(schedule, "not fired: it is not live, or disabled");
            return Ok(());
        };
        if let Some(event) = self.event_of(row, &cx.occasion, listed.now)? {
            self.kernel.scope(row.scope.clone()).emit(event).await?;
        }
        Ok(())
    }

    /// `None` for a slot of another time that the schedule had.
    fn event_of(
        &self,
        row: &ScheduleRow,
        occasion: &Occasion,
        now: Timestamp,
    ) -> Result<Option<Event>, SyncError> {
        let (workflow, name) = (row.workflow.as_str(), row.key.as_str());
        let (slot, key) = match occasion {
            Occasion::Slot(slot) => {
                let just_before = before(*slot, surefoot_kernel_core::Micros::new(1));
                let due = self.spec(row)?.schedule()?.next_after(just_before);
                if due != Some(*slot) || *slot <= row.since {
                    return Ok(None);
                }
                (*slot, slot_key(workflow, name, *slot))
            }
            Occasion::Backfill(slot) => (*slot, slot_key(workflow, name, *slot)),
            Occasion::Asked(request) => (now, format!("{workflow}/{name}!{request}")),
        };
        let data: Value = json!({ "slot": slot.to_string(), "occurredAt": now.to_string() });
        let event = Event::new(schedule_event(&row.key), data).target(row.workflow.clone());
        Ok(Some(event.dedupe_key(key).occurred_at(slot)))
    }
}

fn scheduler(store: &Arc<dyn ScheduleStore>) -> Scheduler {
    let waits = [1, 5, 30].map(Duration::from_secs);
    Scheduler::new(store.clone()).backoff(Backoff::new(waits.to_vec()))
}
