//! Runs and their children.

use async_trait::async_trait;

use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::{
    App, ChildStore, ChildrenCreated, ChildrenError, ChildrenPage, ChildrenRequest, ClaimRequest,
    Commit, Committed, CreateChildren, CreateDryRun, EmitError, GroupRow, LoadRequest, Mode,
    Recovered, RenewRequest, Renewed, Run, RunId, RunStore, Scan, SessionReport, Stamp, StoreError,
    Stored, TakeOverRequest, Timestamp, WorkDue,
};

use crate::child::create::Create;
use crate::child::read;
use crate::run::recover::Due;
use crate::run::{claim, dry_run, load, recover, renew, session};
use crate::store::PostgresStore;

impl PostgresStore {
    async fn due(&self, scan: Scan, mode: Mode) -> Result<Due, StoreError> {
        let clock = self.clock().clone();
        let due = self.read(move |conn| {
            Box::pin(async move { recover::due(conn, &scan, mode, &clock).await })
        });
        due.await
    }
}

#[async_trait]
impl RunStore for PostgresStore {
    async fn store_now(&self) -> Result<Timestamp, StoreError> {
        self.read_now(|_, now| Box::pin(std::future::ready(Ok(now)))).await
    }

    async fn dry_run_create(&self, create: CreateDryRun) -> Result<Run, EmitError> {
        self.writer().ask(dry_run::Create(create)).await
    }

    async fn run_claim(&self, request: ClaimRequest) -> Result<Vec<Stored>, StoreError> {
        self.writer().ask(claim::Claim(request)).await
    }

    async fn run_load(&self, request: LoadRequest) -> Result<Option<Stored>, StoreError> {
        self.read_now(move |conn, now| Box::pin(load::load(conn, request, now))).await
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
        self.writer().renew(request).await
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
        let due = self.due(scan.clone(), Mode::Execute).await?;
        if due.is_empty() {
            return Ok(Recovered::default());
        }
        self.writer().ask(recover::Recover { scan, due }).await
    }

    async fn work_due(&self, app: &App, mode: Mode) -> Result<WorkDue, StoreError> {
        Ok(self.due(Scan { app: app.clone(), limit: 1 }, mode).await?.into_work())
    }

    async fn footprint_list(&self, app: &App) -> Result<Vec<Footprint>, StoreError> {
        Ok(self.work_due(app, Mode::Execute).await?.footprints)
    }

    async fn session_report(&self, report: SessionReport) -> Result<(), StoreError> {
        self.writer().ask(session::Report(report)).await
    }
}

#[async_trait]
impl ChildStore for PostgresStore {
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
