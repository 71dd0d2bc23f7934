//! A store that fails when a script says so.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::{
    Activate, ActivationSet, App, AppHealth, AuditRow, BoxFuture, ChildStore, ChildrenCreated,
    ChildrenError, ChildrenOn, ChildrenPage, ChildrenRequest, ClaimRequest, ClaimTasks, Commit,
    Committed, CreateChildren, CreateDryRun, Delete, Deleted, Dispatched, EffectKey, EffectRow,
    Emission, Emit, EmitError, EventFilter, EventRow, EventStore, Expired, Fence, FenceError,
    GroupRow, JournalPage, LoadRequest, Locked, Micros, Mode, NewTask, OperatorStore, Page, Place,
    PlanStore, Prune, Pruned, Publish, PublishError, Published, Recovered, Redrive, Redriven,
    RenewRequest, Renewed, RetentionError, RetentionStore, Run, RunCount, RunDetail, RunFilter,
    RunId, RunRow, RunSpan, RunStore, Scan, Schedules, Scope, SendSignal, SessionReport,
    SessionRow, SetActivation, SignalError, SignalRow, SignalSent, Stamp, StoreError, StoreFact,
    Stored, StoredVersion, TakeOverRequest, Task, TaskEnd, TaskEnded, TaskHold, TaskStore,
    Timestamp, TxStore, TxWork, VersionId, Work, WorkDue, WorkflowKey, WorkflowRow,
};

