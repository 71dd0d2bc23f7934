//! The ports, each method in one line: what it does is in the module of its noun.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use sqlx::Connection;

use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::{
    Activate, ActivationSet, App, AppHealth, AuditRow, ChildStore, ChildrenCreated, ChildrenError,
    ChildrenOn, ChildrenPage, ChildrenRequest, ClaimRequest, Commit, Committed, CreateChildren,
    CreateDryRun, Delete, Deleted, Dispatched, EffectRow, Emission, Emit, EmitError, EventFilter,
    EventRow, EventStore, Expired, Fence, GroupRow, JournalPage, LoadRequest, Mode, OperatorStore,
    Page, Place, PlanStore, Prune, Pruned, Publish, PublishError, Published, Recovered, Redrive,
    Redriven, RenewRequest, Renewed, RetentionError, RetentionStore, Run, RunCount, RunDetail,
    RunFilter, RunId, RunRow, RunSpan, RunStore, Scan, Schedules, Scope, SendSignal, SessionReport,
    SessionRow, SetActivation, SignalError, SignalRow, SignalSent, Stamp, StoreError, StoreFact,
    Stored, StoredVersion, TakeOverRequest, Timestamp, TxStore, TxWork, VersionId, WorkDue,
    WorkflowKey, WorkflowRow,
};

use crate::child::create::{Create, OnTransaction};
use crate::child::read;
use crate::error::is_transaction_conflict;
use crate::event::{dispatch, emit, signal};
use crate::fence::SqliteFence;
use crate::operator;
use crate::plan::{list, publish, switch};
use crate::retention::{delete, expire, prune, redrive};
use crate::run::{claim, dry_run, load, recover, renew, session};
use crate::store::SqliteStore;
use crate::transaction::{SqliteTransaction, SqliteTx};

#[async_trait]
impl RunStore for SqliteStore {
    async fn store_now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.now())
    }

    async fn dry_run_create(&self, create: CreateDryRun) -> Result<Run, EmitError> {
        self.writer().ask(dry_run::Create(create)).await
    }

    async fn run_claim(&self, request: ClaimRequest) -> Result<Vec<Stored>, StoreError> {
        let now = self.now();
        let asked = request.clone();
        let any = self.read(move |conn| {
            Box::pin(async move { claim::is_claimable(conn, &asked, now).await })
        });
        if any.await? { self.writer().ask(claim::Claim(request)).await } else { Ok(Vec::new()) }
    }

    async fn run_load(&self, request: LoadRequest) -> Result<Option<Stored>, StoreError> {
        let now = self.now();
        let load = self.read(move |conn| Box::pin(load::load(conn, request, now)));
        load.await
    }

    async fn run_commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.writer().commit(commit).await
    }

    async fn run_take_over(&self, request: TakeOverRequest) -> Result<Option<Run>, StoreError> {
        self.writer().ask(claim::TakeOver(request)).await
    }

    async fn lease_renew(
        &self,
        request: RenewRequest,
    ) -> Result<Vec<(RunId, Renewed)>, StoreError> {
        let (held, free): (Vec<Stamp>, Vec<Stamp>) =
            request.runs.iter().partition(|stamp| self.fences().holds(stamp.run));
        let mut renewed: Vec<(RunId, Renewed)> =
            held.into_iter().map(|stamp| (stamp.run, Renewed::FenceHeld)).collect();
        if !free.is_empty() {
            let rest = RenewRequest { runs: free, ..request };
            renewed.extend(self.writer().ask(renew::Renew(rest)).await?);
        }
        Ok(renewed)
    }

    async fn cancel_list(&self, held: &[Stamp]) -> Result<Vec<RunId>, StoreError> {
        let held = held.to_vec();
        let list =
            self.read(move |conn| Box::pin(async move { renew::canceled(conn, &held).await }));
        list.await
    }

    async fn run_open(&self, app: &App, runs: &[RunId]) -> Result<Vec<RunId>, StoreError> {
        let (app, runs) = (app.clone(), runs.to_vec());
        self.read(move |conn| Box::pin(async move { load::open(conn, &app, &runs).await })).await
    }

    async fn run_recover(&self, scan: Scan) -> Result<Recovered, StoreError> {
        let now = self.now();
        let asked = scan.clone();
        let due =
            self.read(move |conn| Box::pin(async move { recover::due(conn, &asked, now).await }));
        if due.await?.is_empty() {
            return Ok(Recovered::default());
        }
        self.writer().ask(recover::Recover(scan)).await
    }

    async fn work_due(&self, app: &App, mode: Mode) -> Result<WorkDue, StoreError> {
        let (app, now) = (app.clone(), self.now());
        let due = self
            .read(move |conn| Box::pin(async move { recover::work(conn, app, mode, now).await }));
        due.await
    }

    async fn footprint_list(&self, app: &App) -> Result<Vec<Footprint>, StoreError> {
        Ok(self.work_due(app, Mode::Execute).await?.footprints)
    }

    async fn session_report(&self, report: SessionReport) -> Result<(), StoreError> {
        self.writer().ask(session::Report(report)).await
    }
}

