//! Which calls of a store go wrong, and how.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use surefoot_kernel_core::{BoxFuture, Commit, Committed, StoreError};
use tokio::sync::watch;

use crate::Aside;

macro_rules! methods {
    ($($variant:ident = $name:literal $kind:ident),* $(,)?) => {
        /// A method of a store's ports.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Method {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Method {
            /// Every method.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// As the port calls it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Whether it changes what is stored.
            #[must_use]
            pub const fn is_write(self) -> bool {
                match self { $(Self::$variant => methods!(@$kind),)* }
            }

            /// Whether the keeper of leases calls it, in its own rhythm, whatever the runs do.
            #[must_use]
            pub const fn is_of_the_keeper(self) -> bool {
                matches!(self, Self::LeaseRenew | Self::CancelList)
            }
        }
    };
    (@write) => { true };
    (@read) => { false };
}

methods! {
    StoreNow = "store_now" read,
    RunClaim = "run_claim" write,
    RunLoad = "run_load" read,
    DryRunCreate = "dry_run_create" write,
    RunCommit = "run_commit" write,
    RunTakeOver = "run_take_over" write,
    LeaseRenew = "lease_renew" write,
    CancelList = "cancel_list" read,
    RunOpen = "run_open" read,
    RunRecover = "run_recover" write,
    WorkDue = "work_due" read,
    FootprintList = "footprint_list" read,
    SessionReport = "session_report" write,
    ChildrenCreate = "children_create" write,
    ChildrenRead = "children_read" read,
    ChildrenGroups = "children_groups" read,
    EventEmit = "event_emit" write,
    EventDispatch = "event_dispatch" write,
    SignalSend = "signal_send" write,
    VersionPublish = "version_publish" write,
    VersionActivate = "version_activate" write,
    ActivationSet = "activation_set" write,
    VersionLoad = "version_load" read,
    WorkflowList = "workflow_list" read,
    ScheduleList = "schedule_list" read,
    VersionList = "version_list" read,
    AppList = "app_list" read,
    RunList = "run_list" read,
    RunDetail = "run_detail" read,
    EffectList = "effect_list" read,
    EventList = "event_list" read,
    SignalList = "signal_list" read,
    SessionList = "session_list" read,
    AppHealth = "app_health" read,
    JournalList = "journal_list" read,
    RunTimeline = "run_timeline" read,
    StoreCheck = "store_check" read,
    AuditList = "audit_list" read,
    EventExpire = "event_expire" write,
    EventRedrive = "event_redrive" write,
    Prune = "prune" write,
    DeleteBegin = "delete_begin" write,
    DeletePass = "delete_pass" write,
    Begin = "begin" read,
    Commit = "commit" write,
    EventEmitIn = "event_emit_in" read,
    VersionPublishIn = "version_publish_in" read,
    SignalSendIn = "signal_send_in" read,
    ChildrenCreateIn = "children_create_in" read,
    RunTransact = "run_transact" write,
    TransactCommit = "transact_commit" read,
    FenceHold = "fence_hold" read,
    TaskOpen = "task_open" write,
    TaskFind = "task_find" read,
    TaskClaim = "task_claim" write,
    TaskKeep = "task_keep" write,
    TaskEnd = "task_end" write,
    TaskSweep = "task_sweep" write,
}

/// What goes wrong with one call. None of them panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The store cannot be reached: nothing happened, and the caller knows it.
    Unavailable,
    /// The database refused the transaction: nothing happened.
    Refused,
    /// Nothing happened, and the caller does not know (reads: the store cannot be reached).
    LostRequest,
    /// It happened, and the caller does not know (reads: the store cannot be reached).
    LostAnswer,
    /// The caller does not know, and it happens later: when this handle has taken over and looked. For `run_commit`; other
    /// calls are lost.
    ComesLate,
    /// The process dies before the call: nothing happens any more on this handle.
    DiesBefore,
    /// The process dies after the call: it happened, and nothing happens any more on this handle.
    DiesAfter,
}

/// Decides about each call when it comes: how long it takes, and what goes wrong with it.
pub(crate) trait Weather: Send + Sync + fmt::Debug {
    /// Completes when the call reaches the store. `nth` counts the calls of this method, from 1.
    fn before(&self, method: Method, nth: u64) -> BoxFuture<'_, Option<Fault>>;
    /// Completes when its answer reaches the caller.
    fn after(&self, method: Method, nth: u64) -> BoxFuture<'_, ()>;
}

/// Which calls go wrong. Clones are the same plan.
#[derive(Debug, Clone, Default)]
pub struct FaultPlan(Arc<Mutex<Script>>);

#[derive(Debug, Default)]
struct Script {
    faults: BTreeMap<(Method, u64), Fault>,
    every: BTreeMap<Method, Fault>,
    stops: BTreeMap<u64, Stop>,
    commit_stop: Option<CommitStop>,
    away: Range<u64>,
    calls: Vec<Method>,
    /// Calls that are not the keeper's.
    points: u64,
    counts: BTreeMap<Method, u64>,
    held: Option<u64>,
    facts_read: u64,
    late: Vec<Commit>,
    weather: Option<Arc<dyn Weather>>,
    aside: Option<Aside>,
    has_taken_over: bool,
    is_dead: bool,
}

