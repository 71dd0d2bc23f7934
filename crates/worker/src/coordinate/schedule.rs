//! A scheduler: handlers at the slots of schedules, on any number of workers.

use std::sync::Arc;
use std::time::Duration;

use surefoot_kernel_core::BoxFuture;
use surefoot_sync_core::{
    Backoff, Begun, Key, Occasion, Outcome, Recorded, ScheduleRecord, ScheduleSpec, ScheduleStore,
    SyncError,
};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::{ProcessOptions, WorkStop};

/// How long a run is held without being held again.
const HOLD: Duration = Duration::from_secs(30);
/// A schedule that another process created, or a request, is seen this much later at most.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How often the end of a run is looked for.
const AWAIT_EVERY: Duration = Duration::from_millis(250);
/// How often a change is decided anew because somebody else changed the record meanwhile.
const TRIES: usize = 20;

/// Schedules of one set: created, asked for, and run. Clones are one handle.
#[derive(Clone)]
pub struct Scheduler {
    store: Arc<dyn ScheduleStore>,
    backoff: Backoff,
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler").field("id", self.store.id()).finish_non_exhaustive()
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

/// A run, in the hands of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleCx {
    /// Of which schedule.
    pub schedule: Key,
    /// Which slot it is for, or which request.
    pub occasion: Occasion,
    /// Counts the runs of the schedule, from 1.
    pub run: u64,
    /// The first is 1.
    pub attempt: u32,
}

impl Scheduler {
    /// On a set of schedules; attempts that fail are made again after 1 s, 5 s, 30 s and 120 s.
    #[must_use]
    pub fn new(store: Arc<dyn ScheduleStore>) -> Self {
        Self { store, backoff: Backoff::default() }
    }

    /// With other waits between attempts.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Creates a schedule, or changes what it does. Repeatable. A new one begins with the first slot after now; one that
    /// is due at other times as well.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`], [`SyncError::Conflict`] if others change it all the time.
    pub async fn create(&self, spec: ScheduleSpec) -> Result<ScheduleCreated, SyncError> {
        for _ in 0..TRIES {
            let there = self.store.schedule_load(&spec.id).await?;
            let now = self.store.now();
            let (record, revision, created) = match there {
                None => (ScheduleRecord::new(spec.clone(), now), 0, ScheduleCreated::New),
                Some(Recorded { record, revision }) => {
                    match record.respecified(spec.clone(), now) {
                        Some(record) => (record, revision, ScheduleCreated::Changed),
                        None => return Ok(ScheduleCreated::Unchanged),
                    }
                }
            };
            if self.store.schedule_save(&record, revision).await?.is_some() {
                return Ok(created);
            }
        }
        Err(busy(&spec.id))
    }

    /// Deletes a schedule with all that is known of it; `false` if there is none. A run that is under way ends, and
    /// nothing is recorded of it.
    ///
    /// # Errors
    /// Those of [`Scheduler::create`].
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

    /// Asks for a run beside the slots, which stay as they are. The same request is one run, also when it is repeated
    /// after that has ended, as long as the run is among the last fifty.
    ///
    /// # Errors
    /// [`SyncError::NotFound`] if there is no such schedule, [`SyncError::StoreFull`] if a hundred requests wait; else
    /// those of [`Scheduler::create`].
    pub async fn run_now(&self, id: &Key, request: &Key) -> Result<(), SyncError> {
        let asked = self.change(id, |record, _| record.ask(request)).await?;
        asked.map(|_| ()).ok_or_else(|| missing(id))
    }

    /// Waits for the end of a run that was asked for. Cancel safe.
    ///
    /// # Errors
    /// [`SyncError::NotFound`] if the schedule is deleted meanwhile; [`SyncError::Unavailable`].
    pub async fn await_run(&self, id: &Key, request: &Key) -> Result<Outcome, SyncError> {
        loop {
            let there = self.store.schedule_load(id).await?.ok_or_else(|| missing(id))?;
            if let Some(outcome) = there.record.outcome_of(request) {
                return Ok(outcome.clone());
            }
            tokio::time::sleep(AWAIT_EVERY).await;
        }
    }

    /// Decides on the record and writes what was decided, anew if somebody else was first. `Some(None)` if nothing is
    /// to change, `None` if there is no such schedule.
    async fn change(
        &self,
        id: &Key,
        decide: impl Fn(
            &ScheduleRecord,
            &dyn ScheduleStore,
        ) -> Result<Option<ScheduleRecord>, SyncError>
        + Send
        + Sync,
    ) -> Result<Option<Option<ScheduleRecord>>, SyncError> {
        for _ in 0..TRIES {
            let Some(there) = self.store.schedule_load(id).await? else { return Ok(None) };
            let Some(next) = decide(&there.record, &*self.store)? else { return Ok(Some(None)) };
            if self.store.schedule_save(&next, there.revision).await?.is_some() {
                return Ok(Some(Some(next)));
            }
        }
        Err(busy(id))
    }

