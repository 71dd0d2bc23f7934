//! Workers on jobs and queues: a bounded number of handlers, each holding its delivery as long as it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use surefoot_kernel_core::{BoxFuture, CancelSource};
use surefoot_sync_core::{
    Again, Delivery, Jobs, Queue, Receive, Settled, SyncError, Verdict, Work,
};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{JobCx, JobEnd, WorkStop};

/// One look for work; a stop takes effect when it is over.
const RECEIVE_WAIT: Duration = Duration::from_secs(1);
/// After a look that failed.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// So many messages are worth a request, and so long they are waited for.
const ROOM_FOR: usize = 16;
const ROOM_WITHIN: Duration = Duration::from_millis(1);
const REPAIR_EVERY: Duration = Duration::from_secs(60);
/// A verdict that cannot be delivered is tried so often; then the work is delivered again.
const SETTLE_TRIES: u32 = 3;

/// How work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessOptions {
    pub(crate) concurrency: usize,
    pub(crate) runtime_max: Duration,
}

impl ProcessOptions {
    /// So many handlers at once, each for 10 minutes at most.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] for none.
    pub fn new(concurrency: usize) -> Result<Self, SyncError> {
        if concurrency == 0 {
            let why = "at least one handler runs at a time".to_owned();
            return Err(SyncError::InvalidOption { option: "concurrency", why });
        }
        Ok(Self { concurrency, runtime_max: Duration::from_secs(600) })
    }

    /// A handler that runs longer is dropped, and the attempt has failed.
    #[must_use]
    pub fn runtime_max(mut self, most: Duration) -> Self {
        self.runtime_max = most;
        self
    }
}

/// What became of deliveries since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Done, or submitted again.
    pub done: u64,
    /// Done, and the acknowledgement was not confirmed.
    pub unconfirmed: u64,
    /// To be tried again.
    pub retried: u64,
    /// Given up.
    pub dead: u64,
    /// Settled by somebody else, or not settled at all.
    pub lost: u64,
    /// Found again after the server had lost sight of it.
    pub repaired: u64,
}

#[derive(Debug, Default)]
struct Counters {
    done: AtomicU64,
    unconfirmed: AtomicU64,
    retried: AtomicU64,
    dead: AtomicU64,
    lost: AtomicU64,
    repaired: AtomicU64,
}

/// Work that goes on until it is stopped. Dropping it stops it: what runs is finished.
#[derive(Debug)]
pub struct Processing {
    stop: watch::Sender<bool>,
    counters: Arc<Counters>,
    task: tokio::task::JoinHandle<()>,
}

impl Processing {
    /// Takes no new work, within a second.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Stops, and waits until everything that is held is settled. Cancel safe: the stop stays.
    pub async fn drain(&mut self) {
        self.stop();
        let _ = (&mut self.task).await;
    }

    /// What became of deliveries so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let all = &self.counters;
        Counts {
            done: read(&all.done),
            unconfirmed: read(&all.unconfirmed),
            retried: read(&all.retried),
            dead: read(&all.dead),
            lost: read(&all.lost),
            repaired: read(&all.repaired),
        }
    }
}

/// Does jobs: `handler` is called for each attempt, and must be idempotent.
///
/// Must be called in a tokio runtime.
pub fn process_jobs<F, Fut>(jobs: Arc<dyn Jobs>, options: ProcessOptions, handler: F) -> Processing
where
    F: Fn(JobCx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<JobEnd, WorkStop>> + Send + 'static,
{
    let work: Arc<dyn Work> = jobs.clone();
    let handler = move |cx| -> BoxFuture<'static, _> { Box::pin(handler(cx)) };
    Process { work, jobs: Some(jobs), options, handler: Box::new(handler) }.start()
}

/// Reads a queue: `handler` is called for each attempt, and must be idempotent.
///
/// Must be called in a tokio runtime.
pub fn process_queue<F, Fut>(
    queue: Arc<dyn Queue>,
    options: ProcessOptions,
    handler: F,
) -> Processing
where
    F: Fn(JobCx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), WorkStop>> + Send + 'static,
{
    process_work(queue, options, handler)
}

/// Does work of any resource, of a topic's group for instance: `handler` is called for each attempt, and must be
/// idempotent.
///
/// Must be called in a tokio runtime.
pub fn process_work<F, Fut>(work: Arc<dyn Work>, options: ProcessOptions, handler: F) -> Processing
where
    F: Fn(JobCx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), WorkStop>> + Send + 'static,
{
    let handler = move |cx| -> BoxFuture<'static, _> {
        let run = handler(cx);
        Box::pin(async move { run.await.map(|()| JobEnd::Done) })
    };
    Process { work, jobs: None, options, handler: Box::new(handler) }.start()
}

type Handler = Box<dyn Fn(JobCx) -> BoxFuture<'static, Result<JobEnd, WorkStop>> + Send + Sync>;

struct Process {
    work: Arc<dyn Work>,
    /// The same, where a handler may submit again.
    jobs: Option<Arc<dyn Jobs>>,
    options: ProcessOptions,
    handler: Handler,
}

/// What is to be said about a delivery.
enum Word {
    Verdict(Verdict),
    Again(Again),
}

impl Process {
    fn start(self) -> Processing {
        let (stop, stopped) = watch::channel(false);
        let counters = Arc::new(Counters::default());
        let task = tokio::spawn(Arc::new(self).run(stopped, counters.clone()));
        Processing { stop, counters, task }
    }

