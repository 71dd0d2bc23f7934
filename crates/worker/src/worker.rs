//! Workers as applications hold them: without the store's type.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use surefoot_kernel_core::{RunId, SessionId, TxStore};
use tokio::task::JoinHandle;

use crate::engine::{self, Engine, LoopHealth, Phase, Shift};
use crate::{WorkerError, builder::WorkerBuilder};

/// Claims runs and drives them. Cheap to clone; clones are the same worker.
#[derive(Clone)]
pub struct Worker {
    engine: Arc<dyn Drive>,
}

/// What a started worker is made of, whatever it drives.
#[async_trait]
pub(crate) trait Works: Send + Sync {
    async fn drain(self: Arc<Self>, shift: Arc<Shift>) -> Result<(), WorkerError>;
    fn slots(&self) -> usize;
    fn loops(&self, shift: &Shift) -> Vec<LoopHealth>;
}

/// An engine, whatever its store.
#[async_trait]
trait Drive: Works {
    fn start(self: Arc<Self>) -> Result<(Arc<Shift>, JoinHandle<()>), WorkerError>;
    async fn tick(self: Arc<Self>, max_runs: usize) -> Result<Ticked, WorkerError>;
    async fn run_one(self: Arc<Self>) -> Result<Option<RunId>, WorkerError>;
}

#[async_trait]
impl<S: TxStore> Works for Engine<S> {
    async fn drain(self: Arc<Self>, shift: Arc<Shift>) -> Result<(), WorkerError> {
        Engine::drain(&self, &shift).await
    }

    fn slots(&self) -> usize {
        self.settings.slots
    }

    fn loops(&self, shift: &Shift) -> Vec<LoopHealth> {
        let lives = &shift.lives;
        let loops = [
            &lives.claims,
            &lives.leases,
            &lives.recovery,
            &lives.schedules,
            &lives.sessions,
            &lives.wakes,
        ];
        loops.into_iter().map(|life| life.health()).collect()
    }
}

#[async_trait]
impl<S: TxStore> Drive for Engine<S> {
    fn start(self: Arc<Self>) -> Result<(Arc<Shift>, JoinHandle<()>), WorkerError> {
        engine::start(&self)
    }

    async fn tick(self: Arc<Self>, max_runs: usize) -> Result<Ticked, WorkerError> {
        Engine::tick(&self, max_runs).await
    }

    async fn run_one(self: Arc<Self>) -> Result<Option<RunId>, WorkerError> {
        Engine::run_one(&self).await
    }
}

impl Worker {
    pub(crate) fn new<S: TxStore>(engine: Arc<Engine<S>>) -> Self {
        Self { engine }
    }

    /// Starts the background loops on the current runtime. Can be started again after a stop.
    ///
    /// Cancel safe: dropping the future before it is done starts nothing.
    ///
    /// # Errors
    /// It runs already, or there is no thread for the lease keeper.
    pub async fn start(&self) -> Result<Running, WorkerError> {
        let (shift, main) = self.engine.clone().start()?;
        Ok(Running::new(self.engine.clone(), shift, main))
    }

    /// One bounded pass, without anything left behind: wakes what is due, dispatches deferred events, claims at most
    /// `max_runs` runs and drives each as far as it goes.
    ///
    /// Leases are kept by the same task, so an action that blocks its thread for long may lose its lease here.
    ///
    /// Not cancel safe: runs that are being driven are dropped like in a crash, and taken up again after their lease.
    ///
    /// # Errors
    /// The store's word; what was claimed before it was driven.
    pub async fn tick(&self, tick: Tick) -> Result<Ticked, WorkerError> {
        self.engine.clone().tick(tick.max_runs).await
    }

    /// Claims one run and drives it as far as it goes; `None` if none was ready.
    ///
    /// Not cancel safe, as [`Worker::tick`].
    ///
    /// # Errors
    /// The store's word.
    pub async fn run_one(&self) -> Result<Option<RunId>, WorkerError> {
        self.engine.clone().run_one().await
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("slots", &self.engine.slots()).finish_non_exhaustive()
    }
}

impl<S: TxStore> fmt::Debug for WorkerBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerBuilder").finish_non_exhaustive()
    }
}

/// How much a pass may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tick {
    /// Runs to claim, at most.
    pub max_runs: usize,
}

impl Tick {
    /// At most so many runs.
    #[must_use]
    pub const fn max_runs(max_runs: usize) -> Self {
        Self { max_runs }
    }
}

/// What a pass did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Ticked {
    /// Runs that were driven, in the order of their claims; one that became ready again stands here again.
    pub runs: Vec<RunId>,
    /// Waiting runs that were queued.
    pub woken: usize,
    /// Canceled runs whose worker was gone.
    pub finalised: usize,
    /// Deferred events whose runs were created.
    pub dispatched: usize,
}

/// A started worker, or a started worker of dry runs. Dropping it asks for a stop and does not wait: accepted runs go on to their end.
#[must_use = "dropping a running worker stops it"]
pub struct Running {
    engine: Arc<dyn Works>,
    shift: Arc<Shift>,
    main: Option<JoinHandle<()>>,
}

/// How a started worker is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Its session.
    pub session: SessionId,
    /// Its slots.
    pub slots: usize,
    /// Slots in use.
    pub busy: usize,
    /// Slots whose hook does not return though its time is over.
    pub stuck: usize,
    /// The background loops.
    pub loops: Vec<LoopHealth>,
}

impl Health {
    /// Whether something is not as it should be: a loop fails, or a hook does not return.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.stuck > 0 || self.loops.iter().any(|one| one.failing.is_some())
    }
}

impl Running {
    pub(crate) const fn new(
        engine: Arc<dyn Works>,
        shift: Arc<Shift>,
        main: JoinHandle<()>,
    ) -> Self {
        Self { engine, shift, main: Some(main) }
    }

    /// A hint that something may be ready. Never needed for correctness, never fails; without effect after a stop.
    pub fn notify(&self) {
        self.shift.claim.notify_one();
        self.shift.recover.notify_one();
    }

    /// The session under which it claims.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.shift.session
    }

    /// How it is right now.
    #[must_use]
    pub fn health(&self) -> Health {
        Health {
            session: self.shift.session,
            slots: self.engine.slots(),
            busy: self.shift.holds().len(),
            stuck: self.shift.stuck(),
            loops: self.engine.loops(&self.shift),
        }
    }

    /// Claims nothing more and waits until accepted runs have ended. Past `grace` each is handed over at its next
    /// step boundary, and hooks that still run get their token; past a second grace (5 s at least) they are dropped
    /// and their leases left to lapse.
    ///
    /// Cancel safe: the request stays, and the stop goes on by itself.
    pub async fn stop(mut self, grace: Duration) {
        self.shift.ask_to_stop(Some(grace));
        if let Some(main) = self.main.take() {
            let _ = main.await;
        }
    }

    /// Goes on until nothing is ready and nothing runs, then stops. Runs that wait, or that are not due yet, stay.
    ///
    /// Cancel safe: dropping it asks for a stop.
    ///
    /// # Errors
    /// The store's word; the worker is stopped all the same.
    pub async fn drain(self) -> Result<(), WorkerError> {
        let drained = self.engine.clone().drain(self.shift.clone()).await;
        self.stop(Duration::from_secs(30)).await;
        drained
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("session", &self.shift.session).finish_non_exhaustive()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.shift.phase() == Phase::Working {
            self.shift.ask_to_stop(None);
        }
    }
}
