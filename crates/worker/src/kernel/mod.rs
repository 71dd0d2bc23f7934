//! The handle that an application holds.

mod after_commit;
mod announcer;
mod await_run;
mod cancel;
mod emit;
mod interest;
mod local;
mod looks;
mod publish;
mod scoped;

use std::fmt;
use std::sync::Arc;

use surefoot_kernel_core::{
    App, Clock, Ids, Scope, SendSignal, Signal, SignalError, SignalSent, StoreError, TxStore,
    WakeBus,
};
use surefoot_language::{Module, RunsOn};

use crate::{SystemClock, SystemIds, WorkerBuilder};
pub use after_commit::AfterCommit;
use after_commit::Tell;
use announcer::Announcer;
pub use cancel::CancelOutcome;
pub use interest::StepInterest;
pub(crate) use local::Local;
use looks::Looks;
pub use publish::Publication;
pub use scoped::Scoped;

/// An application's handle on its store. Clone it freely; keep it in the web framework's state.
///
/// Workers that are built from it know of it: an event that is emitted through it starts on them at once.
pub struct Kernel<S: TxStore> {
    inner: Arc<Inner<S>>,
}

struct Inner<S: TxStore> {
    app: App,
    store: S,
    clock: Arc<dyn Clock>,
    /// A clock that was given may be virtual: then everything that keeps time must stay on the caller's runtime.
    is_system_clock: bool,
    ids: Arc<dyn Ids>,
    local: Local<S>,
    looks: Looks,
}

impl<S: TxStore> Clone for Kernel<S> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<S: TxStore> Kernel<S> {
    /// For an application, on a store.
    pub fn new(app: impl Into<App>, store: S) -> Self {
        Self::builder(app, store).build()
    }

    /// With a clock or ids of one's own: for tests.
    pub fn builder(app: impl Into<App>, store: S) -> KernelBuilder<S> {
        let ids = Arc::new(SystemIds);
        KernelBuilder { app: app.into(), store, clock: None, ids, bus: None }
    }

    /// Who owns the data.
    #[must_use]
    pub fn app(&self) -> &App {
        &self.inner.app
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.inner.store
    }

    /// One scope of the application.
    pub fn scope(&self, scope: impl Into<Scope>) -> Scoped<S> {
        Scoped::new(self.clone(), scope.into())
    }

    /// Opens a transaction that may write, in the way that suits the store. Cancel safe.
    ///
    /// # Errors
    /// The store's word.
    pub async fn begin(&self) -> Result<S::Open, StoreError> {
        self.inner.store.begin().await
    }

    /// Commits a transaction that [`Kernel::begin`] opened.
    ///
    /// Not cancel safe: it may have committed when the future is dropped.
    ///
    /// # Errors
    /// `UnknownOutcome` if nobody knows whether it committed.
    pub async fn commit(&self, open: S::Open) -> Result<(), StoreError> {
        self.inner.store.commit(open).await
    }

    /// Records an occurrence outside every scope, once, and wakes who waits for it app-wide. Never wakes a `waitFor`
    /// of a workflow: those wait in their own scope.
    ///
    /// Not cancel safe: it may have been recorded when the future is dropped; sending it again is harmless.
    ///
    /// # Errors
    /// The signal cannot be kept, or the store's word.
    pub async fn signal(&self, signal: Signal) -> Result<SignalSent, SignalError> {
        self.send(None, signal).await
    }

    /// The same inside the application's transaction.
    ///
    /// Dropping it leaves the transaction good for a rollback only.
    ///
    /// # Errors
    /// The signal cannot be kept, or the store's word.
    pub async fn signal_in(
        &self,
        tx: &mut S::Tx,
        signal: Signal,
    ) -> Result<AfterCommit<SignalSent>, SignalError> {
        self.send_in(None, tx, signal).await
    }

    /// A hint to workers of this process, and over their wake bus to others, that something may be ready.
    #[must_use]
    pub fn waker(&self) -> WorkerWaker {
        let kernel = self.clone();
        WorkerWaker { wake: Arc::new(move || kernel.local().wake(true)) }
    }