impl FaultPlan {
    /// Nothing goes wrong.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing goes wrong, and every call is made aside.
    #[must_use]
    pub fn aside(aside: Aside) -> Self {
        let plan = Self::new();
        plan.script().aside = Some(aside);
        plan
    }

    /// Calls go through this weather.
    pub(crate) fn under(weather: Arc<dyn Weather>) -> Self {
        let plan = Self::new();
        plan.script().weather = Some(weather);
        plan
    }

    /// Has the `nth` call of a method go wrong, from 1, counted from the start.
    pub fn at(&self, method: Method, nth: u64, fault: Fault) {
        self.script().faults.insert((method, nth), fault);
    }

    /// Has each call of a method go wrong from now on; `None` ends that.
    pub fn every(&self, method: Method, fault: Option<Fault>) {
        let mut script = self.script();
        match fault {
            Some(fault) => script.every.insert(method, fault),
            None => script.every.remove(&method),
        };
    }

    /// Stops the `nth` of the [`points`](Self::points), from 1, counted from the start, until the test lets it go on.
    pub fn stop_at(&self, nth: u64, when: When) -> Stop {
        let stop = Stop::new(when);
        self.script().stops.insert(nth, stop.clone());
        stop
    }

    /// Stops the first commit, alone or of a transaction, of which this is true, until the test lets it go on. There is
    /// one such stop at a time; a later one replaces it.
    pub fn stop_at_commit(
        &self,
        is_it: impl Fn(&Commit) -> bool + Send + Sync + 'static,
        when: When,
    ) -> Stop {
        let stop = Stop::new(when);
        self.script().commit_stop = Some(CommitStop { is_it: Box::new(is_it), stop: stop.clone() });
        stop
    }

    pub(crate) fn stop_of(&self, commit: &Commit) -> Option<Stop> {
        let stop = self.script().commit_stop.take_if(|stop| (stop.is_it)(commit));
        stop.map(|stop| stop.stop)
    }

    /// Has the next calls, whatever they are, find no store; the keeper's are not counted.
    pub fn away_for(&self, calls: u64) {
        let mut script = self.script();
        let next = script.points.saturating_add(1);
        script.away = next..next.saturating_add(calls);
    }

    /// The process dies: nothing happens any more on this handle.
    pub fn kill(&self) {
        self.script().is_dead = true;
    }

    /// How often a method was called.
    #[must_use]
    pub fn count(&self, method: Method) -> u64 {
        self.script().counts.get(&method).copied().unwrap_or_default()
    }

