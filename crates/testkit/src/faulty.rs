//! A store that fails when a script says so.

use std::collections::BTreeMap;
use std::error::Error;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::{
    Activate, App, AppHealth, AuditRow, BoxFuture, ClaimRequest, Commit, Committed, Dispatched,
    EffectRow, Emission, Emit, EmitError, EventFilter, EventRow, EventStore, Fence, FenceError,
    LoadRequest, OperatorStore, Page, PlanStore, Publish, PublishError, Published, Recovered,
    RenewRequest, Renewed, Run, RunDetail, RunFilter, RunId, RunRow, RunStore, Scan, Scope,
    SendSignal, SessionReport, SessionRow, SignalError, SignalRow, SignalSent, Stamp, StoreError,
    Stored, StoredVersion, TakeOverRequest, Timestamp, TxStore, TxWork, VersionId, WorkflowKey,
    WorkflowRow,
};

macro_rules! methods {
    ($($variant:ident = $name:literal $kind:ident),* $(,)?) => {
        /// A method of a store's ports.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Method {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Method {
            /// Every method.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// As the port calls it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Whether it changes what is stored.
            #[must_use]
            pub const fn is_write(self) -> bool {
                match self { $(Self::$variant => methods!(@$kind),)* }
            }
        }
    };
    (@write) => { true };
    (@read) => { false };
}

methods! {
    StoreNow = "store_now" read,
    RunClaim = "run_claim" write,
    RunLoad = "run_load" read,
    RunCommit = "run_commit" write,
    RunTakeOver = "run_take_over" write,
    LeaseRenew = "lease_renew" write,
    RunRecover = "run_recover" write,
    FootprintList = "footprint_list" read,
    SessionReport = "session_report" write,
    EventEmit = "event_emit" write,
    EventDispatch = "event_dispatch" write,
    SignalSend = "signal_send" write,
    VersionPublish = "version_publish" write,
    VersionActivate = "version_activate" write,
    VersionLoad = "version_load" read,
    WorkflowList = "workflow_list" read,
    VersionList = "version_list" read,
    AppList = "app_list" read,
    RunList = "run_list" read,
    RunDetail = "run_detail" read,
    EffectList = "effect_list" read,
    EventList = "event_list" read,
    SignalList = "signal_list" read,
    SessionList = "session_list" read,
    AppHealth = "app_health" read,
    AuditList = "audit_list" read,
    Begin = "begin" read,
    Commit = "commit" write,
    EventEmitIn = "event_emit_in" read,
    VersionPublishIn = "version_publish_in" read,
    SignalSendIn = "signal_send_in" read,
    RunTransact = "run_transact" write,
    FenceHold = "fence_hold" read,
}

/// What goes wrong with one call. None of them panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The store cannot be reached: nothing happened, and the caller knows it.
    Unavailable,
    /// The database refused the transaction: nothing happened.
    Refused,
    /// Nothing happened, and the caller does not know (reads: the store cannot be reached).
    LostRequest,
    /// It happened, and the caller does not know (reads: the store cannot be reached).
    LostAnswer,
    /// The process dies before the call: nothing happens any more on this handle.
    DiesBefore,
    /// The process dies after the call: it happened, and nothing happens any more on this handle.
    DiesAfter,
}

/// Which calls go wrong. Clones are the same plan.
#[derive(Debug, Clone, Default)]
pub struct FaultPlan(Arc<Mutex<Script>>);

#[derive(Debug, Default)]
struct Script {
    faults: BTreeMap<(Method, u64), Fault>,
    every: BTreeMap<Method, Fault>,
    calls: Vec<Method>,
    counts: BTreeMap<Method, u64>,
    is_dead: bool,
}

impl FaultPlan {
    /// Nothing goes wrong.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Has the `nth` call of a method go wrong, from 1, counted from the start.
    pub fn at(&self, method: Method, nth: u64, fault: Fault) {
        self.script().faults.insert((method, nth), fault);
    }

    /// Has each call of a method go wrong from now on; `None` ends that.
    pub fn every(&self, method: Method, fault: Option<Fault>) {
        let mut script = self.script();
        match fault {
            Some(fault) => script.every.insert(method, fault),
            None => script.every.remove(&method),
        };
    }

    /// How often a method was called.
    #[must_use]
    pub fn count(&self, method: Method) -> u64 {
        self.script().counts.get(&method).copied().unwrap_or_default()
    }

