//! The worker of dry runs: what it holds, and how it claims.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::{
    App, BoxFuture, ClaimRequest, Clock, Ids, Micros, Mode, PlanStore, Plans, RenewRequest,
    Renewed, Run, RunId, RunStore, Stamp, StoreError, Stored, TxStore, ValueResolver, VersionId,
};
use surefoot_language::{Access, ActionResult, Module, Previews, RunsOn};
use tokio::sync::Semaphore;

use super::drive;
use crate::builder::{Authorize, Claim, Gate, Values, process_name};
use crate::engine::keeper::{KeeperStore, Rhythm, keep};
use crate::engine::left_of_leases;
use crate::engine::pace::plus;
use crate::engine::shift::{HoldGuard, Shift};
use crate::{Kernel, Running, SystemClock, SystemIds, WorkerError};

/// A dry run is its worker's for so long without a sign of life, as any run.
pub(super) const LEASE: Micros = Micros::from_secs(120);
/// How often it looks for work, and for cancels of what it has.
pub(super) const SCAN: Micros = Micros::from_secs(1);
/// Dry runs at the same time: a preview takes moments.
pub(super) const SLOTS: usize = 4;

/// Claims and analyses dry runs of one module. It holds no way to call an effect. Cheap to clone; clones are the same
/// worker.
#[derive(Clone)]
pub struct DryRunWorker {
    inner: Arc<Inner>,
}

/// What a dry run is analysed with.
pub(super) struct Inner {
    pub(super) app: App,
    pub(super) runs: Arc<dyn RunStore>,
    pub(super) plans: Arc<dyn PlanStore>,
    pub(super) ids: Arc<dyn Ids>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) is_system_clock: bool,
    pub(super) name: String,
    pub(super) previews: Previews,
    pub(super) values: Option<Values>,
    pub(super) authorize: Option<Authorize>,
    pub(super) slots: Arc<Semaphore>,
    /// The session of a started worker.
    pub(super) started: Mutex<Weak<Shift>>,
    /// The session of single passes.
    passing: OnceLock<Arc<Shift>>,
    /// One claim at a time: the next one has another name.
    claiming: tokio::sync::Mutex<()>,
}

/// A dry run that was claimed.
pub(super) struct Claimed {
    pub(super) run: Run,
    pub(super) guard: HoldGuard,
}

impl<S: TxStore> Kernel<S> {
    /// A worker that claims dry runs only. It previews; nothing that it holds can call an effect.
    pub fn dry_run_worker<B: RunsOn<S::Tx>>(&self, module: Module<B>) -> DryRunWorker {
        DryRunWorker::of(self, Previews::of::<S::Tx, B>(&module))
    }
}

impl DryRunWorker {
    /// A worker on a store that is known by its ports only, on the system's clock. Where there is a [`Kernel`],
    /// [`Kernel::dry_run_worker`] makes one.
    pub fn new(
        app: impl Into<App>,
        runs: Arc<dyn RunStore>,
        plans: Arc<dyn PlanStore>,
        previews: Previews,
    ) -> Self {
        let clock = (Arc::new(SystemClock::default()) as Arc<dyn Clock>, true);
        Self::on((app.into(), runs, plans), clock, Arc::new(SystemIds), previews)
    }

    pub(super) fn of<S: TxStore>(kernel: &Kernel<S>, previews: Previews) -> Self {
        let runs = Arc::new(kernel.store().clone());
        let clock = (kernel.clock().clone(), kernel.has_system_clock());
        let place = (kernel.app().clone(), runs.clone() as Arc<dyn RunStore>, runs as _);
        Self::on(place, clock, kernel.shared_ids(), previews)
    }

    fn on(
        (app, runs, plans): (App, Arc<dyn RunStore>, Arc<dyn PlanStore>),
        (clock, is_system_clock): (Arc<dyn Clock>, bool),
        ids: Arc<dyn Ids>,
        previews: Previews,
    ) -> Self {
        Self::from_inner(Inner {
            app,
            runs,
            plans,
            ids,
            clock,
            is_system_clock,
            name: process_name(),
            previews,
            values: None,
            authorize: None,
            slots: Arc::new(Semaphore::new(SLOTS)),
            started: Mutex::default(),
            passing: OnceLock::new(),
            claiming: tokio::sync::Mutex::default(),
        })
    }

    fn from_inner(inner: Inner) -> Self {
        Self { inner: Arc::new(inner) }
    }

