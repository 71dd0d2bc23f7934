//! A store in memory: a full implementation of every port, as obviously right as possible.
//!
//! It is the measure for the others: what a run becomes is what the core says (`decide_row`, `apply`), and a
//! transaction is a copy of all tables that replaces the original at commit.

mod children;
mod events;
mod factory;
mod operator;
mod plans;
mod retention;
mod runs;
mod state;
mod tasks;
mod tx;

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::{
    Activate, ActivationSet, App, AppHealth, AuditRow, ChildStore, ChildrenCreated, ChildrenError,
    ChildrenOn, ChildrenPage, ChildrenRequest, ClaimRequest, Commit, Committed, CreateChildren,
    CreateDryRun, Delete, Deleted, Dispatched, EffectRow, Emission, Emit, EmitError, EventFilter,
    EventRow, EventStore, Expired, Fence, GroupRow, JournalPage, LoadRequest, Locked, Micros, Mode,
    OperatorStore, Page, PassTime, Place, PlanStore, Prune, Pruned, Publish, PublishError,
    Published, Recovered, Redrive, Redriven, RenewRequest, Renewed, RetentionError, RetentionStore,
    Run, RunCount, RunDetail, RunFilter, RunId, RunRow, RunSpan, RunStore, Scan, Schedules, Scope,
    SendSignal, SessionReport, SessionRow, SetActivation, SignalError, SignalRow, SignalSent,
    Stamp, StoreError, StoreFact, Stored, StoredVersion, TakeOverRequest, Timestamp, TxStore,
    TxWork, VersionId, Work, WorkDue, WorkflowKey, WorkflowRow,
};

pub use self::factory::MemoryFactory;
use self::state::State;
use self::tx::{Fences, MemoryFence, Writer};
pub use self::tx::{MemoryConflict, MemoryTx, OpenMemoryTx};
use crate::VirtualClock;

/// A store in memory, on a virtual clock. Clones are handles of the same store.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    clock: VirtualClock,
    state: Arc<Mutex<State>>,
    /// Held by whoever writes, a transaction for as long as it is open; reads never wait for it.
    writer: Writer,
    fences: Fences,
}

impl MemoryStore {
    /// An empty store on its own clock.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store on this clock.
    #[must_use]
    pub fn with_clock(clock: VirtualClock) -> Self {
        Self { clock, ..Self::default() }
    }

    /// The clock of record.
    #[must_use]
    pub fn clock(&self) -> &VirtualClock {
        &self.clock
    }

    /// A row of the application's own table, as committed.
    #[must_use]
    pub fn table_row(&self, key: &str) -> Option<String> {
        self.read().table.get(key).cloned()
    }

    fn read(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn write<T>(&self, work: impl FnOnce(&mut State, Timestamp) -> T) -> T {
        let _turn = self.writer.turn().await;
        let now = self.clock.now();
        work(&mut self.read(), now)
    }
}

impl PassTime for MemoryStore {
    fn pass_time(&self, span: Micros) {
        self.clock.advance(span);
    }
}

#[async_trait]
impl RunStore for MemoryStore {
    async fn store_now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.clock.now())
    }

    async fn dry_run_create(&self, create: CreateDryRun) -> Result<Run, EmitError> {
        self.write(|state, now| state.dry_run_create(&create, now)).await
    }

    async fn run_claim(&self, request: ClaimRequest) -> Result<Vec<Stored>, StoreError> {
        Ok(self.write(|state, now| state.run_claim(&request, now)).await)
    }

    async fn run_load(&self, request: LoadRequest) -> Result<Option<Stored>, StoreError> {
        Ok(self.read().run_load(request, self.clock.now()))
    }

    async fn run_commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.write(|state, now| state.commit(&commit, now)).await
    }

    async fn run_take_over(&self, request: TakeOverRequest) -> Result<Option<Run>, StoreError> {
        Ok(self.write(|state, now| state.run_take_over(request, now)).await)
    }

    async fn lease_renew(
        &self,
        request: RenewRequest,
    ) -> Result<Vec<(RunId, Renewed)>, StoreError> {
        let mut renewed = Vec::with_capacity(request.runs.len());
        for stamp in &request.runs {
            // Whoever holds the fence may be waiting for this very answer: never wait for it.
            let became = if self.fences.holds(stamp.run) {
                Renewed::FenceHeld
            } else {
                self.write(|state, now| state.lease_renew(&request, *stamp, now)).await
            };
            renewed.push((stamp.run, became));
        }
        Ok(renewed)
    }

    async fn run_open(&self, app: &App, runs: &[RunId]) -> Result<Vec<RunId>, StoreError> {
        Ok(self.read().run_open(app, runs))
    }

    async fn cancel_list(&self, held: &[Stamp]) -> Result<Vec<RunId>, StoreError> {
        Ok(self.read().cancel_list(held))
    }

    async fn run_recover(&self, scan: Scan) -> Result<Recovered, StoreError> {
        Ok(self.write(|state, now| state.run_recover(&scan, now)).await)
    }

    async fn work_due(&self, app: &App, mode: Mode) -> Result<WorkDue, StoreError> {
        Ok(self.read().work_due(app, mode, self.clock.now()))
    }

    async fn footprint_list(&self, app: &App) -> Result<Vec<Footprint>, StoreError> {
        Ok(self.read().footprint_list(app))
    }

    async fn session_report(&self, report: SessionReport) -> Result<(), StoreError> {
        self.write(|state, now| state.session_report(report, now)).await;
        Ok(())
    }
}