    /// All calls, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Method> {
        self.script().calls.clone()
    }

    /// The calls that the course of a run decides, in order: all but the keeper's, which come whenever their time has
    /// come, under load in the middle of anything.
    #[must_use]
    pub fn points(&self) -> Vec<Method> {
        let is_point = |method: &Method| !method.is_of_the_keeper();
        self.script().calls.iter().copied().filter(is_point).collect()
    }

    /// Whether the process has died.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.script().is_dead
    }

    /// How many journaled facts were read by all calls so far.
    #[must_use]
    pub fn facts_read(&self) -> u64 {
        self.script().facts_read
    }

    pub(crate) fn read(&self, facts: usize) {
        let mut script = self.script();
        script.facts_read = script.facts_read.saturating_add(facts as u64);
    }

    /// The generation that the fence let through last.
    #[must_use]
    pub fn held_generation(&self) -> Option<u64> {
        self.script().held
    }

    pub(crate) fn held(&self, generation: u64) {
        self.script().held = Some(generation);
    }

    /// Starts the process anew.
    pub fn revive(&self) {
        self.script().is_dead = false;
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call, and says what goes wrong with it, and whether it is to stop.
    fn called(&self, method: Method) -> (Option<Fault>, Option<Stop>) {
        let mut script = self.script();
        if script.is_dead {
            return (Some(Fault::Unavailable), None);
        }
        script.calls.push(method);
        let point = script.points.saturating_add(1);
        let count = script.counts.entry(method).or_default();
        *count += 1;
        let nth = *count;
        let fault = script.faults.get(&(method, nth)).or(script.every.get(&method)).copied();
        let away = script.away.contains(&point).then_some(Fault::Unavailable);
        script.is_dead = matches!(fault, Some(Fault::DiesBefore | Fault::DiesAfter));
        if method.is_of_the_keeper() {
            return (fault.or(away), None);
        }
        script.points = point;
        (fault.or(away), script.stops.remove(&point))
    }

    pub(crate) fn took_over(&self) {
        self.script().has_taken_over = true;
    }

    /// Commits that come now, since the caller has looked.
    pub(crate) fn late(&self) -> Vec<Commit> {
        let mut script = self.script();
        if script.has_taken_over { std::mem::take(&mut script.late) } else { Vec::new() }
    }

    /// A commit, which may come late.
    pub(crate) async fn commit_through(
        &self,
        commit: Commit,
        call: impl Future<Output = Result<Committed, StoreError>> + Send,
    ) -> Result<Committed, StoreError> {
        self.through_or(Method::RunCommit, call, |fault| {
            if fault == Fault::ComesLate {
                self.script().late.push(commit);
            }
        })
        .await
    }

    pub(crate) async fn through<T, E: From<StoreError>>(
        &self,
        method: Method,
        call: impl Future<Output = Result<T, E>> + Send,
    ) -> Result<T, E> {
        self.through_or(method, call, |_| ()).await
    }

    async fn through_or<T, E: From<StoreError>>(
        &self,
        method: Method,
        call: impl Future<Output = Result<T, E>> + Send,
        prevented: impl FnOnce(Fault) + Send,
    ) -> Result<T, E> {
        let (fault, stop) = self.called(method);
        let nth = self.count(method);
        let aside = self.script().aside.clone();
        // Futures of stores are large, and this one is held by several others.
        let call = Box::pin(call);
        let call = async move {
            match aside {
                Some(aside) => aside.call(call).await,
                None => call.await,
            }
        };
        let weather = self.script().weather.clone();
        let Some(weather) = weather else {
            return self.carry(method, (fault, stop), call, prevented).await;
        };
        let blown = weather.before(method, nth).await;
        // It may have died while the call was under way.
        let dead = self.is_dead().then_some(Fault::Unavailable);
        if matches!(blown, Some(Fault::DiesBefore | Fault::DiesAfter)) {
            self.kill();
        }
        let fault = dead.or(fault).or(blown);
        let answer = self.carry(method, (fault, stop), call, prevented).await;
        weather.after(method, nth).await;
        answer
    }

    async fn carry<T, E: From<StoreError>>(
        &self,
        method: Method,
        (mut fault, stop): (Option<Fault>, Option<Stop>),
        call: impl Future<Output = Result<T, E>> + Send,
        prevented: impl FnOnce(Fault) + Send,
    ) -> Result<T, E> {
        if let Some(stop) = stop {
            if stop.when == When::After {
                let answer = call.await;
                let fault = stop.wait().await;
                return fault.map_or(answer, |fault| Err(error(fault, method).into()));
            }
            fault = stop.wait().await;
        }
        let Some(fault) = fault else { return call.await };
        if matches!(fault, Fault::LostAnswer | Fault::DiesAfter) {
            call.await?;
        } else {
            prevented(fault);
        }
        Err(error(fault, method).into())
    }
}

/// A stop at a commit of a kind.
struct CommitStop {
    is_it: Box<dyn Fn(&Commit) -> bool + Send + Sync>,
    stop: Stop,
}

impl fmt::Debug for CommitStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stop.fmt(f)
    }
}

/// On which side of a call it stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Before anything happened.
    Before,
    /// After it happened, before the caller hears of it.
    After,
}

/// A call that stops in its middle, so that a test can look and act there. Clones are the same stop.
#[derive(Debug, Clone)]
pub struct Stop {
    when: When,
    reached: Arc<watch::Sender<bool>>,
    end: Arc<watch::Sender<Option<Option<Fault>>>>,
}

impl Stop {
    fn new(when: When) -> Self {
        Self { when, reached: Arc::default(), end: Arc::default() }
    }

    /// Completes once the call has got there. Cancel safe.
    pub async fn reached(&self) {
        let mut reached = self.reached.subscribe();
        // The sender is part of this value: it cannot be gone.
        let _ = reached.wait_for(|reached| *reached).await;
    }

    /// Lets the call go on as if nothing had been, or with a fault. After the call, any fault is only in the answer.
    pub fn go_on(&self, fault: Option<Fault>) {
        self.end.send_replace(Some(fault));
    }

    /// Stops on this side, and fails if the test says so.
    pub(crate) async fn on(
        stop: Option<&Self>,
        when: When,
        method: Method,
    ) -> Result<(), StoreError> {
        let Some(stop) = stop.filter(|stop| stop.when == when) else { return Ok(()) };
        stop.wait().await.map_or(Ok(()), |fault| Err(error(fault, method)))
    }

    async fn wait(&self) -> Option<Fault> {
        self.reached.send_replace(true);
        let mut end = self.end.subscribe();
        end.wait_for(Option::is_some).await.ok().and_then(|end| *end).flatten()
    }
}

fn error(fault: Fault, method: Method) -> StoreError {
    let source = |what: &str| format!("{what} at `{}`, by a test", method.as_str()).into();
    match fault {
        Fault::Refused => StoreError::TransactionConflict(source("a refusal")),
        Fault::LostRequest | Fault::LostAnswer | Fault::ComesLate if method.is_write() => {
            StoreError::UnknownOutcome(source("a lost answer"))
        }
        Fault::Unavailable
        | Fault::LostRequest
        | Fault::LostAnswer
        | Fault::ComesLate
        | Fault::DiesBefore
        | Fault::DiesAfter => StoreError::Unavailable(source("a lost connection")),
    }
}