#[async_trait]
impl ChildStore for SqliteStore {
    async fn children_create(
        &self,
        create: CreateChildren,
    ) -> Result<ChildrenCreated, ChildrenError> {
        self.writer().ask(Create(create)).await
    }

    async fn children_read(&self, request: ChildrenRequest) -> Result<ChildrenPage, StoreError> {
        let page = self.read(move |conn| Box::pin(async move { read::page(conn, &request).await }));
        page.await
    }

    async fn children_groups(&self, parent: RunId) -> Result<Vec<GroupRow>, StoreError> {
        self.read(move |conn| Box::pin(read::groups(conn, parent))).await
    }
}

#[async_trait]
impl EventStore for SqliteStore {
    async fn event_emit(&self, emit: Emit) -> Result<Emission, EmitError> {
        self.writer().emit(emit).await
    }

    async fn event_dispatch(&self, app: &App, limit: u32) -> Result<Dispatched, StoreError> {
        let now = self.now();
        let of = app.clone();
        let due =
            self.read(move |conn| Box::pin(async move { dispatch::due(conn, &of, 1, now).await }));
        if due.await?.is_empty() {
            return Ok(Dispatched::default());
        }
        self.writer().ask(dispatch::DispatchDue { app: app.clone(), limit }).await
    }

    async fn signal_send(&self, send: SendSignal) -> Result<SignalSent, SignalError> {
        self.writer().ask(signal::Send(send)).await
    }
}

#[async_trait]
impl PlanStore for SqliteStore {
    async fn version_publish(&self, publish: Publish) -> Result<Published, PublishError> {
        self.writer().ask(publish::WriteVersion(publish)).await
    }

    async fn version_activate(&self, activate: Activate) -> Result<Published, PublishError> {
        self.writer().ask(publish::MakeLive(activate)).await
    }

    async fn activation_set(&self, set: SetActivation) -> Result<ActivationSet, PublishError> {
        self.writer().ask(switch::Switch(set)).await
    }

    async fn version_load(&self, version: VersionId) -> Result<Option<StoredVersion>, StoreError> {
        let load =
            self.read(move |conn| Box::pin(async move { list::version(conn, version).await }));
        load.await
    }

    async fn workflow_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
    ) -> Result<Vec<WorkflowRow>, StoreError> {
        let (app, scope) = (app.clone(), scope.cloned());
        let list = self.read(move |conn| {
            Box::pin(async move { list::workflows(conn, &app, scope.as_ref()).await })
        });
        list.await
    }

    async fn schedule_list(&self, app: &App) -> Result<Schedules, StoreError> {
        let (app, now) = (app.clone(), self.now());
        self.read(move |conn| Box::pin(async move { list::schedules(conn, &app, now).await })).await
    }

    async fn version_list(
        &self,
        app: &App,
        scope: &Scope,
        workflow: &WorkflowKey,
    ) -> Result<Vec<StoredVersion>, StoreError> {
        let (app, scope, workflow) = (app.clone(), scope.clone(), workflow.clone());
        let list = self.read(move |conn| {
            Box::pin(async move { list::versions(conn, &app, &scope, &workflow).await })
        });
        list.await
    }
}

#[async_trait]
impl OperatorStore for SqliteStore {
    async fn app_list(&self) -> Result<Vec<App>, StoreError> {
        self.read(|conn| Box::pin(async move { operator::health::apps(conn).await })).await
    }

    async fn run_list(&self, filter: RunFilter) -> Result<Page<RunRow>, StoreError> {
        let list = self
            .read(move |conn| Box::pin(async move { operator::runs::list(conn, &filter).await }));
        list.await
    }

    async fn run_detail(&self, run: RunId) -> Result<Option<RunDetail>, StoreError> {
        let now = self.now();
        let detail = self.read(move |conn| {
            Box::pin(async move { operator::runs::detail(conn, run, now).await })
        });
        detail.await
    }

    async fn journal_list(
        &self,
        run: RunId,
        from: u64,
        limit: u32,
    ) -> Result<Option<JournalPage>, StoreError> {
        let page = self.read(move |conn| {
            Box::pin(async move { load::journal_page(conn, run, from, limit).await })
        });
        page.await
    }

    async fn effect_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<EffectRow>, StoreError> {
        let (app, scope, now) = (app.clone(), scope.cloned(), self.now());
        let list = self.read(move |conn| {
            let list = async move {
                operator::runs::effects(conn, (&app, scope.as_ref()), limit, now).await
            };
            Box::pin(list)
        });
        list.await
    }

    async fn event_list(&self, filter: EventFilter) -> Result<Page<EventRow>, StoreError> {
        let list = self
            .read(move |conn| Box::pin(async move { operator::events::list(conn, &filter).await }));
        list.await
    }

