//! Whole workflows in a test: publish, crash where it hurts, let days pass in no time, look at the end.

mod end;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{
    Commit, Dependency, Event, Fact, LoadRequest, Micros, PassTime, Run, RunFilter, RunId, Signal,
    StepKey, StoreError, Stored, TxStore, VersionId,
};
use surefoot_language::{Manifest, Module, RunsOn};
use surefoot_worker::{Kernel, Publication, Scoped, Tick, WorkerError};

use crate::living::{Awaits, LEASE, Living, sum, until};
use crate::{FaultPlan, FaultyStore, MemoryStore, MemoryTx, SeqIds, VirtualClock, When};
pub use end::{End, StepEnd};

const APP: &str = "bench";
const SCOPE: &str = "bench";
/// A run that does not rest after so many moves never will.
const MOVES_MAX: u32 = 10_000;

/// Where a process dies. Another one goes on after its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Crash {
    /// The call of this ambiguous action is marked, and not made.
    AfterMarkOf(&'static str),
    /// This action has acted, and its outcome is not recorded.
    AfterEffectOf(&'static str),
    /// The outcome of this action is recorded, and the process does not hear of it.
    AfterOutcomeOf(&'static str),
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AfterMarkOf(action) => write!(f, "after the mark of `{action}`"),
            Self::AfterEffectOf(action) => write!(f, "after the effect of `{action}`"),
            Self::AfterOutcomeOf(action) => write!(f, "after the outcome of `{action}`"),
        }
    }
}

impl Crash {
    const fn when(&self) -> When {
        match self {
            Self::AfterEffectOf(_) => When::Before,
            Self::AfterMarkOf(_) | Self::AfterOutcomeOf(_) => When::After,
        }
    }

    /// Whether the fact is the one at which it happens.
    fn is_at(&self, fact: &Fact, plan: &Plan) -> bool {
        match self {
            Self::AfterMarkOf(wanted) => {
                matches!(fact, Fact::CallMarked { action, .. } if action == wanted)
            }
            Self::AfterEffectOf(wanted) | Self::AfterOutcomeOf(wanted) => {
                outcome_of(fact).is_some_and(|step| action_of(plan, step) == Some(wanted))
            }
        }
    }
}

/// The step whose call has come back, with whatever.
fn outcome_of(fact: &Fact) -> Option<&StepKey> {
    match fact.ended_step() {
        Some((step, _)) => Some(step),
        None => {
            if let Fact::OutcomeUnknown { step, .. } = fact {
                Some(step)
            } else {
                None
            }
        }
    }
}

/// The name of the action that a step calls.
fn action_of<'p>(plan: &'p Plan, step: &StepKey) -> Option<&'p str> {
    plan.step(step)?.action()
}

/// What came of one pass of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Died,
    Idle,
    Worked,
}

#[derive(Debug, Default)]
struct Script {
    crashes: VecDeque<Crash>,
    /// By kind and key.
    signals: BTreeMap<(String, String), Signal>,
}

type Plans = BTreeMap<VersionId, Plan>;

type Start<S> =
    dyn Fn(FaultyStore<S>, &VirtualClock, &SeqIds) -> Result<Living<S>, WorkerError> + Send + Sync;

/// A module on a store, for tests of whole workflows.
///
/// Time passes by itself: whenever the run waits (for a deadline, a backoff, the lease of a process that died), the
/// store's clock and the worker's are moved on by what is missing. Sleeps inside actions are tokio's; they pass at once
/// in a test with `#[tokio::test(start_paused = true)]`, which suits stores in memory.
///
/// ```
/// use surefoot_kernel_core::{Event, RunState};
/// use surefoot_language::{Module, Planned};
/// use surefoot_testkit::{Bench, Crash};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Order { item: String }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let module = Module::builder("shop", 1)
///     .idempotent_fn(
///         "mail",
///         |order: &Order| Planned::new(format!("Order {}", order.item)),
///         async |_, order: Order| Ok(format!("ordered {}", order.item)),
///     )
///     .build()?;
/// let bench = Bench::in_memory(module);
/// bench.publish("reorder", "
/// steps:
///   - mail: { item: bolt }
///   - delay: { for: 3d }
///   - waitFor: { kind: approval, key: bolt }
/// ").await;
/// bench.crash(Crash::AfterEffectOf("mail")).signal_when_waiting("approval", "bolt", true);
/// let end = bench.run_to_end(Event::start("reorder", serde_json::json!({}))).await;
/// assert_eq!(end.state, RunState::Succeeded, "{}", end.explain());
/// assert_eq!(end.step("mail").output::<String>(), "ordered bolt");
/// # Ok(()) }
/// ```
pub struct Bench<S: TxStore + PassTime> {
    kernel: Kernel<S>,
    clock: VirtualClock,
    ids: SeqIds,
    manifest: Manifest,
    start: Box<Start<S>>,
    script: Mutex<Script>,
}