#[async_trait]
impl ChildStore for MemoryStore {
    async fn children_create(
        &self,
        create: CreateChildren,
    ) -> Result<ChildrenCreated, ChildrenError> {
        self.write(|state, now| state.children_create(&create, now)).await
    }

    async fn children_read(&self, request: ChildrenRequest) -> Result<ChildrenPage, StoreError> {
        Ok(self.read().children_read(&request))
    }

    async fn children_groups(&self, parent: RunId) -> Result<Vec<GroupRow>, StoreError> {
        Ok(self.read().children_groups(parent))
    }
}

#[async_trait]
impl EventStore for MemoryStore {
    async fn event_emit(&self, emit: Emit) -> Result<Emission, EmitError> {
        self.write(|state, now| state.event_emit(&emit, now)).await
    }

    async fn event_dispatch(&self, app: &App, limit: u32) -> Result<Dispatched, StoreError> {
        Ok(self.write(|state, now| state.event_dispatch(app, limit, now)).await)
    }

    async fn signal_send(&self, send: SendSignal) -> Result<SignalSent, SignalError> {
        self.write(|state, now| state.signal_send(&send, now)).await
    }
}

#[async_trait]
impl PlanStore for MemoryStore {
    async fn version_publish(&self, publish: Publish) -> Result<Published, PublishError> {
        self.write(|state, now| state.version_publish(&publish, now)).await
    }

    async fn version_activate(&self, activate: Activate) -> Result<Published, PublishError> {
        self.write(|state, now| state.version_activate(&activate, now)).await
    }

    async fn activation_set(&self, set: SetActivation) -> Result<ActivationSet, PublishError> {
        self.write(|state, now| state.activation_set(&set, now)).await
    }

    async fn version_load(&self, version: VersionId) -> Result<Option<StoredVersion>, StoreError> {
        Ok(self.read().version_load(version))
    }

    async fn workflow_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
    ) -> Result<Vec<WorkflowRow>, StoreError> {
        Ok(self.read().workflow_list(app, scope))
    }

    async fn schedule_list(&self, app: &App) -> Result<Schedules, StoreError> {
        Ok(self.read().schedule_list(app, self.clock().now()))
    }

    async fn version_list(
        &self,
        app: &App,
        scope: &Scope,
        workflow: &WorkflowKey,
    ) -> Result<Vec<StoredVersion>, StoreError> {
        Ok(self.read().version_list(app, scope, workflow))
    }
}

#[async_trait]
impl OperatorStore for MemoryStore {
    async fn app_list(&self) -> Result<Vec<App>, StoreError> {
        Ok(self.read().app_list())
    }

    async fn run_list(&self, filter: RunFilter) -> Result<Page<RunRow>, StoreError> {
        self.read().run_list(&filter)
    }

    async fn run_detail(&self, run: RunId) -> Result<Option<RunDetail>, StoreError> {
        Ok(self.read().run_detail(run, self.clock.now()))
    }

    async fn journal_list(
        &self,
        run: RunId,
        from: u64,
        limit: u32,
    ) -> Result<Option<JournalPage>, StoreError> {
        Ok(self.read().journal_list(run, from, limit))
    }

    async fn effect_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<EffectRow>, StoreError> {
        Ok(self.read().effect_list(app, scope, limit, self.clock.now()))
    }

    async fn event_list(&self, filter: EventFilter) -> Result<Page<EventRow>, StoreError> {
        self.read().event_list(&filter)
    }

