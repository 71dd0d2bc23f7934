//! How a worker is put together.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use surefoot_kernel_core::{
    BoxFuture, Dependency, EffectClass, Invocation, RunId, Scope, Trace, TxStore, ValueResolver,
    WakeBus, WorkflowKey,
};
use surefoot_language::{Access, ActionResult, Loaded, Module, RunsOn, StepCx};
use surefoot_sync_core::ScheduleStore;

use crate::Misfire;
use crate::engine::{Engine, Settings};
use crate::{Kernel, Running, Worker, WorkerError};

pub(crate) type Values = Arc<dyn Fn(&Claim) -> Arc<dyn ValueResolver> + Send + Sync>;
pub(crate) type Authorize =
    Arc<dyn Fn(Gate) -> BoxFuture<'static, ActionResult<Access>> + Send + Sync>;

const SLOTS: usize = 4;
const LEASE: Duration = Duration::from_secs(120);
const CATCH_UP: Duration = Duration::from_secs(3_600);
const CATCH_UP_MAX: Duration = Duration::from_secs(7 * 86_400);
const SCAN: Duration = Duration::from_secs(1);

/// What a worker took: enough to make one run's value resolver.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Claim {
    /// The run.
    pub run: RunId,
    /// Where.
    pub scope: Scope,
    /// Of which workflow.
    pub workflow: WorkflowKey,
    /// What started it.
    pub invocation: Arc<Invocation>,
}

/// What the application-level authorize hook sees of a call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Gate {
    /// Run, step, actor, and whether the step resumes from its own wait.
    pub step: StepCx,
    /// The action.
    pub action: String,
    /// What it promises.
    pub class: EffectClass,
    /// The resolved config.
    pub input: Arc<Value>,
}

/// A value resolver's word that a value is not there yet: the step parks until the signal comes.
///
/// ```
/// use surefoot_kernel_core::Dependency;
/// use surefoot_worker::NotYet;
/// let answer: Result<Option<serde_json::Value>, Box<dyn std::error::Error + Send + Sync>> =
///     Err(Box::new(NotYet(Dependency::on("price", "bolt"))));
/// assert!(answer.unwrap_err().to_string().contains("price"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct NotYet(pub Dependency);

impl fmt::Display for NotYet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the value waits for `{}` of `{}`", self.0.kind(), self.0.key())
    }
}

impl StdError for NotYet {}

/// Puts a worker together. Made by [`Kernel::worker`].
#[must_use = "a worker builder does nothing until `build` or `start`"]
pub struct WorkerBuilder<S: TxStore> {
    kernel: Kernel<S>,
    modules: Vec<Arc<dyn Loaded<S::Tx>>>,
    name: Option<String>,
    slots: usize,
    lease: Duration,
    scan: Duration,
    values: Option<Values>,
    authorize: Option<Authorize>,
    bus: Option<Arc<dyn WakeBus>>,
    observers: Vec<Arc<dyn Trace>>,
    catch_up: Duration,
    misfire: Misfire,
    schedules: Option<Arc<dyn ScheduleStore>>,
    tree: Option<RunId>,
}

impl<S: TxStore> WorkerBuilder<S> {
    pub(crate) fn new(kernel: Kernel<S>) -> Self {
        Self {
            kernel,
            modules: Vec::new(),
            name: None,
            slots: SLOTS,
            lease: LEASE,
            scan: SCAN,
            values: None,
            authorize: None,
            bus: None,
            observers: Vec::new(),
            catch_up: CATCH_UP,
            misfire: Misfire::default(),
            schedules: None,
            tree: None,
        }
    }

    /// One more module, or another version of one that still has runs.
    pub fn module<B: RunsOn<S::Tx>>(mut self, module: Module<B>) -> Self {
        self.modules.push(Arc::new(module));
        self
    }

    /// What people see in the list of workers; by default the name of the program and its process id.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Runs at the same time in this process; 4 by default. Other processes add theirs.
    pub fn concurrency(mut self, slots: usize) -> Self {
        self.slots = slots;
        self
    }

    /// How long a run is this worker's without a sign of life; 120 s by default. It is renewed every third of that.
    /// After a crash, another worker takes a run over this much later.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How often it looks for work without being told of any; every second by default.
    pub fn scan_every(mut self, scan: Duration) -> Self {
        self.scan = scan;
        self
    }

