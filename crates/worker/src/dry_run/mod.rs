//! Dry runs: what a version would do, previewed by the application's actions.
//!
//! A room of its own beside the engine: what is held here is [`Previews`], which has no way to an effect.

mod context;
mod drive;
mod preview;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{
    Activation, App, Bill, ClaimRequest, CreateDryRun, EmitError, Event, Failure, LoadRequest,
    Micros, Mode, Phase, PlanStore, RunId, RunState, RunStore, SessionId, StoreError, TxStore,
    ValueResolver, VersionId,
};
use surefoot_language::{Access, ActionResult, Module, Previews, RunsOn};

use crate::builder::{Authorize, Claim, Gate, Values};
use crate::{Kernel, Scoped};

/// A preview takes moments: a lease is renewed before each, and each is given less time than that.
const LEASE: Micros = Micros::from_secs(120);
/// How long one hook may take.
const HOOK_LIMIT: Duration = Duration::from_secs(30);
/// How often a dry run is looked at that another worker has.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Claims and analyses dry runs of one module. It holds no way to call an effect. Cheap to clone.
#[derive(Clone)]
pub struct DryRunWorker {
    inner: Arc<Inner>,
}

struct Inner {
    app: App,
    runs: Arc<dyn RunStore>,
    plans: Arc<dyn PlanStore>,
    session: SessionId,
    nonce: AtomicU64,
    previews: Previews,
    values: Option<Values>,
    authorize: Option<Authorize>,
}

/// Why there is no bill.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DryRunError {
    /// No such version in this scope.
    #[error("there is no version {version} in scope `{scope}`")]
    NotFound {
        /// The version.
        version: VersionId,
        /// The scope that was looked in.
        scope: String,
    },
    /// The stored plan cannot be read.
    #[error("the plan of version {version} cannot be read: {why}")]
    Unreadable {
        /// The version.
        version: VersionId,
        /// Why.
        why: String,
    },
    /// The version does not listen to the event.
    #[error("version {version} has no trigger for events of type `{kind}`")]
    NoTrigger {
        /// The version.
        version: VersionId,
        /// The event's type.
        kind: String,
    },
    /// The module cannot run the version.
    #[error("the module lacks what version {version} needs: {}", .lacks.join(", "))]
    Lacking {
        /// The version.
        version: VersionId,
        /// By name.
        lacks: Vec<String>,
    },
    /// The event cannot be kept, or not there.
    #[error(transparent)]
    Event(EmitError),
    /// The dry run itself failed: its inputs, or a preview that failed each time.
    #[error("dry run {run} is {state}{}", .failure.as_ref().map_or_else(String::new, |failure| format!(": {}: {}", failure.code, failure.message)))]
    Ended {
        /// Which run.
        run: RunId,
        /// What it came to.
        state: RunState,
        /// Why.
        failure: Option<Failure>,
    },
    /// The store's word.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<EmitError> for DryRunError {
    fn from(error: EmitError) -> Self {
        if let EmitError::Store(error) = error { Self::Store(error) } else { Self::Event(error) }
    }
}

impl<S: TxStore> Kernel<S> {
    /// A worker that claims dry runs only. It previews; nothing that it holds can call an effect.
    pub fn dry_run_worker<B: RunsOn<S::Tx>>(&self, module: Module<B>) -> DryRunWorker {
        DryRunWorker::new(self, Previews::of::<S::Tx, B>(&module))
    }
}

impl<S: TxStore> Scoped<S> {
    /// Says what a version would do with an event, without doing it. The version need not be live; the event is not
    /// recorded, and its dedupe key is not looked at.
    ///
    /// The dry run is a run like any other: leased, journaled, and left behind for people to look at. It is analysed by
    /// this call, or by a dry-run worker that claims it first.
    ///
    /// Not cancel safe: the dry run stays queued when the future is dropped, and the next dry-run worker takes it up.
    ///
    /// # Errors
    /// Version, event and module do not fit, the dry run itself failed, or the store's word.
    pub async fn dry_run<B: RunsOn<S::Tx>>(
        &self,
        module: &Module<B>,
        version: VersionId,
        event: Event,
    ) -> Result<Bill, DryRunError> {
        let worker = DryRunWorker::new(self.kernel(), Previews::of::<S::Tx, B>(module));
        let create = self.dry_run_of(version, event).await?;
        let lacks = worker.lacks(version).await?;
        if !lacks.is_empty() {
            return Err(DryRunError::Lacking { version, lacks });
        }
        let run = self.kernel().store().dry_run_create(create).await?;
        worker.bill(run.id).await
    }

