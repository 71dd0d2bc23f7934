//! The worker of AI tasks: takes them, asks, checks, delivers; and lets go what nobody wants any more.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize as _;
use surefoot_kernel_core::{
    App, ClaimTasks, Micros, StoreError, Task, TaskEnd, TaskHold, TaskStore,
};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};

use super::output::usable;
use super::provider::{AiError, AiProvider};
use super::request::AiRequest;
use super::task::kind_of;
use super::{
    AI_ATTEMPTS_MAX, AI_OUTPUT_INVALID, AI_REFUSED, AI_TASKS, AI_UNAVAILABLE, AI_UNREADABLE,
};

/// How long a task is this worker's without a sign of life.
const LEASE: Micros = Micros::from_secs(60);
/// Half of it: each look is a sign of life.
const SCAN_MAX: Duration = Duration::from_secs(30);
/// Tasks that one look cancels.
const SWEEP_MAX: u32 = 1_000;
/// The first wait before another attempt; the next is four times as long.
const AGAIN_FIRST: Duration = Duration::from_secs(2);
const AGAIN_MAX: Duration = Duration::from_secs(300);
/// Between two tries to end a task whose store is away.
const STORE_PAUSE: Duration = Duration::from_millis(500);

/// Does the AI tasks of one app.
pub struct AiWorker {
    work: Arc<Work>,
    concurrency: usize,
    scan: Duration,
}

struct Work {
    app: App,
    kind: String,
    store: Arc<dyn TaskStore>,
    provider: Arc<dyn AiProvider>,
    timeout: Duration,
    again_first: Duration,
}

impl AiWorker {
    /// For the tasks of an app, on the store of its runs.
    pub fn new(
        app: impl Into<App>,
        store: impl TaskStore + 'static,
        provider: impl AiProvider + 'static,
    ) -> Self {
        let work = Work {
            app: app.into(),
            kind: AI_TASKS.to_owned(),
            store: Arc::new(store),
            provider: Arc::new(provider),
            timeout: Duration::from_secs(600),
            again_first: AGAIN_FIRST,
        };
        Self { work: Arc::new(work), concurrency: 4, scan: Duration::from_millis(500) }
    }

    /// Calls at the same time; 4 by default.
    #[must_use]
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.concurrency = calls.max(1);
        self
    }

    /// Does the tasks of this [lane](super::Ai::lane) alone.
    #[must_use]
    pub fn lane(mut self, lane: impl AsRef<str>) -> Self {
        if let Some(work) = Arc::get_mut(&mut self.work) {
            work.kind = kind_of(lane.as_ref());
        }
        self
    }

    /// How often it looks for tasks, and for those that nobody wants any more; every 500 ms by default, at most 30 s.
    #[must_use]
    pub fn scan_every(mut self, scan: Duration) -> Self {
        self.scan = scan.clamp(Duration::from_millis(1), SCAN_MAX);
        self
    }

    /// How long one call may take; 10 min by default. Longer is a failed attempt.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        if let Some(work) = Arc::get_mut(&mut self.work) {
            work.timeout = timeout;
        }
        self
    }

    /// How long after the first failed attempt the next one is made, where the provider does not say; 2 s by default.
    #[must_use]
    pub fn again_after(mut self, first: Duration) -> Self {
        if let Some(work) = Arc::get_mut(&mut self.work) {
            work.again_first = first.min(AGAIN_MAX);
        }
        self
    }

    /// Begins, on this runtime. Dropping the answer stops it without a word to the tasks: others take them over when their
    /// leases end.
    #[must_use]
    pub fn start(self) -> AiWorking {
        let (stop, stopped) = watch::channel(false);
        AiWorking { stop, looping: tokio::spawn(self.work_until(stopped)) }
    }

    async fn work_until(self, mut stopped: watch::Receiver<bool>) {
        let mut calls = Calls::default();
        loop {
            if let Err(error) = self.pass(&mut calls).await {
                tracing::warn!(%error, "AI tasks are not looked after just now");
            }
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stop| *stop) => break,
                () = calls.ended() => {}
                () = tokio::time::sleep(self.scan) => {}
            }
        }
        calls.give_back(&self.work).await;
    }

    /// Looks once, does what it took, and says how much that was: for tests, and for programs with a rhythm of their own.
    /// Dropped, it breaks its calls off, and their tasks are others' when their leases end.
    ///
    /// # Errors
    /// The store's, before anything was taken.
    pub async fn tick(&self) -> Result<usize, StoreError> {
        let mut calls = Calls::default();
        self.pass(&mut calls).await?;
        let taken = calls.len();
        while calls.len() > 0 {
            tokio::select! {
                biased;
                () = calls.ended() => {}
                () = tokio::time::sleep(self.scan) => {
                    if let Err(error) = self.look_after(&mut calls).await {
                        tracing::warn!(%error, "AI tasks are not looked after just now");
                    }
                }
            }
        }
        Ok(taken)
    }

    async fn pass(&self, calls: &mut Calls) -> Result<(), StoreError> {
        self.look_after(calls).await?;
        self.take(calls).await
    }

    /// Lets go what nobody wants, and shows a sign of life for the rest.
    async fn look_after(&self, calls: &mut Calls) -> Result<(), StoreError> {
        let store = &self.work.store;
        store.task_sweep(&self.work.app, SWEEP_MAX).await?;
        let kept = store.task_keep(calls.held(), LEASE).await?;
        calls.keep_only(&kept);
        Ok(())
    }

    /// Takes as much as there is room for.
    async fn take(&self, calls: &mut Calls) -> Result<(), StoreError> {
        let room = self.concurrency.saturating_sub(calls.len());
        if room == 0 {
            return Ok(());
        }
        let claim = ClaimTasks {
            app: self.work.app.clone(),
            kind: self.work.kind.clone(),
            limit: u32::try_from(room).unwrap_or(u32::MAX),
            lease: LEASE,
        };
        for task in self.work.store.task_claim(claim).await? {
            calls.begin(self.work.clone(), task);
        }
        Ok(())
    }
}