use crate::aside::at_home;
use crate::fault::{FaultPlan, Method, Stop, When};

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

    async fn dry_run_create(&self, create: CreateDryRun) -> Result<Run, EmitError> {
        self.plan.through(Method::DryRunCreate, self.inner.dry_run_create(create)).await
    }

    async fn run_claim(&self, request: ClaimRequest) -> Result<Vec<Stored>, StoreError> {
        self.plan.through(Method::RunClaim, self.inner.run_claim(request)).await
    }

    async fn run_load(&self, request: LoadRequest) -> Result<Option<Stored>, StoreError> {
        let stored = self.plan.through(Method::RunLoad, self.inner.run_load(request)).await?;
        if let Some(Stored { journal: Ok(journal), .. }) = &stored {
            self.plan.read(journal.iter().map(|entry| entry.facts.len()).sum());
        }
        for late in self.plan.late() {
            // Nobody waits for this answer any more.
            let _ = self.inner.run_commit(late).await;
        }
        Ok(stored)
    }

    async fn run_commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        let stop = self.plan.stop_of(&commit);
        let committing = async {
            Stop::on(stop.as_ref(), When::Before, Method::RunCommit).await?;
            let committed = self.inner.run_commit(commit.clone()).await?;
            Stop::on(stop.as_ref(), When::After, Method::RunCommit).await?;
            Ok(committed)
        };
        self.plan.commit_through(commit.clone(), committing).await
    }

    async fn run_take_over(&self, request: TakeOverRequest) -> Result<Option<Run>, StoreError> {
        let taken =
            self.plan.through(Method::RunTakeOver, self.inner.run_take_over(request)).await?;
        self.plan.took_over();
        Ok(taken)
    }

    async fn lease_renew(
        &self,
        request: RenewRequest,
    ) -> Result<Vec<(RunId, Renewed)>, StoreError> {
        self.plan.through(Method::LeaseRenew, self.inner.lease_renew(request)).await
    }

    async fn cancel_list(&self, held: &[Stamp]) -> Result<Vec<RunId>, StoreError> {
        self.plan.through(Method::CancelList, self.inner.cancel_list(held)).await
    }

    async fn run_open(&self, app: &App, runs: &[RunId]) -> Result<Vec<RunId>, StoreError> {
        self.plan.through(Method::RunOpen, self.inner.run_open(app, runs)).await
    }

    async fn run_recover(&self, scan: Scan) -> Result<Recovered, StoreError> {
        self.plan.through(Method::RunRecover, self.inner.run_recover(scan)).await
    }

    async fn work_due(&self, app: &App, mode: Mode) -> Result<WorkDue, StoreError> {
        self.plan.through(Method::WorkDue, self.inner.work_due(app, mode)).await
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
impl<S: TxStore> ChildStore for FaultyStore<S> {
    async fn children_create(
        &self,
        create: CreateChildren,
    ) -> Result<ChildrenCreated, ChildrenError> {
        self.plan.through(Method::ChildrenCreate, self.inner.children_create(create)).await
    }

    async fn children_read(&self, request: ChildrenRequest) -> Result<ChildrenPage, StoreError> {
        self.plan.through(Method::ChildrenRead, self.inner.children_read(request)).await
    }

    async fn children_groups(&self, parent: RunId) -> Result<Vec<GroupRow>, StoreError> {
        self.plan.through(Method::ChildrenGroups, self.inner.children_groups(parent)).await
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

    async fn activation_set(&self, set: SetActivation) -> Result<ActivationSet, PublishError> {
        self.plan.through(Method::ActivationSet, self.inner.activation_set(set)).await
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

    async fn schedule_list(&self, app: &App) -> Result<Schedules, StoreError> {
        self.plan.through(Method::ScheduleList, self.inner.schedule_list(app)).await
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

    async fn journal_list(
        &self,
        run: RunId,
        from: u64,
        limit: u32,
    ) -> Result<Option<JournalPage>, StoreError> {
        self.plan.through(Method::JournalList, self.inner.journal_list(run, from, limit)).await
    }

    async fn effect_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<EffectRow>, StoreError> {
        self.plan.through(Method::EffectList, self.inner.effect_list(app, scope, limit)).await
    }

    async fn event_list(&self, filter: EventFilter) -> Result<Page<EventRow>, StoreError> {
        self.plan.through(Method::EventList, self.inner.event_list(filter)).await
    }

    async fn signal_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<SignalRow>, StoreError> {
        self.plan.through(Method::SignalList, self.inner.signal_list(app, scope, limit)).await
    }

    async fn session_list(&self, app: &App) -> Result<Vec<SessionRow>, StoreError> {
        self.plan.through(Method::SessionList, self.inner.session_list(app)).await
    }

    async fn app_health(&self, app: &App) -> Result<AppHealth, StoreError> {
        self.plan.through(Method::AppHealth, self.inner.app_health(app)).await
    }

    async fn run_timeline(&self, span: RunSpan) -> Result<Vec<RunCount>, StoreError> {
        self.plan.through(Method::RunTimeline, self.inner.run_timeline(span)).await
    }

    async fn store_check(&self) -> Result<Vec<StoreFact>, StoreError> {
        self.plan.through(Method::StoreCheck, self.inner.store_check()).await
    }

    async fn audit_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        self.plan.through(Method::AuditList, self.inner.audit_list(app, scope, limit)).await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: TxStore> RetentionStore for FaultyStore<S> {
    async fn event_expire(&self, app: &App, limit: u32) -> Result<Expired, StoreError> {
        self.plan.through(Method::EventExpire, self.inner.event_expire(app, limit)).await
    }

    async fn event_redrive(&self, redrive: Redrive) -> Result<Redriven, RetentionError> {
        self.plan.through(Method::EventRedrive, self.inner.event_redrive(redrive)).await
    }

    async fn prune(&self, prune: Prune) -> Result<Pruned, StoreError> {
        self.plan.through(Method::Prune, self.inner.prune(prune)).await
    }

    async fn delete_begin(&self, delete: Delete) -> Result<(), RetentionError> {
        self.plan.through(Method::DeleteBegin, self.inner.delete_begin(delete)).await
    }

    async fn delete_pass(&self, place: Place, limit: u32) -> Result<Deleted, RetentionError> {
        self.plan.through(Method::DeletePass, self.inner.delete_pass(place, limit)).await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: TaskStore> TaskStore for FaultyStore<S> {
    async fn task_open(&self, new: NewTask) -> Result<Task, StoreError> {
        self.plan.through(Method::TaskOpen, self.inner.task_open(new)).await
    }

    async fn task_find(&self, app: &App, key: &EffectKey) -> Result<Option<Task>, StoreError> {
        self.plan.through(Method::TaskFind, self.inner.task_find(app, key)).await
    }

    async fn task_claim(&self, claim: ClaimTasks) -> Result<Vec<Task>, StoreError> {
        self.plan.through(Method::TaskClaim, self.inner.task_claim(claim)).await
    }

    async fn task_keep(
        &self,
        held: Vec<TaskHold>,
        lease: Micros,
    ) -> Result<Vec<TaskHold>, StoreError> {
        self.plan.through(Method::TaskKeep, self.inner.task_keep(held, lease)).await
    }

    async fn task_end(&self, hold: TaskHold, end: TaskEnd) -> Result<TaskEnded, StoreError> {
        self.plan.through(Method::TaskEnd, self.inner.task_end(hold, end)).await
    }

    async fn task_sweep(&self, app: &App, limit: u32) -> Result<u32, StoreError> {
        self.plan.through(Method::TaskSweep, self.inner.task_sweep(app, limit)).await
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
        let mut work = FaultyWork { inner: work, plan: &self.plan, stop: None, failed: None };
        let transacting = async {
            let done = self.inner.run_transact(before, &mut work).await;
            Stop::on(work.stop.as_ref(), When::After, Method::RunTransact).await?;
            work.failed.map_or(done, Err)
        };
        self.plan.through(Method::RunTransact, transacting).await
    }

    fn children_on(&self) -> Arc<dyn ChildrenOn<Self::Tx>> {
        Arc::new(FaultyChildren { inner: self.inner.children_on(), plan: self.plan.clone() })
    }

    fn fence(&self, run: RunId, generation: u64) -> Arc<dyn Fence<Self::Tx>> {
        let inner = self.inner.fence(run, generation);
        Arc::new(FaultyFence { inner, generation, plan: self.plan.clone() })
    }

    fn is_transaction_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        self.inner.is_transaction_conflict(error)
    }
}

/// The work of a transaction, with one more call at its end: when all is done and nothing is committed.
struct FaultyWork<'w, Tx> {
    inner: &'w mut dyn TxWork<Tx>,
    plan: &'w FaultPlan,
    stop: Option<Stop>,
    failed: Option<StoreError>,
}

#[deny(clippy::missing_trait_methods)]
impl<Tx: Send> TxWork<Tx> for FaultyWork<'_, Tx> {
    fn work<'a>(&'a mut self, tx: &'a mut Tx, locked: Locked) -> BoxFuture<'a, Work> {
        Box::pin(at_home(async move {
            let work = self.inner.work(tx, locked).await;
            if let Work::Commit(commit) = &work {
                self.stop = self.plan.stop_of(commit);
            }
            let stopping = Stop::on(self.stop.as_ref(), When::Before, Method::TransactCommit);
            match self.plan.through(Method::TransactCommit, stopping).await {
                Ok(()) => work,
                Err(error) => {
                    self.failed = Some(error);
                    Work::Rollback
                }
            }
        }))
    }
}

struct FaultyChildren<Tx> {
    inner: Arc<dyn ChildrenOn<Tx>>,
    plan: FaultPlan,
}

#[deny(clippy::missing_trait_methods)]
impl<Tx: Send> ChildrenOn<Tx> for FaultyChildren<Tx> {
    fn create<'a>(
        &'a self,
        tx: &'a mut Tx,
        create: CreateChildren,
    ) -> BoxFuture<'a, Result<ChildrenCreated, ChildrenError>> {
        Box::pin(self.plan.through(Method::ChildrenCreateIn, self.inner.create(tx, create)))
    }
}

struct FaultyFence<Tx> {
    inner: Arc<dyn Fence<Tx>>,
    generation: u64,
    plan: FaultPlan,
}

#[deny(clippy::missing_trait_methods)]
impl<Tx: Send> Fence<Tx> for FaultyFence<Tx> {
    fn hold<'a>(&'a self, tx: &'a mut Tx) -> BoxFuture<'a, Result<(), FenceError>> {
        Box::pin(async move {
            self.plan.through(Method::FenceHold, self.inner.hold(tx)).await?;
            self.plan.held(self.generation);
            Ok(())
        })
    }
}
