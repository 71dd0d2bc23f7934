//! One case: a new world, one trouble, and everything until the run rests.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use surefoot_kernel_core::{
    App, Attention, Commit, Event, Ids, LoadRequest, Micros, OperatorStore, Phase, PlanStore,
    Publish, RowInput, Run, RunFilter, RunId, RunStore, StepKey, Timestamp, Verdict, decide_row,
};
use surefoot_language::{Bindings, compile_and_bind};
use surefoot_worker::Tick;

use super::plan::{Kind, Trouble};
use super::process::{APP, Life, Process};
use super::provider::{Did, Entry, Provider};
use super::tree::Tree;
use super::{LEASE, Scenario};
use crate::living::{Awaits, sum, until};
use crate::suite::{StoreFactory, check_invariants};
use crate::{Method, SeqIds};

const SCOPE: &str = "matrix";
/// A run that does not rest after so many rounds never will.
const ROUNDS_MAX: u32 = 300;
/// No run that could go on is left alone for longer: the longest backoff, and a little.
const IDLE_MAX: Micros = Micros::from_secs(301);
/// Calls that find no store while it is away.
const CALLS_AWAY: u64 = 2;

/// What a case showed.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) tree: Tree,
    /// Steps have their names in the tree.
    pub(super) log: Vec<Entry>,
    /// Rows that transactional steps wrote and that are there.
    pub(super) rows: BTreeSet<String>,
    /// Calls of the first process, without the keeper's.
    pub(super) calls: Vec<Method>,
    /// What there was at the moment of the trouble.
    pub(super) before: Moment,
    /// A run stood before a person, for the effect of this step.
    pub(super) attention: Option<StepKey>,
}

/// How far things were at one moment.
#[derive(Debug, Default)]
pub(super) struct Moment {
    pub(super) tree: Tree,
    /// Lines of the provider's log.
    pub(super) log: usize,
}

/// Where the runs rest.
enum Rest {
    Ended,
    Attention,
}

pub(super) struct Case<F: StoreFactory, S: Scenario<F>> {
    scenario: Arc<S>,
    trouble: Option<Trouble>,
    _factory: std::marker::PhantomData<fn() -> F>,
}

impl<F: StoreFactory, S: Scenario<F>> Case<F, S> {
    pub(super) fn new(scenario: Arc<S>, trouble: Option<Trouble>) -> Self {
        Self { scenario, trouble, _factory: std::marker::PhantomData }
    }

    pub(super) async fn run(self) -> Result<Seen, String> {
        let stage = Stage::<F, S>::new(self.scenario).await?;
        let first = stage.start().await?;
        let process = first.process.clone();
        let (before, life) = match self.trouble {
            None => (Moment::default(), first),
            Some(trouble) => stage.suffer(first, trouble).await?,
        };
        let mut attention = None;
        if let Rest::Attention = stage.live(&life).await? {
            attention = Some(stage.say_that_nothing_happened().await?);
            if let Rest::Attention = stage.live(&life).await? {
                return Err("it needs a person a second time".to_owned());
            }
        }
        check_invariants(&stage.clean).await;
        stage.seen(before, attention, process.faults().points()).await
    }
}

/// The world of one case.
struct Stage<F: StoreFactory, S> {
    factory: F,
    /// A handle that nothing happens to: for the test itself.
    clean: F::Store,
    scenario: Arc<S>,
    provider: Provider,
    ids: SeqIds,
    processes: Mutex<Vec<Process<F>>>,
}

impl<F: StoreFactory, S: Scenario<F>> Stage<F, S> {
    async fn new(scenario: Arc<S>) -> Result<Self, String> {
        let factory = F::fresh().await;
        let clean = factory.open().await;
        let (provider, ids) = (Provider::new(), SeqIds::new());
        let stage = Self { factory, clean, scenario, provider, ids, processes: Mutex::default() };
        stage.publish().await?;
        Ok(stage)
    }

    async fn publish(&self) -> Result<(), String> {
        let process = Process::new(0, self.factory.open().await, self.provider.clone());
        let module = self.scenario.module(&process);
        for (workflow, source) in self.scenario.workflows() {
            let plan = compile_and_bind(source, module.manifest(), &Bindings::new());
            let publish = Publish {
                app: APP.into(),
                scope: SCOPE.into(),
                workflow: (*workflow).into(),
                version: self.ids.version(),
                plan: plan.map_err(text)?,
                source: (*source).to_owned(),
                budget: Default::default(),
                activate: true,
                authorization: None,
                author: "the matrix".to_owned(),
            };
            self.clean.version_publish(publish).await.map_err(text)?;
        }
        Ok(())
    }

