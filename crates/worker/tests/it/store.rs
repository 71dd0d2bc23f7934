//! A store that fails on demand. Handles share what is stored; each has faults of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::*;
use surefoot_testkit::{MemoryStore, MemoryTx, OpenMemoryTx};
use tokio::sync::Notify;
use tokio::time::Instant;

/// What is asked of the store.
pub(crate) enum Op<'a> {
    CancelList,
    Open,
    Claim,
    Load(RunId),
    Commit(&'a Commit),
    TakeOver,
    Renew(&'a RenewRequest),
    Recover,
    Due,
    List,
    Report,
    Children,
    Emit,
    Dispatch,
    Signal,
    Version,
    Transact,
}

impl Op<'_> {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::CancelList => "cancel_list",
            Self::Open => "open",
            Self::Claim => "claim",
            Self::Load(_) => "load",
            Self::Commit(_) => "commit",
            Self::TakeOver => "take_over",
            Self::Renew(_) => "renew",
            Self::Recover => "recover",
            Self::Due => "due",
            Self::List => "list",
            Self::Report => "report",
            Self::Children => "children",
            Self::Emit => "emit",
            Self::Dispatch => "dispatch",
            Self::Signal => "signal",
            Self::Version => "version",
            Self::Transact => "transact",
        }
    }

    /// The facts of a commit, as they are journaled.
    pub(crate) fn facts(&self) -> &str {
        match self {
            Self::Commit(commit) => commit.journal.as_ref().map_or("", |journal| &journal.facts),
            _ => "",
        }
    }
}

/// What becomes of a question.
pub(crate) enum Verdict {
    Go,
    /// Not done.
    Fail(StoreError),
    /// Done, but nobody hears of it.
    Lose(StoreError),
    /// Done once somebody says so.
    Wait(Arc<Notify>),
    /// Done, and answered once somebody says so.
    Hold(Arc<Notify>),
    Panic,
}

pub(crate) fn unavailable() -> StoreError {
    StoreError::Unavailable("the network is down".into())
}

pub(crate) fn unknown() -> StoreError {
    StoreError::UnknownOutcome("the connection broke at COMMIT".into())
}