    async fn signal_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<SignalRow>, StoreError> {
        let (app, scope, now) = (app.clone(), scope.cloned(), self.now());
        let list = self.read(move |conn| {
            let list = async move {
                operator::events::signals(conn, (&app, scope.as_ref()), limit, now).await
            };
            Box::pin(list)
        });
        list.await
    }

    async fn session_list(&self, app: &App) -> Result<Vec<SessionRow>, StoreError> {
        let (app, now) = (app.clone(), self.now());
        let list = self.read(move |conn| {
            Box::pin(async move { operator::health::sessions(conn, &app, now).await })
        });
        list.await
    }

    async fn app_health(&self, app: &App) -> Result<AppHealth, StoreError> {
        let (app, now) = (app.clone(), self.now());
        let health = self.read(move |conn| {
            Box::pin(async move { operator::health::health(conn, &app, now).await })
        });
        health.await
    }

    async fn run_timeline(&self, span: RunSpan) -> Result<Vec<RunCount>, StoreError> {
        let timeline = self.read(move |conn| {
            Box::pin(async move { operator::timeline::timeline(conn, &span).await })
        });
        timeline.await
    }

    async fn store_check(&self) -> Result<Vec<StoreFact>, StoreError> {
        self.read(|conn| Box::pin(async move { operator::check::check(conn).await })).await
    }

    async fn audit_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let (app, scope) = (app.clone(), scope.cloned());
        let list = self.read(move |conn| {
            let list =
                async move { operator::health::audit(conn, (&app, scope.as_ref()), limit).await };
            Box::pin(list)
        });
        list.await
    }
}

#[async_trait]
impl RetentionStore for SqliteStore {
    async fn event_expire(&self, app: &App, limit: u32) -> Result<Expired, StoreError> {
        let (app, now) = (app.clone(), self.now());
        let found = self.read(move |conn| {
            Box::pin(async move { expire::expired(conn, &app, limit, now).await })
        });
        let (events, more) = found.await?;
        if events.is_empty() {
            return Ok(Expired::default());
        }
        self.writer().ask(expire::Empty { events, more }).await
    }

    async fn event_redrive(&self, redrive: Redrive) -> Result<Redriven, RetentionError> {
        self.writer().ask(redrive::RedriveEvent(redrive)).await
    }

    async fn prune(&self, prune: Prune) -> Result<Pruned, StoreError> {
        let asked = prune.clone();
        let found = self.read(move |conn| Box::pin(async move { prune::find(conn, &asked).await }));
        let found = found.await?;
        self.writer().ask(prune::Carry { prune, found }).await
    }

    async fn delete_begin(&self, delete: Delete) -> Result<(), RetentionError> {
        self.writer().ask(delete::Begin(delete)).await
    }

    async fn delete_pass(&self, place: Place, limit: u32) -> Result<Deleted, RetentionError> {
        let what = format!("deletion of {place} that has begun");
        let part =
            self.read(move |conn| Box::pin(async move { delete::find(conn, &place, limit).await }));
        match part.await? {
            Some(part) => self.writer().ask(delete::Carry { part, limit }).await,
            None => Err(RetentionError::NotFound { what }),
        }
    }
}

impl TxStore for SqliteStore {
    type Tx = SqliteTx;
    type Open = SqliteTransaction;

    async fn begin(&self) -> Result<SqliteTransaction, StoreError> {
        self.transactions().begin().await
    }

    async fn commit(&self, open: SqliteTransaction) -> Result<(), StoreError> {
        open.commit().await
    }

    async fn event_emit_in(&self, tx: &mut SqliteTx, emit: Emit) -> Result<Emission, EmitError> {
        in_transaction(tx)?;
        let emit = Emit { eager: None, ..emit };
        emit::emit(tx, &emit, self.now()).await
    }

    async fn version_publish_in(
        &self,
        tx: &mut SqliteTx,
        publish: Publish,
    ) -> Result<Published, PublishError> {
        in_transaction(tx)?;
        publish::publish(tx, &publish, self.now()).await
    }

    async fn signal_send_in(
        &self,
        tx: &mut SqliteTx,
        send: SendSignal,
    ) -> Result<SignalSent, SignalError> {
        in_transaction(tx)?;
        signal::send(tx, &send, self.now()).await
    }

    async fn run_transact(
        &self,
        before: Stamp,
        work: &mut dyn TxWork<SqliteTx>,
    ) -> Result<Option<Committed>, StoreError> {
        self.transactions().run_transact(before, work).await
    }

    fn children_on(&self) -> Arc<dyn ChildrenOn<SqliteTx>> {
        Arc::new(OnTransaction(self.clone()))
    }

    fn fence(&self, run: RunId, generation: u64) -> Arc<dyn Fence<SqliteTx>> {
        Arc::new(SqliteFence { run, generation, fences: self.fences().clone() })
    }

    fn is_transaction_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        is_transaction_conflict(error)
    }
}

fn in_transaction(tx: &SqliteTx) -> Result<(), StoreError> {
    if tx.is_in_transaction() { Ok(()) } else { Err(StoreError::NotInTransaction) }
}