    /// A new process, with a handle of its own.
    async fn start(&self) -> Result<Life<F>, String> {
        let store = self.factory.open().await;
        let process = {
            let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
            let number = u32::try_from(processes.len()).unwrap_or(u32::MAX).saturating_add(1);
            let process = Process::new(number, store, self.provider.clone());
            processes.push(process.clone());
            process
        };
        process.start(&*self.scenario, &self.ids).map_err(text)
    }

    async fn pass(&self, span: Micros) {
        self.factory.pass_time(span).await;
        let processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.iter().for_each(|process| process.pass(span));
    }

    /// Lives up to the trouble and through it. What is left is a process that lives.
    async fn suffer(&self, first: Life<F>, trouble: Trouble) -> Result<(Moment, Life<F>), String> {
        let faults = first.process.faults().clone();
        let stop = faults.stop_at(trouble.nth, trouble.kind.when());
        let mut before = Moment::default();
        {
            let mut living = std::pin::pin!(self.live(&first));
            tokio::select! {
                biased;
                () = stop.reached() => {}
                rest = &mut living => {
                    rest?;
                    return Err("the run rested before it came to that call".to_owned());
                }
            }
            before.log = self.provider.len();
            before.tree = self.tree().await?;
            let nth = usize::try_from(trouble.nth.saturating_sub(1)).unwrap_or(usize::MAX);
            if faults.points().get(nth) != Some(&trouble.method) {
                return Err(format!("the call is another one: {:?}", faults.points()));
            }
            match trouble.kind {
                // Everything of the process is dropped where it stands.
                Kind::DiesBefore | Kind::DiesAfter => {}
                Kind::RequestLost | Kind::AnswerLost | Kind::ComesLate | Kind::Refused => {
                    stop.go_on(trouble.kind.fault());
                    living.await?;
                }
                Kind::Away => {
                    faults.away_for(CALLS_AWAY);
                    stop.go_on(trouble.kind.fault());
                    living.await?;
                }
                Kind::StolenBefore | Kind::StolenAfter => {
                    first.process.sleep(true);
                    self.pass(sum(LEASE, Micros::from_secs(1))).await;
                    let rival = self.start().await?;
                    self.round(&rival).await?;
                    stop.go_on(None);
                    // It goes on as if nothing had been: its clock has not moved.
                    living.await?;
                }
            }
        }
        if trouble.kind.is_death() {
            drop(first);
            return Ok((before, self.start().await?));
        }
        first.process.sleep(false);
        Ok((before, first))
    }

    /// Lives until all runs rest, while time passes.
    async fn live(&self, life: &Life<F>) -> Result<Rest, String> {
        for _ in 0..ROUNDS_MAX {
            self.round(life).await?;
            let tree = self.tree().await?;
            let now = self.clean.store_now().await.map_err(text)?;
            let mut waits = Waits::default();
            for run in tree.runs() {
                self.look(life, run, now, &mut waits).await?;
            }
            match waits {
                // The next round has something to do, or has to make sure of the event.
                Waits { was_sent: true, .. } => {}
                _ if tree.runs().next().is_none() => {}
                Waits { time: Some(span), .. } => self.pass(span).await,
                Waits { for_person: true, .. } => return Ok(Rest::Attention),
                _ if tree.runs().all(|run| run.state().is_terminal()) => return Ok(Rest::Ended),
                _ => return Err(format!("the runs wait for each other: {tree:?}")),
            }
        }
        Err(format!("the runs do not rest: {:?}", self.tree().await?))
    }

    /// What a run waits for. What the application sends is sent.
    async fn look(
        &self,
        life: &Life<F>,
        run: &Run,
        now: Timestamp,
        waits: &mut Waits,
    ) -> Result<(), String> {
        match Awaits::of(run) {
            Awaits::Nothing => {}
            Awaits::Person => waits.for_person = true,
            Awaits::Signal { on: Some(on), .. } if on.children_of().is_some() => {}
            Awaits::Signal { on, deadline } => match on.and_then(|on| self.scenario.signal(on)) {
                Some(signal) => {
                    waits.was_sent = true;
                    // An application that does not hear whether it was recorded sends it again.
                    drop(life.living.kernel.scope(SCOPE).signal(signal).await);
                }
                None => waits.until(until(deadline, now)),
            },
            // Until a sibling has ended.
            Awaits::Worker(_) if run.is_held() => {}
            Awaits::Worker(from) => {
                let span = until(from, now);
                if span > IDLE_MAX {
                    return Err(format!("nobody looks at the run for {span:?}: {run:?}"));
                }
                waits.until(span);
            }
        }
        Ok(())
    }

