//! What a worker does: claim, keep leases, recover, and drive runs.

mod claimer;
pub(crate) mod driver;
mod footprints;
pub(crate) mod hold;
pub(crate) mod keeper;
pub(crate) mod life;
mod lru;
pub(crate) mod pace;
pub(crate) mod panics;
mod pass;
mod recovery;
mod schedules;
pub(crate) mod session;
pub(crate) mod shift;
mod triggers;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::{
    ChildStore, Eager, Held, Measure, Micros, Plans, Run, RunId, Stored, Timestamp, Trace, TxStore,
    VersionId, WakeBus,
};
use surefoot_language::Loaded;
use surefoot_sync_core::ScheduleStore;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::Kernel;
use crate::Misfire;
use crate::builder::{Authorize, Values};
pub(crate) use claimer::left_of_leases;
use driver::{Left, LoadedPlan};
use footprints::Footprints;
use keeper::Rhythm;
pub use life::LoopHealth;
use lru::Lru;
use pace::plus;
use panics::{caught, caught_call};
pub(crate) use session::start;
use shift::HoldGuard;
pub(crate) use shift::{Phase, Shift};

/// Folded runs that are kept in case they come back.
const HELD_MAX: usize = 256;
/// Bytes of journal behind them.
const HELD_MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Plans that are kept.
const PLANS_MAX: usize = 256;
/// Slots that one emit may reserve: an event seldom starts more runs.
const EAGER_MAX: usize = 4;

/// How a worker was built.
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) slots: usize,
    pub(crate) lease: Micros,
    pub(crate) scan: Micros,
    pub(crate) values: Option<Values>,
    pub(crate) authorize: Option<Authorize>,
    pub(crate) bus: Option<Arc<dyn WakeBus>>,
    pub(crate) observers: Vec<Arc<dyn Trace>>,
    pub(crate) catch_up: Micros,
    pub(crate) misfire: Misfire,
    /// The root of the only tree that it works for.
    pub(crate) tree: Option<RunId>,
    /// Where schedules are kept besides the store, if anywhere.
    pub(crate) schedules: Option<Arc<dyn ScheduleStore>>,
}

/// A worker on a store.
pub(crate) struct Engine<S: TxStore> {
    pub(crate) kernel: Kernel<S>,
    pub(crate) settings: Settings,
    /// The store, as contexts of hooks have it.
    children: Arc<dyn ChildStore>,
    modules: Vec<Arc<dyn Loaded<S::Tx>>>,
    footprints: Footprints,
    slots: Arc<Semaphore>,
    held: Mutex<Lru<RunId, Cached<S::Tx>>>,
    plans: Mutex<Lru<VersionId, Arc<LoadedPlan<S::Tx>>>>,
    /// The plans of these, for stores.
    known: Mutex<Plans>,
    /// The session of a started worker.
    started: Mutex<Weak<Shift>>,
    /// The session of bounded passes.
    ticking: OnceLock<Arc<Shift>>,
    /// Tells other processes, over the bus.
    announce: Notify,
    /// A version was published here: its schedules are looked at.
    published: Notify,
    fired: Mutex<schedules::Fired>,
}

/// A folded run, in case it comes back.
pub(crate) struct Cached<Tx> {
    held: Held,
    plan: Arc<LoadedPlan<Tx>>,
}

impl<S: TxStore> Engine<S> {
    pub(crate) fn new(
        kernel: Kernel<S>,
        settings: Settings,
        modules: Vec<Arc<dyn Loaded<S::Tx>>>,
    ) -> Arc<Self> {
        let offers = modules.iter().map(|module| module.footprint().clone()).collect();
        let engine = Arc::new(Self {
            footprints: Footprints::new(offers),
            children: Arc::new(kernel.store().clone()),
            slots: Arc::new(Semaphore::new(settings.slots)),
            held: Mutex::new(Lru::new(HELD_MAX, HELD_MAX_BYTES)),
            plans: Mutex::new(Lru::new(PLANS_MAX, u64::MAX)),
            known: Mutex::default(),
            started: Mutex::default(),
            ticking: OnceLock::new(),
            announce: Notify::new(),
            published: Notify::new(),
            fired: Mutex::default(),
            kernel,
            settings,
            modules,
        });
        engine.kernel.local().add(&engine);
        engine
    }

