//! Fires the schedules of the app's live versions.
//!
//! Any worker of the app does, whatever it can run: a slot's key makes the same slot of two workers one event. What
//! is live is read from the store at each pass, so a start restores it, and a change elsewhere is seen.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::{
    EmitError, Event, Micros, ScheduleRow, Timestamp, TxStore, WorkflowKey, schedule_event,
};
use surefoot_sync_core::{Schedule, slot_key};

use super::Engine;
use super::shift::{Phase, Shift};
use crate::engine::life::with_causes;
use crate::{Misfire, WorkerError};

/// A schedule that another process published is seen this much later at most.
pub(super) const LOOK_EVERY: Micros = Micros::from_secs(15);
/// Slots of one schedule that one pass fires.
const SLOTS_MAX: usize = 1_000;

/// Up to when the slots of a schedule were dealt with, by this process. A schedule that changes begins anew.
pub(super) type Fired = BTreeMap<(String, WorkflowKey, String, String), Timestamp>;

/// What a pass did.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fires {
    /// Events that this pass recorded.
    pub(super) new: usize,
    /// When to look again.
    pub(super) wait: Duration,
}

impl<S: TxStore> Engine<S> {
    /// Fires what is due, sleeps until something is, and looks again whenever somebody publishes.
    pub(super) async fn fire_until_stopped(self: &Arc<Self>, shift: &Arc<Shift>) {
        if let Some(store) = &self.settings.schedules {
            return self.trigger_until_stopped(shift, store).await;
        }
        loop {
            let wait = match self.fire_due().await {
                Ok(fires) => {
                    shift.lives.schedules.well();
                    fires.wait
                }
                Err(error) => {
                    shift.lives.schedules.failed(&with_causes(&error));
                    self.settings.scan.into()
                }
            };
            tokio::select! {
                biased;
                () = shift.reached(Phase::Draining) => return,
                () = self.published.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// One pass. A schedule whose event cannot be recorded now does not hold up the others, and is tried again.
    pub(super) async fn fire_due(self: &Arc<Self>) -> Result<Fires, WorkerError> {
        if self.settings.tree.is_some() {
            // What a schedule starts is no part of the tree.
            return Ok(Fires { new: 0, wait: LOOK_EVERY.into() });
        }
        if let Some(store) = &self.settings.schedules {
            return self.trigger_due(store).await;
        }
        let listed = self.kernel.store().schedule_list(self.kernel.app()).await?;
        let now = listed.now;
        let mut fires = Fires::default();
        let (mut fired, mut failed) = (Fired::new(), None);
        let mut next = now.plus(LOOK_EVERY);
        for row in &listed.rows {
            let schedule = match Schedule::of_plan(&row.schedule) {
                Ok(schedule) => schedule,
                Err(error) => {
                    let (workflow, name) = (row.workflow.as_str(), row.key.as_str());
                    tracing::error!(workflow, name, %error, "a schedule cannot be read: publish it again");
                    continue;
                }
            };
            let from = self.fired_until(row, now);
            let due = self.due(row, &schedule, from, now);
            // More than one pass fires: the rest is still due.
            let rest = due.get(SLOTS_MAX.saturating_sub(1)).copied();
            let mut until = rest.unwrap_or(now);
            if rest.is_some() {
                next = now;
            }
            for slot in due {
                match self.fire(row, slot, now).await {
                    Ok(new) => fires.new += usize::from(new),
                    Err(error) => {
                        failed.get_or_insert(error);
                        // The slot itself is still due.
                        until = before(slot, Micros::new(1));
                        break;
                    }
                }
            }
            fired.insert(key_of(row), until.max(from));
            next = schedule.next_after(now).map_or(next, |slot| slot.min(next));
        }
        *self.fired.lock().unwrap_or_else(PoisonError::into_inner) = fired;
        if let Some(error) = failed {
            return Err(WorkerError::Schedule(error));
        }
        fires.wait = Duration::from(next.since(now)).max(Duration::from_millis(1));
        Ok(fires)
    }

    /// Slots up to here are over: dealt with, older than the window, or of a time before the schedule.
    fn fired_until(&self, row: &ScheduleRow, now: Timestamp) -> Timestamp {
        let fired = self.fired.lock().unwrap_or_else(PoisonError::into_inner);
        let window = before(now, self.settings.catch_up);
        let known = fired.get(&key_of(row)).copied().unwrap_or(row.since);
        known.max(row.since).max(window)
    }

    fn due(
        &self,
        row: &ScheduleRow,
        schedule: &Schedule,
        from: Timestamp,
        now: Timestamp,
    ) -> Vec<Timestamp> {
        if !row.enabled {
            return Vec::new();
        }
        match self.settings.misfire {
            Misfire::Latest => schedule.latest(from, now).into_iter().collect(),
            Misfire::All => schedule.slots(from, now, SLOTS_MAX),
        }
    }

    /// Whether this call recorded the event.
    async fn fire(
        &self,
        row: &ScheduleRow,
        slot: Timestamp,
        now: Timestamp,
    ) -> Result<bool, EmitError> {
        let data = json!({ "slot": slot.to_string(), "occurredAt": now.to_string() });
        let event = Event::new(schedule_event(&row.key), data)
            .target(row.workflow.clone())
            .dedupe_key(slot_key(row.workflow.as_str(), &row.key, slot))
            .occurred_at(slot);
        let emission = self.kernel.scope(row.scope.clone()).emit(event).await?;
        Ok(emission.new)
    }
}

pub(super) fn before(at: Timestamp, span: Micros) -> Timestamp {
    Timestamp::from_micros(at.micros().saturating_sub(span.get()))
}

fn key_of(row: &ScheduleRow) -> (String, WorkflowKey, String, String) {
    let zone = row.schedule.timezone.as_deref().unwrap_or_default();
    let due = format!("{} {zone}", row.schedule.cron);
    (row.scope.as_str().to_owned(), row.workflow.clone(), row.key.clone(), due)
}