    /// What a process does at any time: makes sure of its event, and works.
    async fn round(&self, life: &Life<F>) -> Result<(), String> {
        if self.children(None).await?.is_empty()
            && let Some((workflow, _)) = self.scenario.workflows().first()
        {
            let event = Event::start(*workflow, json!({})).dedupe_key("once");
            // An application that does not hear whether it was recorded emits it again, under the same key.
            let _ = life.living.kernel.scope(SCOPE).emit(event).await;
        }
        // What the store did not answer is done in the next round.
        let _ = life.living.worker.tick(Tick::max_runs(1)).await;
        Ok(())
    }

    /// The children of a run, by step and index; without one, the runs that have no parent.
    async fn children(&self, parent: Option<RunId>) -> Result<Vec<RunId>, String> {
        let app = Some(App::from(APP));
        let filter = RunFilter { app, parent, limit: 1_000, ..RunFilter::default() };
        let page = self.clean.run_list(filter).await.map_err(text)?;
        let mut rows = page.rows;
        rows.sort_by_key(|row| {
            row.run.origin.parent.as_ref().map(|parent| (parent.step.clone(), parent.index))
        });
        Ok(rows.into_iter().map(|row| row.run.id).collect())
    }

    /// Every run as it is stored.
    async fn tree(&self) -> Result<Tree, String> {
        let mut tree = Tree::default();
        let mut open = self.children(None).await?;
        open.reverse();
        while let Some(run) = open.pop() {
            let stored = self.clean.run_load(LoadRequest { run, after: None }).await;
            let stored = stored.map_err(text)?.ok_or("a run is gone")?;
            let journal = stored.journal.map_err(text)?;
            let may_have_children = stored.run.attempt > 0;
            tree.add(stored.run, journal.into_iter().flat_map(|entry| entry.facts).collect());
            if may_have_children {
                open.extend(self.children(Some(run)).await?.into_iter().rev());
            }
        }
        Ok(tree)
    }

    /// The operator's part, where a marked call was never made.
    async fn say_that_nothing_happened(&self) -> Result<StepKey, String> {
        let tree = self.tree().await?;
        let mut waiting = tree.runs().filter(|run| matches!(run.phase, Phase::NeedsAttention(_)));
        let (Some(run), None) = (waiting.next(), waiting.next()) else {
            return Err(format!("not one run needs a person: {tree:?}"));
        };
        let Phase::NeedsAttention(Attention { effect: Some(effect), .. }) = &run.phase else {
            return Err(format!("it needs a person, and no effect is open: {run:?}"));
        };
        let step = effect.step.clone();
        let input = RowInput::Resolve { step: step.clone(), verdict: Verdict::NotPerformed };
        let now = self.clean.store_now().await.map_err(text)?;
        let facts = decide_row(run, input, now).map_err(text)?;
        self.clean.run_commit(Commit::new(run, &facts)).await.map_err(text)?;
        Ok(tree.name(run.id, &step))
    }

    async fn seen(
        &self,
        before: Moment,
        attention: Option<StepKey>,
        calls: Vec<Method>,
    ) -> Result<Seen, String> {
        let tree = self.tree().await?;
        let log: Vec<Entry> =
            self.provider.log().into_iter().map(|entry| tree.named(entry)).collect();
        let mut rows = BTreeSet::new();
        for entry in &log {
            if let Did::Wrote(row) = &entry.did
                && F::read_row(&self.clean, row).await.is_some()
            {
                rows.insert(row.clone());
            }
        }
        Ok(Seen { tree, log, rows, calls, before, attention })
    }
}

/// What the runs of a tree wait for.
#[derive(Debug, Default)]
struct Waits {
    /// Something was sent to one of them.
    was_sent: bool,
    for_person: bool,
    /// Until the first of them can go on.
    time: Option<Micros>,
}

impl Waits {
    fn until(&mut self, span: Micros) {
        self.time = Some(self.time.map_or(span, |time| time.min(span)));
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