    pub(super) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// What people see in the list of workers; by default the name of the program and its process id.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.with(|inner| inner.name = name)
    }

    /// Where `cx.resolve(..)` takes values from. A value that is not there yet makes the step indeterminate.
    #[must_use]
    pub fn values<R: ValueResolver + 'static>(
        self,
        make: impl Fn(&Claim) -> R + Send + Sync + 'static,
    ) -> Self {
        let values: Values = Arc::new(move |claim| Arc::new(make(claim)));
        self.with(|inner| inner.values = Some(values))
    }

    /// Asked before the `authorize` of each action that is not pure, as in an execution.
    #[must_use]
    pub fn authorize<F, Fut>(self, authorize: F) -> Self
    where
        F: Fn(Gate) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ActionResult<Access>> + Send + 'static,
    {
        let authorize: Authorize = Arc::new(move |gate| Box::pin(authorize(gate)));
        self.with(|inner| inner.authorize = Some(authorize))
    }

    /// Another worker: with sessions and slots of its own, whatever the one that it is made of does.
    fn with(self, change: impl FnOnce(&mut Inner)) -> Self {
        let it = &self.inner;
        let mut inner = Inner {
            app: it.app.clone(),
            runs: it.runs.clone(),
            plans: it.plans.clone(),
            ids: it.ids.clone(),
            clock: it.clock.clone(),
            is_system_clock: it.is_system_clock,
            name: it.name.clone(),
            previews: it.previews.clone(),
            values: it.values.clone(),
            authorize: it.authorize.clone(),
            slots: Arc::new(Semaphore::new(SLOTS)),
            started: Mutex::default(),
            passing: OnceLock::new(),
            claiming: tokio::sync::Mutex::default(),
        };
        change(&mut inner);
        Self::from_inner(inner)
    }

    /// Starts the background loops on the current runtime: dry runs are claimed and analysed until the returned handle is
    /// stopped. Can be started again after a stop.
    ///
    /// Cancel safe: dropping the future before it is done starts nothing.
    ///
    /// # Errors
    /// It runs already, or there is no thread for the lease keeper.
    pub async fn start(&self) -> Result<Running, WorkerError> {
        super::session::start(&self.inner)
    }

    /// Claims one dry run and analyses it as far as it goes; `None` if none was ready.
    ///
    /// Leases are kept by the same task, so a pure action that blocks its thread for long may lose its lease here.
    ///
    /// Not cancel safe: a dry run that is being analysed is left as by a crash, and taken up again after its lease.
    ///
    /// # Errors
    /// The store's word.
    pub async fn run_one(&self) -> Result<Option<RunId>, StoreError> {
        let shift = self.inner.passing.get_or_init(|| self.inner.new_shift()).clone();
        let store: Arc<dyn KeeperStore> = self.inner.clone();
        let keeping = keep(store, shift.clone(), RHYTHM);
        let passing = async {
            let Some(Claimed { run, guard }) = self.inner.claim(&shift).await? else {
                return Ok(None);
            };
            let id = run.id;
            drive::drive(&self.inner, &shift, guard.hold(), run).await?;
            Ok(Some(id))
        };
        tokio::select! {
            biased;
            passed = passing => passed,
            // It goes on until the session is over, and this one never is.
            () = keeping => Ok(None),
        }
    }

    /// Goes on until no dry run is ready.
    ///
    /// Not cancel safe, as [`DryRunWorker::run_one`].
    ///
    /// # Errors
    /// The store's word.
    pub async fn drain(&self) -> Result<u64, StoreError> {
        let mut done = 0;
        while self.run_one().await?.is_some() {
            done += 1;
        }
        Ok(done)
    }

    /// What the module lacks of what a version needs.
    pub(super) async fn lacks(&self, version: VersionId) -> Result<Vec<String>, StoreError> {
        let stored = self.inner.plans.version_load(version).await?;
        let lacks = stored.map(|it| it.footprint.missing_in(self.inner.previews.footprint()));
        Ok(lacks.unwrap_or_default())
    }
}

/// How leases of dry runs are kept.
pub(super) const RHYTHM: Rhythm = Rhythm { lease: LEASE, scan: SCAN };

impl Inner {
    pub(super) fn new_shift(&self) -> Arc<Shift> {
        Arc::new(Shift::new(self.ids.session(), self.clock.clone()))
    }

    pub(super) fn can_preview(&self, footprint: &Footprint) -> bool {
        footprint.is_contained_in(self.previews.footprint())
    }

    /// Claims one dry run that the module can preview.
    pub(super) async fn claim(&self, shift: &Arc<Shift>) -> Result<Option<Claimed>, StoreError> {
        let _alone = self.claiming.lock().await;
        let due = self.runs.work_due(&self.app, Mode::DryRun).await?.claimable;
        let can = due.iter().filter(|footprint| self.can_preview(footprint));
        let footprints: Vec<String> = can.map(Footprint::hash).collect();
        if footprints.is_empty() {
            return Ok(None);
        }
        let asked = shift.now();
        let request = ClaimRequest {
            app: self.app.clone(),
            mode: Mode::DryRun,
            footprints,
            tree: None,
            limit: 1,
            session: shift.session,
            nonce: shift.nonce(),
            lease: LEASE,
            plans: Plans::default(),
        };
        let claimed = self.runs.run_claim(request).await.inspect_err(|_| shift.claim_lost())?;
        let (mut claimed, lease) = if shift.is_claim_lost() && !claimed.is_empty() {
            left_of_leases(&*self.runs, shift, claimed, LEASE).await?
        } else {
            (claimed, (asked, plus(asked, LEASE)))
        };
        shift.claim_answered();
        Ok(claimed.pop().map(|Stored { run, .. }| {
            let guard = shift.hold(run.id, run.generation, lease);
            Claimed { run, guard }
        }))
    }
}

impl KeeperStore for Inner {
    fn renew(
        &self,
        request: RenewRequest,
    ) -> BoxFuture<'_, Result<Vec<(RunId, Renewed)>, StoreError>> {
        Box::pin(async move { self.runs.lease_renew(request).await })
    }

    fn canceled(&self, held: Vec<Stamp>) -> BoxFuture<'_, Result<Vec<RunId>, StoreError>> {
        Box::pin(async move { self.runs.cancel_list(&held).await })
    }
}

impl fmt::Debug for DryRunWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DryRunWorker").field("app", &self.inner.app).finish_non_exhaustive()
    }
}