    async fn signal_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<SignalRow>, StoreError> {
        Ok(self.read().signal_list(app, scope, limit, self.clock.now()))
    }

    async fn session_list(&self, app: &App) -> Result<Vec<SessionRow>, StoreError> {
        Ok(self.read().session_list(app, self.clock.now()))
    }

    async fn app_health(&self, app: &App) -> Result<AppHealth, StoreError> {
        Ok(self.read().app_health(app, self.clock.now()))
    }

    async fn run_timeline(&self, span: RunSpan) -> Result<Vec<RunCount>, StoreError> {
        Ok(self.read().run_timeline(&span))
    }

    async fn store_check(&self) -> Result<Vec<StoreFact>, StoreError> {
        let (found, wanted) = ("memory".to_owned(), "it ends with its process".to_owned());
        Ok(vec![StoreFact { name: "store", ok: true, found, wanted }])
    }

    async fn audit_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        Ok(self.read().audit_list(app, scope, limit))
    }
}

#[async_trait]
impl RetentionStore for MemoryStore {
    async fn event_expire(&self, app: &App, limit: u32) -> Result<Expired, StoreError> {
        Ok(self.write(|state, now| state.event_expire(app, limit, now)).await)
    }

    async fn event_redrive(&self, redrive: Redrive) -> Result<Redriven, RetentionError> {
        self.write(|state, now| state.event_redrive(&redrive, now)).await
    }

    async fn prune(&self, prune: Prune) -> Result<Pruned, StoreError> {
        Ok(self.write(|state, now| state.prune(&prune, now)).await)
    }

    async fn delete_begin(&self, delete: Delete) -> Result<(), RetentionError> {
        self.write(|state, now| state.delete_begin(&delete, now)).await
    }

    async fn delete_pass(&self, place: Place, limit: u32) -> Result<Deleted, RetentionError> {
        self.write(|state, now| state.delete_pass(&place, limit, now)).await
    }
}

impl TxStore for MemoryStore {
    type Tx = MemoryTx;
    type Open = OpenMemoryTx;

    async fn begin(&self) -> Result<OpenMemoryTx, StoreError> {
        let _open = self.writer.open().await;
        let tx = MemoryTx::new(self.read().clone());
        Ok(OpenMemoryTx { tx, _open })
    }

    async fn commit(&self, open: OpenMemoryTx) -> Result<(), StoreError> {
        let OpenMemoryTx { tx, _open } = open;
        self.read().clone_from(&tx.state);
        Ok(())
    }

    async fn event_emit_in(&self, tx: &mut MemoryTx, emit: Emit) -> Result<Emission, EmitError> {
        let emit = Emit { eager: None, ..emit };
        tx.state.event_emit(&emit, self.clock.now())
    }

    async fn version_publish_in(
        &self,
        tx: &mut MemoryTx,
        publish: Publish,
    ) -> Result<Published, PublishError> {
        tx.state.version_publish(&publish, self.clock.now())
    }

    async fn signal_send_in(
        &self,
        tx: &mut MemoryTx,
        send: SendSignal,
    ) -> Result<SignalSent, SignalError> {
        tx.state.signal_send(&send, self.clock.now())
    }

    async fn run_transact(
        &self,
        before: Stamp,
        work: &mut dyn TxWork<MemoryTx>,
    ) -> Result<Option<Committed>, StoreError> {
        let mut open = self.begin().await?;
        let run = open.tx.state.runs.get(&before.run).map(|entry| entry.run.clone());
        let run = run.ok_or(StoreError::LeaseLost)?;
        before.check(&run)?;
        let budget = open.tx.state.budget_of(&run);
        let locked = Locked { run, budget, now: self.clock.now() };
        match work.work(&mut open.tx, locked).await {
            Work::Rollback => Ok(None),
            Work::Commit(commit) => {
                let committed = open.tx.state.commit(&commit, self.clock.now())?;
                TxStore::commit(self, open).await?;
                Ok(Some(committed))
            }
        }
    }

    fn children_on(&self) -> Arc<dyn ChildrenOn<MemoryTx>> {
        Arc::new(self.clone())
    }

    fn fence(&self, run: RunId, generation: u64) -> Arc<dyn Fence<MemoryTx>> {
        Arc::new(MemoryFence { run, generation, fences: self.fences.clone() })
    }

    fn is_transaction_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        let mut below = Some(error);
        while let Some(error) = below {
            if error.is::<MemoryConflict>() {
                return true;
            }
            below = error.source();
        }
        false
    }
}