    /// A worker for this application. More modules can be added.
    pub fn worker<B: RunsOn<S::Tx>>(&self, module: Module<B>) -> WorkerBuilder<S> {
        WorkerBuilder::new(self.clone()).module(module)
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    pub(crate) fn has_system_clock(&self) -> bool {
        self.inner.is_system_clock
    }

    pub(crate) fn ids(&self) -> &dyn Ids {
        &*self.inner.ids
    }

    pub(crate) fn shared_ids(&self) -> Arc<dyn Ids> {
        self.inner.ids.clone()
    }

    fn looks(&self) -> &Looks {
        &self.inner.looks
    }

    pub(crate) fn local(&self) -> &Local<S> {
        &self.inner.local
    }

    async fn send(&self, scope: Option<Scope>, signal: Signal) -> Result<SignalSent, SignalError> {
        let signal = signal.check()?;
        let send = SendSignal { app: self.app().clone(), scope, signal };
        send.check_names()?;
        let sent = emit::signal(self, send).await?;
        if !sent.woken.is_empty() {
            self.local().wake(false);
        }
        Ok(sent)
    }

    async fn send_in(
        &self,
        scope: Option<Scope>,
        tx: &mut S::Tx,
        signal: Signal,
    ) -> Result<AfterCommit<SignalSent>, SignalError> {
        let signal = signal.check()?;
        let send = SendSignal { app: self.app().clone(), scope, signal };
        send.check_names()?;
        let sent = self.inner.store.signal_send_in(tx, send).await?;
        let tell = if sent.woken.is_empty() { Tell::Nobody } else { Tell::Claimers };
        Ok(self.after_commit(sent, tell))
    }
}

impl<S: TxStore> fmt::Debug for Kernel<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("app", &self.inner.app).finish_non_exhaustive()
    }
}

/// Builds a [`Kernel`] with a clock or ids of one's own.
#[must_use = "a kernel builder does nothing until `build`"]
pub struct KernelBuilder<S> {
    app: App,
    store: S,
    clock: Option<Arc<dyn Clock>>,
    ids: Arc<dyn Ids>,
    bus: Option<Arc<dyn WakeBus>>,
}

impl<S: TxStore> KernelBuilder<S> {
    /// With this clock. Leases are then kept on the caller's runtime and not on a thread of their own, so that a
    /// virtual clock moves them too; pauses are those of tokio, which can be virtual as well.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// With these ids.
    pub fn ids(mut self, ids: impl Ids + 'static) -> Self {
        self.ids = Arc::new(ids);
        self
    }

    /// Tells workers of other processes at once what this one has for them, also where it runs no worker itself. Without
    /// it, and where the bus is down, they find it by their scan.
    pub fn wake_bus(mut self, bus: impl WakeBus + 'static) -> Self {
        self.bus = Some(Arc::new(bus));
        self
    }

    /// The handle.
    pub fn build(self) -> Kernel<S> {
        let is_system_clock = self.clock.is_none();
        let announcer = self.bus.map(|bus| Announcer::new(bus, self.app.clone()));
        let inner = Inner {
            app: self.app,
            store: self.store,
            clock: self.clock.unwrap_or_else(|| Arc::new(SystemClock::default())),
            is_system_clock,
            ids: self.ids,
            local: Local::new(announcer),
            looks: Looks::default(),
        };
        Kernel { inner: Arc::new(inner) }
    }
}

impl<S> fmt::Debug for KernelBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelBuilder").field("app", &self.app).finish_non_exhaustive()
    }
}

/// Tells workers that something may be ready. Cheap to clone, without the store's type.
#[derive(Clone)]
pub struct WorkerWaker {
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl WorkerWaker {
    /// Wakes workers of this process, and over their wake bus others. Never needed for correctness, never fails.
    pub fn wake(&self) {
        (self.wake)();
    }
}

impl fmt::Debug for WorkerWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkerWaker")
    }
}