impl fmt::Debug for AiWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AiWorker").field("app", &self.work.app).finish_non_exhaustive()
    }
}

/// A worker at work.
#[derive(Debug)]
pub struct AiWorking {
    stop: watch::Sender<bool>,
    looping: JoinHandle<()>,
}

impl AiWorking {
    /// Breaks its calls off, gives their tasks back for others, and ends. Cancel safe: the request stays.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        // A panic in the loop would have been logged; there is nothing left to stop then.
        let _ = (&mut self.looping).await;
    }
}

impl Drop for AiWorking {
    fn drop(&mut self) {
        // After `stop` it has ended by itself.
        if !*self.stop.borrow() {
            self.looping.abort();
        }
    }
}

/// The calls that are being made.
#[derive(Default)]
struct Calls {
    running: JoinSet<TaskHold>,
    handles: BTreeMap<TaskHold, AbortHandle>,
}

impl Calls {
    fn len(&self) -> usize {
        self.handles.len()
    }

    fn held(&self) -> Vec<TaskHold> {
        self.handles.keys().cloned().collect()
    }

    fn begin(&mut self, work: Arc<Work>, task: Task) {
        let hold = task.hold();
        let handle = self.running.spawn(async move {
            let hold = task.hold();
            work.carry_out(task).await;
            hold
        });
        self.handles.insert(hold, handle);
    }

    /// Breaks off what this worker does not hold any more: what comes of it is not wanted.
    fn keep_only(&mut self, kept: &[TaskHold]) {
        self.handles.retain(|hold, handle| {
            // What has ended meanwhile is not held any more either, and is past being broken off.
            let stays = handle.is_finished() || kept.contains(hold);
            if !stays {
                handle.abort();
            }
            stays
        });
    }

    /// Until one of them has ended; never, if there is none. Cancel safe.
    async fn ended(&mut self) {
        let Some(ended) = self.running.join_next().await else {
            return std::future::pending().await;
        };
        match ended {
            Ok(hold) => drop(self.handles.remove(&hold)),
            // Broken off, or it panicked: its lease ends by itself.
            Err(_) => self.handles.retain(|_, handle| !handle.is_finished()),
        }
    }

    async fn give_back(&mut self, work: &Work) {
        self.running.shutdown().await;
        for hold in self.held() {
            if let Err(error) =
                work.store.task_end(hold, TaskEnd::GivenBack { after: Micros::ZERO }).await
            {
                tracing::warn!(%error, "an AI task is given back by the end of its lease only");
            }
        }
    }
}

impl Work {
    async fn carry_out(&self, task: Task) {
        let end = self.end_of(&task).await;
        // Until the store has said what became of it: what is told twice is known.
        loop {
            match self.store.task_end(task.hold(), end.clone()).await {
                Ok(_) => return,
                // It will not be taken however often it is told, and others wait for this place: another attempt may end
                // otherwise.
                Err(error @ (StoreError::Refused(_) | StoreError::Corrupt { .. })) => {
                    tracing::error!(%error, "the end of an AI task is not taken by the store");
                    return;
                }
                Err(error) => tracing::warn!(%error, "the end of an AI task is told again"),
            }
            tokio::time::sleep(STORE_PAUSE).await;
        }
    }

    async fn end_of(&self, task: &Task) -> TaskEnd {
        if task.failures > AI_ATTEMPTS_MAX {
            let why = format!("its workers died {AI_ATTEMPTS_MAX} times");
            return failed(AI_UNAVAILABLE, why);
        }
        let request = match AiRequest::deserialize(task.request.value()) {
            Ok(request) => request,
            Err(error) => return failed(AI_UNREADABLE, error.to_string()),
        };
        let key = task.key();
        let asked = tokio::time::timeout(self.timeout, self.provider.ask(&request, &key)).await;
        let late = |_| Err(AiError::transport("the provider did not come to an end in time"));
        match asked.unwrap_or_else(late) {
            Ok(answer) => match usable(answer, request.schema.as_ref()) {
                Ok(output) => TaskEnd::Succeeded { output },
                Err(why) => failed(AI_OUTPUT_INVALID, why),
            },
            Err(AiError::Refused { message }) => failed(AI_REFUSED, message),
            Err(AiError::Unusable { message }) => failed(AI_OUTPUT_INVALID, message),
            Err(AiError::Transport { message, .. }) if task.failures >= AI_ATTEMPTS_MAX => {
                failed(AI_UNAVAILABLE, message)
            }
            Err(AiError::Transport { retry_after, .. }) => {
                let wait = self.again_first * 4_u32.saturating_pow(task.failures.saturating_sub(1));
                let wait = retry_after.unwrap_or(wait).min(AGAIN_MAX);
                TaskEnd::Again { after: wait.into() }
            }
        }
    }
}

fn failed(code: &'static str, message: String) -> TaskEnd {
    TaskEnd::failed(code, message)
}