impl Bench<MemoryStore> {
    /// A module that names no store, on one in memory.
    #[must_use]
    pub fn in_memory<B: RunsOn<MemoryTx>>(module: Module<B>) -> Self {
        Self::on(MemoryStore::new(), module)
    }
}

impl<S: TxStore + PassTime> Bench<S> {
    /// A module on a store of its kind, as an app of its own.
    #[must_use]
    pub fn on<B: RunsOn<S::Tx>>(store: S, module: Module<B>) -> Self {
        // Several benches may share a store.
        let (clock, ids) = (VirtualClock::default(), SeqIds::apart());
        let manifest = module.manifest().clone();
        let start = move |store: FaultyStore<S>, clock: &VirtualClock, ids: &SeqIds| {
            Living::start(APP, store, clock, ids, module.clone())
        };
        let builder = Kernel::builder(APP, store);
        let kernel = builder.clock(clock.clone()).ids(ids.clone()).build();
        let (start, script) = (Box::new(start), Mutex::default());
        Self { kernel, clock, ids, manifest, start, script }
    }

    /// The application's handle on the store: nothing happens to it.
    #[must_use]
    pub fn kernel(&self) -> &Kernel<S> {
        &self.kernel
    }

    /// The scope that the bench works in.
    #[must_use]
    pub fn scope(&self) -> Scoped<S> {
        self.kernel.scope(SCOPE)
    }

    /// Publishes a workflow.
    ///
    /// # Panics
    /// With every finding, if the source does not compile.
    pub async fn publish(&self, workflow: &str, source: &str) -> &Self {
        self.publish_as(Publication::new(workflow, source)).await
    }

    /// Publishes a workflow with all that a publication can say.
    ///
    /// # Panics
    /// With every finding, if the source does not compile.
    pub async fn publish_as(&self, publication: Publication) -> &Self {
        let published = self.scope().publish(&self.manifest, publication).await;
        published.unwrap_or_else(|wrong| fail(&format!("the workflow is not published: {wrong}")));
        self
    }

    /// Has the process die there, once. Several happen in this order, each to the next process.
    pub fn crash(&self, crash: Crash) -> &Self {
        self.script().crashes.push_back(crash);
        self
    }

    /// Sends a signal in the run's scope as soon as the run waits for it.
    pub fn signal_when_waiting(&self, kind: &str, key: &str, data: impl Serialize) -> &Self {
        let signal = Signal::new(kind, key).data(data);
        self.script().signals.insert((kind.to_owned(), key.to_owned()), signal);
        self
    }

    /// Emits an event and drives its run, and the children that it starts, until it rests: it has ended, needs a person,
    /// waits without a deadline for a signal that nobody sends, or is due and not claimed, since the module lacks
    /// something; or it waits for children that rest.
    ///
    /// # Panics
    /// If the event does not start exactly one run, the run does not rest, a crash never came, or the store fails.
    pub async fn run_to_end(&self, event: Event) -> End {
        let emitted = self.scope().emit(event).await;
        let emission =
            emitted.unwrap_or_else(|wrong| fail(&format!("nothing is emitted: {wrong}")));
        let [run] = emission.runs[..] else {
            fail(&format!("the event starts {} runs, not one", emission.runs.len()));
        };
        self.go_on(run).await
    }

    /// Drives a run that exists already until it rests.
    ///
    /// # Panics
    /// As [`Bench::run_to_end`].
    pub async fn go_on(&self, run: RunId) -> End {
        self.to_rest(run).await;
        if let Some(crash) = self.script().crashes.front() {
            fail(&format!("the process was to die {crash}, and the run did not come there"));
        }
        End::read(self.kernel.store(), run).await
    }

    async fn to_rest(&self, run: RunId) {
        let plans = Arc::new(self.plans().await);
        let mut living = self.living();
        for _ in 0..MOVES_MAX {
            let passed = self.pass(&living, &plans).await;
            if passed == Pass::Died {
                drop(living);
                living = self.living();
                self.let_pass(sum(LEASE, Micros::from_millis(1)));
                continue;
            }
            let Some(span) = self.look(run, passed).await else { return };
            self.let_pass(span);
        }
        fail(&format!("the run does not rest: {:?}", self.load(run).await.run));
    }

    /// How long nothing will happen to the run and its children; absent if nothing ever will. What the test sends to
    /// them is sent.
    async fn look(&self, run: RunId, passed: Pass) -> Option<Micros> {
        let Stored { run, now, .. } = self.load(run).await;
        if matches!(Awaits::of(&run), Awaits::Nothing | Awaits::Person) {
            return None;
        }
        // Who has worked may have woken another one.
        let mut spans = Vec::new();
        if passed == Pass::Worked {
            spans.push(Micros::from_millis(1));
        }
        for run in self.tree_of(run).await {
            match Awaits::of(&run) {
                Awaits::Nothing | Awaits::Person => {}
                // Until a sibling has ended.
                Awaits::Worker(_) if run.is_held() => {}
                // The module lacks something for it.
                Awaits::Worker(Some(from)) if from <= now && passed == Pass::Idle => {}
                Awaits::Worker(from) => spans.push(until(from, now)),
                Awaits::Signal { on, deadline } => {
                    if let Some(signal) = on.and_then(|on| self.signal_for(on)) {
                        let sent = self.scope().signal(signal).await;
                        sent.unwrap_or_else(|wrong| fail(&format!("no signal is sent: {wrong}")));
                        return Some(Micros::ZERO);
                    }
                    spans.extend(deadline.map(|deadline| until(Some(deadline), now)));
                }
            }
        }
        spans.into_iter().min()
    }