    async fn run(self: Arc<Self>, mut stopped: watch::Receiver<bool>, counters: Arc<Counters>) {
        let slots = Arc::new(Semaphore::new(self.options.concurrency));
        let mut running = JoinSet::new();
        let mut repair_at = Instant::now();
        while !*stopped.borrow() {
            if Instant::now() >= repair_at {
                self.repair(&counters).await;
                repair_at = Instant::now() + REPAIR_EVERY;
            }
            // Slots first: nothing is taken that would wait for one while its time runs.
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => break,
                () = self.some_room(&slots) => {}
            }
            let max = slots.available_permits().max(1);
            while running.try_join_next().is_some() {}
            match self.work.receive(Receive { max, wait: RECEIVE_WAIT }).await {
                Ok(deliveries) => {
                    for delivery in deliveries {
                        let Ok(slot) = slots.clone().acquire_owned().await else { break };
                        let (process, counters) = (self.clone(), counters.clone());
                        running.spawn(async move {
                            process.handle(delivery, &counters).await;
                            drop(slot);
                        });
                    }
                }
                Err(error) => {
                    let id = self.work.settings().id.as_str();
                    tracing::warn!(id, %error, "work cannot be received");
                    let _ =
                        tokio::time::timeout(LOOK_AGAIN_AFTER, stopped.wait_for(|it| *it)).await;
                }
            }
        }
        while running.join_next().await.is_some() {}
    }

    /// Until some slots are free at once, or one is and has been for a moment: what ends quickly is then fetched in few
    /// requests, and what takes long keeps no slot empty.
    async fn some_room(&self, slots: &Semaphore) {
        let some = self.options.concurrency.div_ceil(4).min(ROOM_FOR);
        let some = u32::try_from(some).unwrap_or(u32::MAX);
        // Never closed; what is acquired is free again at once.
        if tokio::time::timeout(ROOM_WITHIN, slots.acquire_many(some)).await.is_err() {
            drop(slots.acquire().await);
        }
    }

    async fn repair(&self, counters: &Counters) {
        let id = self.work.settings().id.as_str();
        match self.work.repair().await {
            Ok(0) => {}
            Ok(repaired) => {
                let count = u64::try_from(repaired).unwrap_or(u64::MAX);
                counters.repaired.fetch_add(count, Ordering::Relaxed);
                tracing::warn!(id, repaired, "work that the server lost sight of");
            }
            Err(error) => tracing::warn!(id, %error, "work cannot be repaired"),
        }
    }

    async fn handle(&self, delivery: Delivery, counters: &Counters) {
        let word = self.call(&delivery).await;
        let settled = self.say(&delivery, word).await;
        let counter = match settled {
            Ok(Settled::Done) => &counters.done,
            Ok(Settled::Unconfirmed) => &counters.unconfirmed,
            Ok(Settled::Retried) => &counters.retried,
            Ok(Settled::Buried) => &counters.dead,
            Err(error) => {
                tracing::debug!(id = %delivery.id, %error, "a delivery was not settled");
                &counters.lost
            }
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs the handler in a task of its own, so that its panic is a failed attempt, and holds the delivery meanwhile.
    async fn call(&self, delivery: &Delivery) -> Word {
        let cancel = CancelSource::default();
        let cx = JobCx::new(delivery.clone(), cancel.observer());
        let mut run = JoinSet::new();
        run.spawn((self.handler)(cx));
        let deadline = Instant::now() + self.options.runtime_max;
        let hold_every = self.work.settings().ack_wait / 3;
        loop {
            let hold_at = Instant::now() + hold_every;
            // One timer: most handlers end before either.
            let look_at = hold_at.min(deadline);
            tokio::select! {
                biased;
                ended = run.join_next() => return match ended {
                    Some(Ok(Ok(JobEnd::Done))) => Word::Verdict(Verdict::Done),
                    Some(Ok(Ok(JobEnd::Again(again)))) => Word::Again(again),
                    Some(Ok(Err(stop))) => Word::Verdict(stop.into_verdict()),
                    Some(Err(_)) | None => failed("the handler panicked"),
                },
                () = tokio::time::sleep_until(look_at) => {
                    if look_at == deadline {
                        cancel.fire();
                        run.shutdown().await;
                        return failed("the handler ran too long");
                    }
                    if let Err(error) = self.work.heartbeat(delivery).await {
                        tracing::debug!(id = %delivery.id, %error, "a delivery is not held");
                    }
                }
            }
        }
    }

    async fn say(&self, delivery: &Delivery, word: Word) -> Result<Settled, SyncError> {
        let mut tries = 1;
        loop {
            let said = match (&word, &self.jobs) {
                (Word::Verdict(verdict), _) => self.work.settle(delivery, verdict.clone()).await,
                (Word::Again(again), Some(jobs)) => {
                    jobs.resubmit(delivery, again.clone()).await.map(|()| Settled::Done)
                }
                (Word::Again(_), None) => self.work.settle(delivery, Verdict::Done).await,
            };
            match said {
                Err(SyncError::Unavailable { .. }) if tries < SETTLE_TRIES => tries += 1,
                said => return said,
            }
        }
    }
}

fn failed(reason: &str) -> Word {
    Word::Verdict(Verdict::Retry { delay: None, reason: reason.to_owned() })
}