    /// All calls, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Method> {
        self.script().calls.clone()
    }

    /// Whether the process has died.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.script().is_dead
    }

    /// Starts the process anew.
    pub fn revive(&self) {
        self.script().is_dead = false;
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call, and says what goes wrong with it.
    fn called(&self, method: Method) -> Option<Fault> {
        let mut script = self.script();
        if script.is_dead {
            return Some(Fault::Unavailable);
        }
        script.calls.push(method);
        let count = script.counts.entry(method).or_default();
        *count += 1;
        let nth = *count;
        let fault = script.faults.get(&(method, nth)).or(script.every.get(&method)).copied();
        script.is_dead = matches!(fault, Some(Fault::DiesBefore | Fault::DiesAfter));
        fault
    }

    async fn through<T, E: From<StoreError>>(
        &self,
        method: Method,
        call: impl Future<Output = Result<T, E>> + Send,
    ) -> Result<T, E> {
        let Some(fault) = self.called(method) else { return call.await };
        if matches!(fault, Fault::LostAnswer | Fault::DiesAfter) {
            call.await?;
        }
        Err(error(fault, method).into())
    }
}

fn error(fault: Fault, method: Method) -> StoreError {
    let source = |what: &str| format!("{what} at `{}`, by a test", method.as_str()).into();
    match fault {
        Fault::Refused => StoreError::TransactionConflict(source("a refusal")),
        Fault::LostRequest | Fault::LostAnswer if method.is_write() => {
            StoreError::UnknownOutcome(source("a lost answer"))
        }
        Fault::Unavailable
        | Fault::LostRequest
        | Fault::LostAnswer
        | Fault::DiesBefore
        | Fault::DiesAfter => StoreError::Unavailable(source("a lost connection")),
    }
}

/// A store behind a plan of faults. It counts calls.
#[derive(Debug, Clone)]
pub struct FaultyStore<S> {
    inner: S,
    plan: FaultPlan,
}