type Fault = Box<dyn FnMut(&Op<'_>) -> Verdict + Send>;
type Tamper<T> = Box<dyn FnMut(&mut T) + Send>;

#[derive(Default)]
struct Faults {
    fault: Option<Fault>,
    schedules_disabled: bool,
    bad_run: Option<Tamper<Stored>>,
    bad_plan: Option<Tamper<StoredVersion>>,
    counts: BTreeMap<&'static str, usize>,
}

#[derive(Clone)]
pub(crate) struct TestStore {
    pub(crate) inner: MemoryStore,
    faults: Arc<Mutex<Faults>>,
    origin: (Instant, Timestamp),
}

impl TestStore {
    /// What was read of a run is damaged, if it is to be.
    fn tamper(&self, stored: &mut Stored) {
        if let Some(tamper) = &mut self.faults.lock().unwrap().bad_run {
            tamper(stored);
        }
    }

    pub(crate) fn new() -> Self {
        let inner = MemoryStore::new();
        let origin = (Instant::now(), inner.clock().now());
        Self { inner, faults: Arc::default(), origin }
    }

    /// The same store for another process, with faults of its own.
    pub(crate) fn fork(&self) -> Self {
        Self { faults: Arc::default(), ..self.clone() }
    }

    /// Decides about every question from now on.
    pub(crate) fn on(&self, fault: impl FnMut(&Op<'_>) -> Verdict + Send + 'static) {
        self.faults.lock().unwrap().fault = Some(Box::new(fault));
    }

    pub(crate) fn heal(&self) {
        let mut faults = self.faults.lock().unwrap();
        (faults.fault, faults.bad_run, faults.bad_plan) = (None, None, None);
    }

    /// Whether an operator has disabled every schedule.
    pub(crate) fn disable_schedules(&self, are_disabled: bool) {
        self.faults.lock().unwrap().schedules_disabled = are_disabled;
    }

    /// Stored runs come back like this from now on.
    pub(crate) fn corrupt_run(&self, tamper: impl FnMut(&mut Stored) + Send + 'static) {
        self.faults.lock().unwrap().bad_run = Some(Box::new(tamper));
    }

    /// Stored plans come back like this from now on.
    pub(crate) fn corrupt_plan(&self, tamper: impl FnMut(&mut StoredVersion) + Send + 'static) {
        self.faults.lock().unwrap().bad_plan = Some(Box::new(tamper));
    }

    /// How often something was asked through this handle.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.faults.lock().unwrap().counts.get(name).copied().unwrap_or(0)
    }

    fn verdict(&self, op: &Op<'_>) -> Verdict {
        let mut faults = self.faults.lock().unwrap();
        *faults.counts.entry(op.name()).or_default() += 1;
        faults.fault.as_mut().map_or(Verdict::Go, |fault| fault(op))
    }

    /// The store's clock goes with tokio's, which may be virtual.
    fn tick(&self) {
        let (origin, start) = self.origin;
        let now = start.plus(origin.elapsed().into());
        if self.inner.clock().now() < now {
            self.inner.clock().set(now);
        }
    }

    async fn ask<T>(
        &self,
        op: Op<'_>,
        work: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let verdict = self.verdict(&op);
        match verdict {
            Verdict::Go => {}
            Verdict::Fail(error) => return Err(error),
            Verdict::Panic => panic!("the store's driver has a defect"),
            Verdict::Wait(gate) => gate.notified().await,
            Verdict::Lose(error) => {
                self.tick();
                let _ = work.await;
                return Err(error);
            }
            Verdict::Hold(gate) => {
                self.tick();
                let answer = work.await;
                gate.notified().await;
                return answer;
            }
        }
        self.tick();
        work.await
    }
}

#[async_trait]
impl RunStore for TestStore {
    async fn store_now(&self) -> Result<Timestamp, StoreError> {
        self.tick();
        self.inner.store_now().await
    }
    async fn dry_run_create(&self, create: CreateDryRun) -> Result<Run, EmitError> {
        self.inner.dry_run_create(create).await
    }

    async fn run_claim(&self, request: ClaimRequest) -> Result<Vec<Stored>, StoreError> {
        let op = Op::Claim;
        let mut claimed = self.ask(op, self.inner.run_claim(request.clone())).await?;
        claimed.iter_mut().for_each(|stored| self.tamper(stored));
        Ok(claimed)
    }
    async fn run_load(&self, request: LoadRequest) -> Result<Option<Stored>, StoreError> {
        let mut stored = self.ask(Op::Load(request.run), self.inner.run_load(request)).await?;
        stored.iter_mut().for_each(|stored| self.tamper(stored));
        Ok(stored)
    }
    async fn run_commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        let op = Op::Commit(&commit);
        self.ask(op, self.inner.run_commit(commit.clone())).await
    }
    async fn run_take_over(&self, request: TakeOverRequest) -> Result<Option<Run>, StoreError> {
        self.ask(Op::TakeOver, self.inner.run_take_over(request)).await
    }
    async fn lease_renew(
        &self,
        request: RenewRequest,
    ) -> Result<Vec<(RunId, Renewed)>, StoreError> {
        let op = Op::Renew(&request);
        self.ask(op, self.inner.lease_renew(request.clone())).await
    }
    async fn cancel_list(&self, held: &[Stamp]) -> Result<Vec<RunId>, StoreError> {
        self.ask(Op::CancelList, self.inner.cancel_list(held)).await
    }
    async fn run_open(&self, app: &App, runs: &[RunId]) -> Result<Vec<RunId>, StoreError> {
        self.ask(Op::Open, self.inner.run_open(app, runs)).await
    }
    async fn run_recover(&self, scan: Scan) -> Result<Recovered, StoreError> {
        self.ask(Op::Recover, self.inner.run_recover(scan)).await
    }
    async fn work_due(&self, app: &App, mode: Mode) -> Result<WorkDue, StoreError> {
        self.ask(Op::Due, self.inner.work_due(app, mode)).await
    }
    async fn footprint_list(&self, app: &App) -> Result<Vec<Footprint>, StoreError> {
        self.ask(Op::List, self.inner.footprint_list(app)).await
    }
    async fn session_report(&self, report: SessionReport) -> Result<(), StoreError> {
        let op = Op::Report;
        self.ask(op, self.inner.session_report(report.clone())).await
    }
}