    fn started(&self) -> Option<Arc<Shift>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Something may be ready to claim; `recover` if recovery has something to do as well.
    pub(crate) fn wake(&self, recover: bool) {
        if let Some(shift) = self.started() {
            shift.claim.notify_one();
            if recover {
                shift.recover.notify_one();
            }
        }
        self.announce.notify_one();
    }

    pub(crate) fn learn(&self, footprint: &Footprint) {
        self.footprints.learn(footprint);
        self.published.notify_one();
    }

    pub(crate) fn cancel(&self, run: RunId) {
        let shifts = [self.started(), self.ticking.get().cloned()];
        shifts.into_iter().flatten().for_each(|shift| shift.cancel(run));
    }

    /// Whether a session of this worker works on the run.
    pub(crate) fn holds(&self, run: RunId) -> bool {
        let shifts = [self.started(), self.ticking.get().cloned()];
        shifts.into_iter().flatten().any(|shift| shift.holds_run(run))
    }

    /// The module that runs a plan with this footprint; the newest version, if several can.
    fn module_for(&self, footprint: &Footprint) -> Option<Arc<dyn Loaded<S::Tx>>> {
        let can = |module: &&Arc<dyn Loaded<S::Tx>>| footprint.is_contained_in(module.footprint());
        self.modules.iter().filter(can).max_by_key(|module| module.manifest().version).cloned()
    }

    fn keep_plan(&self, version: VersionId, plan: Arc<LoadedPlan<S::Tx>>) {
        {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            // Starting afresh now and then costs those that are forgotten a commit more for one run.
            let others = if known.len() < PLANS_MAX { known.clone() } else { Plans::default() };
            *known = others.with(version, plan.plan.clone());
        }
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.put(version, plan, 1);
    }

    /// What has been read of plans.
    fn known_plans(&self) -> Plans {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Free slots, as many as there are, up to a limit.
    fn take_slots(&self, most: usize) -> Option<OwnedSemaphorePermit> {
        loop {
            let free = self.slots.available_permits().min(most);
            let wanted = u32::try_from(free).ok().filter(|free| *free > 0)?;
            // Somebody else may have been faster: then fewer are asked for.
            if let Ok(permit) = self.slots.clone().try_acquire_many_owned(wanted) {
                return Some(permit);
            }
        }
    }

    /// Slots for runs that an emit starts as running. Only where the worker has nothing better to do.
    pub(crate) fn reserve(self: &Arc<Self>) -> Option<Reserved<S>> {
        let shift = self.started()?;
        // What an event starts is no part of a tree that is there already.
        let is_for_others = self.settings.tree.is_some();
        if is_for_others || shift.phase() != Phase::Working || shift.is_full.load(Ordering::Relaxed)
        {
            return None;
        }
        let footprints = self.footprints.claimable();
        if footprints.is_empty() {
            return None;
        }
        // Others who emit at the same time want some too.
        let share = (self.slots.available_permits() / 4).clamp(1, EAGER_MAX);
        let slots = self.take_slots(share)?;
        let eager = Eager {
            session: shift.session,
            footprints,
            slots: u32::try_from(slots.num_permits()).unwrap_or(u32::MAX),
            lease: self.settings.lease,
            plans: self.known_plans(),
        };
        let asked = shift.now();
        Some(Reserved { engine: self.clone(), shift, slots: Some(slots), eager, asked })
    }

    /// Drives claimed runs on these slots; slots that are left over are free again. `lease` is from when on they are held, and
    /// how long at least.
    fn launch(
        self: &Arc<Self>,
        shift: &Arc<Shift>,
        runs: Vec<Taken>,
        mut slots: OwnedSemaphorePermit,
        lease: (Micros, Micros),
    ) -> Vec<Launched<S>> {
        let launched = runs.into_iter().map(|taken| Launched {
            engine: self.clone(),
            shift: shift.clone(),
            guard: shift.hold(taken.run().id, taken.run().generation, lease),
            // A claim that was lost and found again may bring more runs than there are slots: none is left alone.
            slot: slots.split(1),
            taken,
        });
        launched.collect()
    }

    fn rhythm(&self) -> Rhythm {
        Rhythm { lease: self.settings.lease, scan: self.settings.scan }
    }

    fn observe(&self, call: impl Fn(&dyn Trace)) {
        for trace in &self.settings.observers {
            if let Err(panicked) = caught_call(|| call(&**trace)) {
                tracing::warn!(panicked = panicked.0, "a trace observer panicked; nothing changes");
            }
        }
    }

    fn measure(&self, measure: Measure) {
        self.observe(|trace| trace.measured(measure));
    }
}

/// Slots that an emit may use.
pub(crate) struct Reserved<S: TxStore> {
    engine: Arc<Engine<S>>,
    shift: Arc<Shift>,
    slots: Option<OwnedSemaphorePermit>,
    eager: Eager,
    asked: Micros,
}

impl<S: TxStore> Reserved<S> {
    pub(crate) const fn eager(&self) -> &Eager {
        &self.eager
    }

