//! A scheduler: handlers at the slots of schedules, on any number of workers.

use std::sync::Arc;
use std::time::Duration;

use surefoot_kernel_core::{BoxFuture, Timestamp};
use surefoot_sync_core::{
    Backoff, Begun, Key, Occasion, Outcome, Recorded, ScheduleCreated, ScheduleRecord,
    ScheduleSpec, ScheduleStore, Schedules, SyncError,
};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::{ProcessOptions, WorkStop};

/// How long a run is held without being held again, unless the application says otherwise.
const HOLD: Duration = Duration::from_secs(30);
const HOLD_MIN: Duration = Duration::from_secs(1);
/// A schedule that another process created, or a request, is seen this much later at most.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How often the end of a run is looked for.
const AWAIT_EVERY: Duration = Duration::from_millis(250);

/// Schedules of one set: created, asked for, and run. Clones are one handle.
#[derive(Clone)]
pub struct Scheduler {
    schedules: Schedules,
    backoff: Backoff,
    hold: Duration,
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler").field("schedules", &self.schedules).finish_non_exhaustive()
    }
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
        Self { schedules: Schedules::new(store), backoff: Backoff::default(), hold: HOLD }
    }

    /// With other waits between attempts.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// A run whose worker died is begun again after so long, at least a second; 30 s unless it is set. A worker holds
    /// its runs three times as often.
    #[must_use]
    pub fn hold(mut self, hold: Duration) -> Self {
        self.hold = hold.max(HOLD_MIN);
        self
    }

    /// Its schedules, to be created, looked at and changed.
    #[must_use]
    pub fn schedules(&self) -> &Schedules {
        &self.schedules
    }

    /// See [`Schedules::create`].
    ///
    /// # Errors
    /// Those of it.
    pub async fn create(&self, spec: ScheduleSpec) -> Result<ScheduleCreated, SyncError> {
        self.schedules.create(spec).await
    }

    /// See [`Schedules::delete`].
    ///
    /// # Errors
    /// Those of it.
    pub async fn delete(&self, id: &Key) -> Result<bool, SyncError> {
        self.schedules.delete(id).await
    }

    /// See [`Schedules::list`].
    ///
    /// # Errors
    /// Those of it.
    pub async fn list(&self) -> Result<Vec<ScheduleRecord>, SyncError> {
        self.schedules.list().await
    }

    /// See [`Schedules::run_now`].
    ///
    /// # Errors
    /// Those of it.
    pub async fn run_now(&self, id: &Key, request: &Key) -> Result<bool, SyncError> {
        self.schedules.run_now(id, request).await
    }

    /// Waits for the end of a run that was asked for. Cancel safe.
    ///
    /// # Errors
    /// [`SyncError::NotFound`] if the schedule is deleted meanwhile; [`SyncError::Unavailable`].
    pub async fn await_run(&self, id: &Key, request: &Key) -> Result<Outcome, SyncError> {
        loop {
            let record = self.schedules.get(id).await?;
            if let Some(outcome) = record.outcome_of(request) {
                return Ok(outcome.clone());
            }
            tokio::time::sleep(AWAIT_EVERY).await;
        }
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
        let (stop, stopped) = watch::channel(false);
        let run = Run::new(self, options, handler);
        Scheduling { stop, task: tokio::spawn(Arc::new(run).run(stopped)) }
    }

    /// Runs what is due now, and waits for its end. How many runs that were.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`], [`SyncError::Corrupt`]: the schedules cannot be read.
    pub async fn pass<F, Fut>(
        &self,
        options: ProcessOptions,
        handler: F,
    ) -> Result<usize, SyncError>
    where
        F: Fn(ScheduleCx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), WorkStop>> + Send + 'static,
    {
        let run = Arc::new(Run::new(self, options, handler));
        let slots = Arc::new(Semaphore::new(run.options.concurrency));
        let (mut running, mut runs) = (JoinSet::new(), 0);
        loop {
            run.look(&slots, &mut running).await?;
            if running.is_empty() {
                return Ok(runs);
            }
            while running.join_next().await.is_some() {
                runs += 1;
            }
        }
    }
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
    fn new<F, Fut>(scheduler: &Scheduler, options: ProcessOptions, handler: F) -> Self
    where
        F: Fn(ScheduleCx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), WorkStop>> + Send + 'static,
    {
        let handler = move |cx| -> BoxFuture<'static, _> { Box::pin(handler(cx)) };
        Self { scheduler: scheduler.clone(), options, handler: Box::new(handler) }
    }

    async fn run(self: Arc<Self>, mut stopped: watch::Receiver<bool>) {
        let slots = Arc::new(Semaphore::new(self.options.concurrency));
        let mut running = JoinSet::new();
        loop {
            let wait = match self.look(&slots, &mut running).await {
                Ok(wait) => wait,
                Err(error) => {
                    let id = self.scheduler.schedules.store().id().as_str();
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
        let store = self.scheduler.schedules.store();
        let mut wait = LOOK_EVERY;
        let mut records = store.schedule_list().await?;
        // What is due longest comes first, so that no schedule keeps others waiting for ever.
        records
            .sort_by_cached_key(|it| it.record.next_at().ok().flatten().unwrap_or(Timestamp::MAX));
        for Recorded { record, revision } in records {
            let Ok(slot) = slots.clone().try_acquire_owned() else { break };
            let now = store.now();
            match record.begin(now, self.scheduler.hold) {
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
                () = tokio::time::sleep(self.scheduler.hold / 3) => {
                    let span = self.scheduler.hold;
                    let hold = |record: &ScheduleRecord, now| Ok(record.hold(begun, now, span));
                    if let Err(error) = self.scheduler.schedules.change(id, hold).await {
                        tracing::debug!(schedule = id.as_str(), %error, "a run is not held");
                    }
                }
            }
        };
        let backoff = &self.scheduler.backoff;
        let end =
            |record: &ScheduleRecord, now| Ok(record.end(begun, outcome.clone(), now, backoff));
        if let Err(error) = self.scheduler.schedules.change(id, end).await {
            tracing::warn!(schedule = id.as_str(), %error, "the end of a run was not recorded; it runs again");
        }
    }
}