#[async_trait]
impl ChildStore for TestStore {
    async fn children_create(
        &self,
        create: CreateChildren,
    ) -> Result<ChildrenCreated, ChildrenError> {
        let mut refused = None;
        let work = async {
            match self.inner.children_create(create).await {
                Err(ChildrenError::Store(error)) => Err(error),
                Err(error) => {
                    refused = Some(error);
                    Ok(None)
                }
                Ok(created) => Ok(Some(created)),
            }
        };
        let created = self.ask(Op::Children, work).await?;
        created.ok_or_else(|| refused.unwrap())
    }
    async fn children_read(&self, request: ChildrenRequest) -> Result<ChildrenPage, StoreError> {
        self.inner.children_read(request).await
    }
    async fn children_groups(&self, parent: RunId) -> Result<Vec<GroupRow>, StoreError> {
        self.inner.children_groups(parent).await
    }
}

#[async_trait]
impl EventStore for TestStore {
    async fn event_emit(&self, emit: Emit) -> Result<Emission, EmitError> {
        let mut refused = None;
        let op = Op::Emit;
        let work = async {
            match self.inner.event_emit(emit.clone()).await {
                Err(EmitError::Store(error)) => Err(error),
                Err(error) => {
                    refused = Some(error);
                    Ok(None)
                }
                Ok(emission) => Ok(Some(emission)),
            }
        };
        let emission = self.ask(op, work).await?;
        emission.ok_or_else(|| refused.unwrap())
    }
    async fn event_dispatch(&self, app: &App, limit: u32) -> Result<Dispatched, StoreError> {
        self.ask(Op::Dispatch, self.inner.event_dispatch(app, limit)).await
    }
    async fn signal_send(&self, send: SendSignal) -> Result<SignalSent, SignalError> {
        let work = async {
            match self.inner.signal_send(send).await {
                Err(SignalError::Store(error)) => Err(error),
                Err(error) => panic!("{error}"),
                Ok(sent) => Ok(sent),
            }
        };
        Ok(self.ask(Op::Signal, work).await?)
    }
}

#[async_trait]
impl PlanStore for TestStore {
    async fn version_publish(&self, publish: Publish) -> Result<Published, PublishError> {
        self.tick();
        self.inner.version_publish(publish).await
    }
    async fn version_activate(&self, activate: Activate) -> Result<Published, PublishError> {
        self.inner.version_activate(activate).await
    }
    async fn activation_set(&self, set: SetActivation) -> Result<ActivationSet, PublishError> {
        self.inner.activation_set(set).await
    }

    async fn version_load(&self, version: VersionId) -> Result<Option<StoredVersion>, StoreError> {
        let mut stored = self.ask(Op::Version, self.inner.version_load(version)).await?;
        if let (Some(stored), Some(tamper)) =
            (&mut stored, &mut self.faults.lock().unwrap().bad_plan)
        {
            tamper(stored);
        }
        Ok(stored)
    }
    async fn workflow_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
    ) -> Result<Vec<WorkflowRow>, StoreError> {
        self.inner.workflow_list(app, scope).await
    }
    async fn schedule_list(&self, app: &App) -> Result<Schedules, StoreError> {
        self.tick();
        let mut listed = self.inner.schedule_list(app).await?;
        let is_disabled = self.faults.lock().unwrap().schedules_disabled;
        listed.rows.iter_mut().for_each(|row| row.enabled = !is_disabled);
        Ok(listed)
    }

    async fn version_list(
        &self,
        app: &App,
        scope: &Scope,
        workflow: &WorkflowKey,
    ) -> Result<Vec<StoredVersion>, StoreError> {
        self.inner.version_list(app, scope, workflow).await
    }
}