impl<S> FaultyStore<S> {
    /// A store that fails by this plan.
    #[must_use]
    pub fn new(inner: S, plan: FaultPlan) -> Self {
        Self { inner, plan }
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &FaultPlan {
        &self.plan
    }

    /// The store behind it, which does not fail.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.inner
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: TxStore> RunStore for FaultyStore<S> {
    async fn store_now(&self) -> Result<Timestamp, StoreError> {
        self.plan.through(Method::StoreNow, self.inner.store_now()).await
    }

    async fn run_claim(&self, request: ClaimRequest) -> Result<Vec<Run>, StoreError> {
        self.plan.through(Method::RunClaim, self.inner.run_claim(request)).await
    }

    async fn run_load(&self, request: LoadRequest) -> Result<Option<Stored>, StoreError> {
        self.plan.through(Method::RunLoad, self.inner.run_load(request)).await
    }

    async fn run_commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.plan.through(Method::RunCommit, self.inner.run_commit(commit)).await
    }

    async fn run_take_over(&self, request: TakeOverRequest) -> Result<Option<Run>, StoreError> {
        self.plan.through(Method::RunTakeOver, self.inner.run_take_over(request)).await
    }

    async fn lease_renew(
        &self,
        request: RenewRequest,
    ) -> Result<Vec<(RunId, Renewed)>, StoreError> {
        self.plan.through(Method::LeaseRenew, self.inner.lease_renew(request)).await
    }

    async fn run_recover(&self, scan: Scan) -> Result<Recovered, StoreError> {
        self.plan.through(Method::RunRecover, self.inner.run_recover(scan)).await
    }

    async fn footprint_list(&self, app: &App) -> Result<Vec<Footprint>, StoreError> {
        self.plan.through(Method::FootprintList, self.inner.footprint_list(app)).await
    }

    async fn session_report(&self, report: SessionReport) -> Result<(), StoreError> {
        self.plan.through(Method::SessionReport, self.inner.session_report(report)).await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: TxStore> EventStore for FaultyStore<S> {
    async fn event_emit(&self, emit: Emit) -> Result<Emission, EmitError> {
        self.plan.through(Method::EventEmit, self.inner.event_emit(emit)).await
    }

    async fn event_dispatch(&self, app: &App, limit: u32) -> Result<Dispatched, StoreError> {
        self.plan.through(Method::EventDispatch, self.inner.event_dispatch(app, limit)).await
    }

    async fn signal_send(&self, send: SendSignal) -> Result<SignalSent, SignalError> {
        self.plan.through(Method::SignalSend, self.inner.signal_send(send)).await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: TxStore> PlanStore for FaultyStore<S> {
    async fn version_publish(&self, publish: Publish) -> Result<Published, PublishError> {
        self.plan.through(Method::VersionPublish, self.inner.version_publish(publish)).await
    }

    async fn version_activate(&self, activate: Activate) -> Result<Published, PublishError> {
        self.plan.through(Method::VersionActivate, self.inner.version_activate(activate)).await
    }

    async fn version_load(&self, version: VersionId) -> Result<Option<StoredVersion>, StoreError> {
        self.plan.through(Method::VersionLoad, self.inner.version_load(version)).await
    }

    async fn workflow_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
    ) -> Result<Vec<WorkflowRow>, StoreError> {
        self.plan.through(Method::WorkflowList, self.inner.workflow_list(app, scope)).await
    }

    async fn version_list(
        &self,
        app: &App,
        scope: &Scope,
        workflow: &WorkflowKey,
    ) -> Result<Vec<StoredVersion>, StoreError> {
        let call = self.inner.version_list(app, scope, workflow);
        self.plan.through(Method::VersionList, call).await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: TxStore> OperatorStore for FaultyStore<S> {
    async fn app_list(&self) -> Result<Vec<App>, StoreError> {
        self.plan.through(Method::AppList, self.inner.app_list()).await
    }

    async fn run_list(&self, filter: RunFilter) -> Result<Page<RunRow>, StoreError> {
        self.plan.through(Method::RunList, self.inner.run_list(filter)).await
    }

    async fn run_detail(&self, run: RunId) -> Result<Option<RunDetail>, StoreError> {
        self.plan.through(Method::RunDetail, self.inner.run_detail(run)).await
    }

    async fn effect_list(&self, app: &App, limit: u32) -> Result<Vec<EffectRow>, StoreError> {
        self.plan.through(Method::EffectList, self.inner.effect_list(app, limit)).await
    }

    async fn event_list(&self, filter: EventFilter) -> Result<Page<EventRow>, StoreError> {
        self.plan.through(Method::EventList, self.inner.event_list(filter)).await
    }

    async fn signal_list(&self, app: &App, limit: u32) -> Result<Vec<SignalRow>, StoreError> {
        self.plan.through(Method::SignalList, self.inner.signal_list(app, limit)).await
    }

    async fn session_list(&self, app: &App) -> Result<Vec<SessionRow>, StoreError> {
        self.plan.through(Method::SessionList, self.inner.session_list(app)).await
    }

    async fn app_health(&self, app: &App) -> Result<AppHealth, StoreError> {
        self.plan.through(Method::AppHealth, self.inner.app_health(app)).await
    }

    async fn audit_list(&self, app: &App, limit: u32) -> Result<Vec<AuditRow>, StoreError> {
        self.plan.through(Method::AuditList, self.inner.audit_list(app, limit)).await
    }
}

#[deny(clippy::missing_trait_methods)]
impl<S: TxStore> TxStore for FaultyStore<S> {
    type Tx = S::Tx;
    type Open = S::Open;

    async fn begin(&self) -> Result<Self::Open, StoreError> {
        self.plan.through(Method::Begin, self.inner.begin()).await
    }

    async fn commit(&self, open: Self::Open) -> Result<(), StoreError> {
        self.plan.through(Method::Commit, self.inner.commit(open)).await
    }

    async fn event_emit_in(&self, tx: &mut Self::Tx, emit: Emit) -> Result<Emission, EmitError> {
        self.plan.through(Method::EventEmitIn, self.inner.event_emit_in(tx, emit)).await
    }

    async fn version_publish_in(
        &self,
        tx: &mut Self::Tx,
        publish: Publish,
    ) -> Result<Published, PublishError> {
        let call = self.inner.version_publish_in(tx, publish);
        self.plan.through(Method::VersionPublishIn, call).await
    }

    async fn signal_send_in(
        &self,
        tx: &mut Self::Tx,
        send: SendSignal,
    ) -> Result<SignalSent, SignalError> {
        self.plan.through(Method::SignalSendIn, self.inner.signal_send_in(tx, send)).await
    }

    async fn run_transact(
        &self,
        before: Stamp,
        work: &mut dyn TxWork<Self::Tx>,
    ) -> Result<Option<Committed>, StoreError> {
        self.plan.through(Method::RunTransact, self.inner.run_transact(before, work)).await
    }

    fn fence(&self, run: RunId, generation: u64) -> Arc<dyn Fence<Self::Tx>> {
        let inner = self.inner.fence(run, generation);
        Arc::new(FaultyFence { inner, plan: self.plan.clone() })
    }

    fn is_transaction_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        self.inner.is_transaction_conflict(error)
    }
}

struct FaultyFence<Tx> {
    inner: Arc<dyn Fence<Tx>>,
    plan: FaultPlan,
}

#[deny(clippy::missing_trait_methods)]
impl<Tx: Send> Fence<Tx> for FaultyFence<Tx> {
    fn hold<'a>(&'a self, tx: &'a mut Tx) -> BoxFuture<'a, Result<(), FenceError>> {
        Box::pin(self.plan.through(Method::FenceHold, self.inner.hold(tx)))
    }
}