    /// Drives what was started.
    pub(crate) fn start(mut self, runs: Vec<Stored>) {
        if let Some(slots) = self.slots.take() {
            let asked = self.asked;
            let lease = (asked, plus(asked, self.eager.lease));
            let runs = runs.into_iter().map(|stored| Taken::new(stored, asked)).collect();
            let launched = self.engine.launch(&self.shift, runs, slots, lease);
            launched.into_iter().for_each(Launched::spawn);
        }
    }

    /// Whether a run was started for this reservation and nobody works on it: the answer that said so was lost.
    pub(crate) fn is_orphan(&self, run: &Run) -> bool {
        let is_ours = run.lease().is_some_and(|lease| lease.owner == self.shift.session);
        is_ours && run.attempt == 1 && !self.shift.holds_run(run.id)
    }
}

impl<S: TxStore> Drop for Reserved<S> {
    /// What was not used is free again; the claimer may have wanted it.
    fn drop(&mut self) {
        drop(self.slots.take());
        if self.shift.is_full.load(Ordering::Relaxed) {
            self.shift.claim.notify_one();
        }
    }
}

/// A run that this worker has got, as far as that brought it; it was asked for then.
pub(crate) struct Taken {
    stored: Box<Stored>,
    asked: Micros,
}

impl Taken {
    fn new(stored: Stored, asked: Micros) -> Self {
        Self { stored: Box::new(stored), asked }
    }

    const fn run(&self) -> &Run {
        &self.stored.run
    }
}

/// A run that is held, and not driven yet.
struct Launched<S: TxStore> {
    engine: Arc<Engine<S>>,
    shift: Arc<Shift>,
    guard: HoldGuard,
    slot: Option<OwnedSemaphorePermit>,
    taken: Taken,
}

impl<S: TxStore> Launched<S> {
    fn spawn(self) {
        tokio::spawn(self.drive());
    }

    /// Drives the run to wherever it stops, and lets go of it.
    async fn drive(self) {
        let Self { engine, shift, guard, slot, taken } = self;
        let (id, generation) = (taken.run().id, taken.run().generation);
        engine.observe(|trace| trace.run_started(id, generation));
        if let Some(lag) = taken.run().first_lag() {
            engine.measure(Measure::FirstTaken { lag });
        }
        let driven = driver::drive(engine.clone(), shift.clone(), guard.hold().clone(), taken);
        let left = match caught(driven).await {
            Ok(left) => left,
            Err(panicked) => Left::LetGo(format!("the driver panicked: {}", panicked.0)),
        };
        drop(guard);
        drop(slot);
        let mut is_ready = false;
        match left {
            Left::Stored(run, now) => {
                engine.observe(|trace| trace.run_finished(id, run.state()));
                engine.kernel.local().run_left(&run);
                // Its end may have woken its parent, or let a sibling go.
                if run.origin.parent.is_some() && run.state().is_terminal() {
                    engine.wake(false);
                }
                is_ready = run.claimable_at().is_some_and(|at: Timestamp| at <= now);
            }
            Left::Lost => tracing::debug!(run = %id, generation, "another worker has the run"),
            Left::LetGo(why) => {
                tracing::info!(run = %id, generation, why, "the run is left until its lease ends");
            }
        }
        if is_ready || shift.is_full.load(Ordering::Relaxed) {
            shift.claim.notify_one();
        }
    }
}