#[async_trait]
impl RetentionStore for TestStore {
    async fn event_expire(&self, app: &App, limit: u32) -> Result<Expired, StoreError> {
        self.inner.event_expire(app, limit).await
    }

    async fn event_redrive(&self, redrive: Redrive) -> Result<Redriven, RetentionError> {
        self.inner.event_redrive(redrive).await
    }

    async fn prune(&self, prune: Prune) -> Result<Pruned, StoreError> {
        self.inner.prune(prune).await
    }

    async fn delete_begin(&self, delete: Delete) -> Result<(), RetentionError> {
        self.inner.delete_begin(delete).await
    }

    async fn delete_pass(&self, place: Place, limit: u32) -> Result<Deleted, RetentionError> {
        self.inner.delete_pass(place, limit).await
    }
}

#[async_trait]
impl OperatorStore for TestStore {
    async fn app_list(&self) -> Result<Vec<App>, StoreError> {
        self.inner.app_list().await
    }
    async fn run_list(&self, filter: RunFilter) -> Result<Page<RunRow>, StoreError> {
        self.inner.run_list(filter).await
    }
    async fn run_detail(&self, run: RunId) -> Result<Option<RunDetail>, StoreError> {
        self.inner.run_detail(run).await
    }
    async fn journal_list(
        &self,
        run: RunId,
        from: u64,
        limit: u32,
    ) -> Result<Option<JournalPage>, StoreError> {
        self.inner.journal_list(run, from, limit).await
    }

    async fn effect_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<EffectRow>, StoreError> {
        self.inner.effect_list(app, scope, limit).await
    }
    async fn event_list(&self, filter: EventFilter) -> Result<Page<EventRow>, StoreError> {
        self.inner.event_list(filter).await
    }
    async fn signal_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<SignalRow>, StoreError> {
        self.inner.signal_list(app, scope, limit).await
    }
    async fn session_list(&self, app: &App) -> Result<Vec<SessionRow>, StoreError> {
        self.inner.session_list(app).await
    }
    async fn app_health(&self, app: &App) -> Result<AppHealth, StoreError> {
        self.inner.app_health(app).await
    }
    async fn run_timeline(&self, span: RunSpan) -> Result<Vec<RunCount>, StoreError> {
        self.inner.run_timeline(span).await
    }

    async fn store_check(&self) -> Result<Vec<StoreFact>, StoreError> {
        self.inner.store_check().await
    }

    async fn audit_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        self.inner.audit_list(app, scope, limit).await
    }
}

impl TxStore for TestStore {
    type Tx = MemoryTx;
    type Open = OpenMemoryTx;

    async fn begin(&self) -> Result<OpenMemoryTx, StoreError> {
        self.tick();
        self.inner.begin().await
    }
    async fn commit(&self, open: OpenMemoryTx) -> Result<(), StoreError> {
        TxStore::commit(&self.inner, open).await
    }
    async fn event_emit_in(&self, tx: &mut MemoryTx, emit: Emit) -> Result<Emission, EmitError> {
        self.inner.event_emit_in(tx, emit).await
    }
    async fn version_publish_in(
        &self,
        tx: &mut MemoryTx,
        publish: Publish,
    ) -> Result<Published, PublishError> {
        self.inner.version_publish_in(tx, publish).await
    }
    async fn signal_send_in(
        &self,
        tx: &mut MemoryTx,
        send: SendSignal,
    ) -> Result<SignalSent, SignalError> {
        self.inner.signal_send_in(tx, send).await
    }
    async fn run_transact(
        &self,
        before: Stamp,
        work: &mut dyn TxWork<MemoryTx>,
    ) -> Result<Option<Committed>, StoreError> {
        self.ask(Op::Transact, self.inner.run_transact(before, work)).await
    }
    fn children_on(&self) -> Arc<dyn ChildrenOn<MemoryTx>> {
        self.inner.children_on()
    }
    fn fence(&self, run: RunId, generation: u64) -> Arc<dyn Fence<MemoryTx>> {
        self.inner.fence(run, generation)
    }
    fn is_transaction_conflict(&self, error: &(dyn std::error::Error + 'static)) -> bool {
        self.inner.is_transaction_conflict(error)
    }
}