    /// Runs what is due until it is stopped. The handler must be idempotent: an attempt whose worker dies or is too slow
    /// is followed by another.
    ///
    /// Must be called in a tokio runtime.
    pub fn process<F, Fut>(&self, options: ProcessOptions, handler: F) -> Scheduling
    where
        F: Fn(ScheduleCx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), WorkStop>> + Send + 'static,
    {
        let handler = move |cx| -> BoxFuture<'static, _> { Box::pin(handler(cx)) };
        let (stop, stopped) = watch::channel(false);
        let run = Run { scheduler: self.clone(), options, handler: Box::new(handler) };
        Scheduling { stop, task: tokio::spawn(Arc::new(run).run(stopped)) }
    }
}

fn busy(id: &Key) -> SyncError {
    SyncError::Conflict { what: format!("schedule {id}") }
}

fn missing(id: &Key) -> SyncError {
    SyncError::NotFound { what: format!("schedule {id}") }
}

/// Schedules that are run until this is stopped. Dropping it stops it: what runs is finished.
#[derive(Debug)]
pub struct Scheduling {
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Scheduling {
    /// Begins no more runs.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Stops, and waits for the runs that are under way. Cancel safe: the stop stays.
    pub async fn drain(&mut self) {
        self.stop();
        let _ = (&mut self.task).await;
    }
}

struct Run {
    scheduler: Scheduler,
    options: ProcessOptions,
    handler: Box<dyn Fn(ScheduleCx) -> BoxFuture<'static, Result<(), WorkStop>> + Send + Sync>,
}

impl Run {
    async fn run(self: Arc<Self>, mut stopped: watch::Receiver<bool>) {
        let slots = Arc::new(Semaphore::new(self.options.concurrency));
        let mut running = JoinSet::new();
        loop {
            let wait = match self.look(&slots, &mut running).await {
                Ok(wait) => wait,
                Err(error) => {
                    let id = self.scheduler.store.id().as_str();
                    tracing::warn!(id, %error, "schedules cannot be read");
                    LOOK_EVERY
                }
            };
            tokio::select! {
                biased;
                // An error: nobody is left who could stop it.
                _ = stopped.wait_for(|stopped| *stopped) => break,
                _ = running.join_next(), if !running.is_empty() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        while running.join_next().await.is_some() {}
    }

    /// Begins what is due, as far as there are slots, and tells when to look again. A schedule that cannot be read holds
    /// up no other.
    async fn look(
        self: &Arc<Self>,
        slots: &Arc<Semaphore>,
        running: &mut JoinSet<()>,
    ) -> Result<Duration, SyncError> {
        let store = &self.scheduler.store;
        let mut wait = LOOK_EVERY;
        for Recorded { record, revision } in store.schedule_list().await? {
            let Ok(slot) = slots.clone().try_acquire_owned() else { break };
            let now = store.now();
            match record.begin(now, HOLD) {
                Ok(Some(next)) => {
                    // What was lost to another worker, or ended here, is looked at again at once.
                    let saved = store.schedule_save(&next, revision).await?;
                    match next.current.clone().filter(|_| saved.is_some()) {
                        Some(begun) => {
                            let (this, id) = (self.clone(), record.spec.id.clone());
                            running.spawn(async move {
                                this.attempt(&id, &begun).await;
                                drop(slot);
                            });
                        }
                        None => wait = Duration::ZERO,
                    }
                }
                Ok(None) => {
                    if let Some(at) = record.next_at()? {
                        wait = wait.min(Duration::from(at.since(now)));
                    }
                }
                Err(error) => {
                    let schedule = record.spec.id.as_str();
                    tracing::error!(schedule, %error, "a schedule cannot be read: create it again");
                }
            }
        }
        Ok(wait.max(Duration::from_millis(1)))
    }

    /// In a task of its own, so that a panic is a failed attempt, and held meanwhile.
    async fn attempt(&self, id: &Key, begun: &Begun) {
        let cx = ScheduleCx {
            schedule: id.clone(),
            occasion: begun.occasion.clone(),
            run: begun.number,
            attempt: begun.attempt,
        };
        let mut task = JoinSet::new();
        task.spawn((self.handler)(cx));
        let too_long = tokio::time::sleep(self.options.runtime_max);
        tokio::pin!(too_long);
        let outcome = loop {
            tokio::select! {
                biased;
                ended = task.join_next() => break match ended {
                    Some(Ok(Ok(()))) => Outcome::Succeeded,
                    Some(Ok(Err(stop))) => Outcome::Failed(stop.into_reason()),
                    Some(Err(_)) | None => Outcome::Failed("the handler panicked".to_owned()),
                },
                () = &mut too_long => {
                    task.shutdown().await;
                    break Outcome::Failed("the handler ran too long".to_owned());
                }
                () = tokio::time::sleep(HOLD / 3) => {
                    let hold = |record: &ScheduleRecord, store: &dyn ScheduleStore| {
                        Ok(record.hold(begun, store.now(), HOLD))
                    };
                    if let Err(error) = self.scheduler.change(id, hold).await {
                        tracing::debug!(schedule = id.as_str(), %error, "a run is not held");
                    }
                }
            }
        };
        let backoff = &self.scheduler.backoff;
        let end = |record: &ScheduleRecord, store: &dyn ScheduleStore| {
            Ok(record.end(begun, outcome.clone(), store.now(), backoff))
        };
        if let Err(error) = self.scheduler.change(id, end).await {
            tracing::warn!(schedule = id.as_str(), %error, "the end of a run was not recorded; it runs again");
        }
    }
}