    async fn dry_run_of(
        &self,
        version: VersionId,
        event: Event,
    ) -> Result<CreateDryRun, DryRunError> {
        let (kernel, scope) = (self.kernel(), self.scope());
        let stored = kernel.store().version_load(version).await?;
        let stored = stored.filter(|it| it.app == *kernel.app() && it.scope == *scope);
        let missing = || DryRunError::NotFound { version, scope: scope.to_string() };
        let stored = stored.ok_or_else(missing)?;
        let plan: Plan = read_plan(version, &stored.plan)?;
        let event = event.check()?;
        let activations = Activation::of_plan(&plan);
        let activation = activations.into_iter().find(|it| it.event == event.kind);
        let kind = event.kind.clone();
        let activation = activation.ok_or(DryRunError::NoTrigger { version, kind })?;
        let id = RunId::of_event(kernel.ids().event(), &stored.workflow, "dry run");
        Ok(CreateDryRun {
            id,
            app: stored.app,
            scope: stored.scope,
            workflow: stored.workflow,
            version,
            footprint: plan.footprint.hash(),
            trigger: activation.trigger,
            event,
        })
    }
}

fn read_plan(version: VersionId, text: &str) -> Result<Plan, DryRunError> {
    let why = |error: serde_json::Error| error.to_string();
    from_stored(text).map_err(|error| DryRunError::Unreadable { version, why: why(error) })
}

impl DryRunWorker {
    fn new<S: TxStore>(kernel: &Kernel<S>, previews: Previews) -> Self {
        let store = kernel.store();
        let inner = Inner {
            app: kernel.app().clone(),
            runs: Arc::new(store.clone()),
            plans: Arc::new(store.clone()),
            session: kernel.ids().session(),
            nonce: AtomicU64::new(0),
            previews,
            values: None,
            authorize: None,
        };
        Self { inner: Arc::new(inner) }
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

    fn with(self, change: impl FnOnce(&mut Inner)) -> Self {
        let it = &self.inner;
        let mut inner = Inner {
            app: it.app.clone(),
            runs: it.runs.clone(),
            plans: it.plans.clone(),
            session: it.session,
            nonce: AtomicU64::new(it.nonce.load(Ordering::Relaxed)),
            previews: it.previews.clone(),
            values: it.values.clone(),
            authorize: it.authorize.clone(),
        };
        change(&mut inner);
        Self { inner: Arc::new(inner) }
    }

    /// Claims one dry run and analyses it as far as it goes; `None` if none was ready.
    ///
    /// Not cancel safe: a dry run that is being analysed is left as by a crash, and taken up again after its lease.
    ///
    /// # Errors
    /// The store's word.
    pub async fn run_one(&self) -> Result<Option<RunId>, StoreError> {
        let Some(run) = self.claim().await? else { return Ok(None) };
        let id = run.id;
        drive::drive(&self.inner, run).await?;
        Ok(Some(id))
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

    async fn claim(&self) -> Result<Option<surefoot_kernel_core::Run>, StoreError> {
        let inner = &self.inner;
        let footprints = inner.runs.footprint_list(&inner.app).await?;
        let can = |it: &surefoot_kernel_core::plan::Footprint| {
            it.is_contained_in(inner.previews.footprint())
        };
        let footprints: Vec<String> =
            footprints.iter().filter(|it| can(it)).map(|it| it.hash()).collect();
        if footprints.is_empty() {
            return Ok(None);
        }
        let request = ClaimRequest {
            app: inner.app.clone(),
            mode: Mode::DryRun,
            footprints,
            limit: 1,
            session: inner.session,
            nonce: inner.nonce.fetch_add(1, Ordering::Relaxed),
            lease: LEASE,
        };
        Ok(inner.runs.run_claim(request).await?.pop())
    }

    /// What the module lacks of what a version needs.
    async fn lacks(&self, version: VersionId) -> Result<Vec<String>, StoreError> {
        let stored = self.inner.plans.version_load(version).await?;
        let lacks = stored.map(|it| it.footprint.missing_in(self.inner.previews.footprint()));
        Ok(lacks.unwrap_or_default())
    }

    /// Analyses until this dry run is over; what another worker has is waited for.
    async fn bill(&self, run: RunId) -> Result<Bill, DryRunError> {
        loop {
            let worked = self.run_one().await?.is_some();
            let stored = self.inner.runs.run_load(LoadRequest { run, after: None }).await?;
            let state = stored.as_ref().map(|it| it.run.state());
            let ended = |failure| DryRunError::Ended {
                run,
                state: state.unwrap_or(RunState::Canceled),
                failure,
            };
            match stored.map(|it| it.run.phase) {
                Some(Phase::Succeeded { result, .. }) => {
                    let bill = serde_json::from_value(result);
                    return bill.map_err(|_| ended(None));
                }
                Some(Phase::Failed { error, .. }) => return Err(ended(Some(error))),
                Some(Phase::NeedsAttention(attention)) => return Err(ended(Some(attention.error))),
                Some(Phase::Canceled { .. }) | None => return Err(ended(None)),
                Some(Phase::Queued { .. } | Phase::Running { .. } | Phase::Waiting(_)) => {}
            }
            if !worked {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
    }
}

impl fmt::Debug for DryRunWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DryRunWorker").field("app", &self.inner.app).finish_non_exhaustive()
    }
}