    /// The run, and those below it that have not ended.
    async fn tree_of(&self, root: Run) -> Vec<Run> {
        let (mut tree, mut open) = (Vec::new(), vec![root]);
        while let Some(run) = open.pop() {
            let mut filter = RunFilter {
                app: Some(run.origin.app.clone()),
                parent: Some(run.id),
                limit: 1_000,
                ..RunFilter::default()
            };
            tree.push(run);
            loop {
                let page = self.kernel.store().run_list(filter.clone()).await;
                let page = page.unwrap_or_else(|wrong| fail(&format!("no run is read: {wrong}")));
                let children = page.rows.into_iter().map(|row| row.run);
                open.extend(children.filter(|child| !child.state().is_terminal()));
                let Some(next) = page.next else { break };
                filter.cursor = Some(next);
            }
        }
        tree
    }

    async fn pass(&self, living: &Living<S>, plans: &Arc<Plans>) -> Pass {
        let crash = self.script().crashes.front().cloned();
        let stop = crash.map(|crash| {
            let (when, plans) = (crash.when(), plans.clone());
            let is_it = move |commit: &Commit| {
                let plan = plans.get(&commit.after.origin.version);
                plan.is_some_and(|plan| facts_of(commit).iter().any(|fact| crash.is_at(fact, plan)))
            };
            living.kernel.store().plan().stop_at_commit(is_it, when)
        });
        let dies = async {
            match &stop {
                Some(stop) => stop.reached().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = dies => {
                self.script().crashes.pop_front();
                Pass::Died
            }
            ticked = living.worker.tick(Tick::max_runs(1)) => {
                let ticked =
                    ticked.unwrap_or_else(|wrong| fail(&format!("the worker fails: {wrong}")));
                if ticked.runs.is_empty() { Pass::Idle } else { Pass::Worked }
            }
        }
    }

    fn living(&self) -> Living<S> {
        let store = FaultyStore::new(self.kernel.store().clone(), FaultPlan::new());
        let started = (self.start)(store, &self.clock, &self.ids);
        started.unwrap_or_else(|wrong| fail(&format!("the worker does not start: {wrong}")))
    }

    fn let_pass(&self, span: Micros) {
        self.kernel.store().pass_time(span);
        self.clock.advance(span);
    }

    fn signal_for(&self, on: &Dependency) -> Option<Signal> {
        let waited_for = (on.kind().to_owned(), on.key().to_owned());
        self.script().signals.get(&waited_for).cloned()
    }

    async fn load(&self, run: RunId) -> Stored {
        let loaded = self.kernel.store().run_load(LoadRequest { run, after: None }).await;
        let loaded = loaded.unwrap_or_else(|wrong| fail(&format!("{run} is not read: {wrong}")));
        loaded.unwrap_or_else(|| fail(&format!("{run} is gone")))
    }

    /// The plans of all versions: a child runs one of another workflow.
    async fn plans(&self) -> Plans {
        let (store, app) = (self.kernel.store(), self.kernel.app());
        let unread = |wrong: StoreError| -> ! { fail(&format!("no version is read: {wrong}")) };
        let mut plans = Plans::new();
        for row in store.workflow_list(app, None).await.unwrap_or_else(|wrong| unread(wrong)) {
            let versions = store.version_list(app, &row.scope, &row.workflow).await;
            for version in versions.unwrap_or_else(|wrong| unread(wrong)) {
                let id = version.version;
                let stored = store.version_load(id).await.unwrap_or_else(|wrong| unread(wrong));
                let text = stored.map(|stored| stored.plan).unwrap_or_default();
                let plan = from_stored(&text);
                let no_plan = |wrong| fail(&format!("no plan in {id}: {wrong}"));
                plans.insert(id, plan.unwrap_or_else(no_plan));
            }
        }
        plans
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: TxStore + PassTime> fmt::Debug for Bench<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("module", &self.manifest.id).finish_non_exhaustive()
    }
}

fn facts_of(commit: &Commit) -> Vec<Fact> {
    let Some(journal) = &commit.journal else { return Vec::new() };
    from_stored(&journal.facts).unwrap_or_default()
}

#[expect(clippy::panic, reason = "an assertion of the test that uses the bench")]
#[track_caller]
fn fail(what: &str) -> ! {
    panic!("{what}")
}