    /// Where `cx.resolve(..)` takes values from: one resolver per claim, made when its first value is asked for. What it
    /// gives to a step is journaled, and not asked for again by a later attempt of that step.
    pub fn values<R: ValueResolver + 'static>(
        mut self,
        make: impl Fn(&Claim) -> R + Send + Sync + 'static,
    ) -> Self {
        self.values = Some(Arc::new(move |claim| Arc::new(make(claim))));
        self
    }

    /// Asked before the `authorize` of each action that is not pure.
    pub fn authorize<F, Fut>(mut self, authorize: F) -> Self
    where
        F: Fn(Gate) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ActionResult<Access>> + Send + 'static,
    {
        self.authorize = Some(Arc::new(move |gate| Box::pin(authorize(gate))));
        self
    }

    /// How old a slot of a schedule may be and still fire, after a time when no worker ran, and which of several such
    /// slots do; an hour and [`Misfire::Latest`] by default. Workers of one app should agree on it.
    pub fn catch_up(mut self, window: Duration, misfire: Misfire) -> Self {
        (self.catch_up, self.misfire) = (window, misfire);
        self
    }

    /// Fires the schedules of workflows by a scheduler on a coordination server, where people can look at them, pause
    /// them, ask for a run, and run what passed. While the server is away nothing fires, and what passed is caught up
    /// with. Without it, workers fire by themselves. Workers of one app should be given the same set.
    pub fn schedules(mut self, set: Arc<dyn ScheduleStore>) -> Self {
        self.schedules = Some(set);
        self
    }

    /// Works for one run and its descendants alone, and leaves every other run of the app to others: for a process that
    /// was started for this run, whose settings and secrets are nobody else's. It fires no schedules. The run must be the
    /// root of its tree, or nothing is taken.
    pub fn tree(mut self, root: RunId) -> Self {
        self.tree = Some(root);
        self
    }

    /// Carries wake-ups between processes. Without one, others find work by their scan.
    pub fn wake_bus(mut self, bus: impl WakeBus + 'static) -> Self {
        self.bus = Some(Arc::new(bus));
        self
    }

    /// Observes runs and steps, beside those that do already: `Metrics` is one that counts.
    pub fn trace(mut self, trace: impl Trace + 'static) -> Self {
        self.observers.push(Arc::new(trace));
        self
    }

    /// Checks the whole.
    ///
    /// # Errors
    /// No slots, a lease, a scan or a catch-up window out of range, a module that is loaded twice.
    pub fn build(self) -> Result<Worker, WorkerError> {
        if self.slots == 0 {
            return Err(WorkerError::NoSlots);
        }
        let (lease, scan) = (self.lease, self.scan);
        if !(Duration::from_millis(100)..=Duration::from_secs(86_400)).contains(&lease) {
            return Err(WorkerError::BadLease { got_ms: lease.as_millis() });
        }
        if !(Duration::from_millis(10)..=Duration::from_secs(60)).contains(&scan) {
            return Err(WorkerError::BadScan { got_ms: scan.as_millis() });
        }
        if self.catch_up > CATCH_UP_MAX {
            return Err(WorkerError::BadCatchUp { got_ms: self.catch_up.as_millis() });
        }
        self.check_modules()?;
        let settings = Settings {
            name: self.name.unwrap_or_else(process_name),
            // More permits than the runtime's semaphore can count are no slots that anybody could use.
            slots: self.slots.min(tokio::sync::Semaphore::MAX_PERMITS),
            lease: lease.into(),
            scan: scan.into(),
            values: self.values,
            authorize: self.authorize,
            bus: self.bus,
            observers: self.observers,
            catch_up: self.catch_up.into(),
            misfire: self.misfire,
            schedules: self.schedules.filter(|_| self.tree.is_none()),
            tree: self.tree,
        };
        Ok(Worker::new(Engine::new(self.kernel, settings, self.modules)))
    }

    /// [`WorkerBuilder::build`] and [`Worker::start`].
    ///
    /// # Errors
    /// As those.
    pub async fn start(self) -> Result<Running, WorkerError> {
        self.build()?.start().await
    }

    fn check_modules(&self) -> Result<(), WorkerError> {
        let mut seen = std::collections::BTreeSet::new();
        for module in &self.modules {
            let manifest = module.manifest();
            if !seen.insert((&manifest.id, manifest.version)) {
                let (id, version) = (manifest.id.clone(), manifest.version);
                return Err(WorkerError::SameModuleTwice { id, version });
            }
        }
        Ok(())
    }
}

pub(crate) fn process_name() -> String {
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(std::path::Path::file_stem);
    let program = program.map_or_else(|| "worker".into(), |stem| stem.to_string_lossy());
    format!("{program}:{}", std::process::id())
}
