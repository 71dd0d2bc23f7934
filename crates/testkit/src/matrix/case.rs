//! One case: a new world, one trouble, and everything until the run rests.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use surefoot_kernel_core::{
    Amounts, App, Commit, EffectClass, Event, Failure, Ids, LoadRequest, Micros, OperatorStore,
    Phase, PlanStore, Publish, RowInput, Run, RunFilter, RunId, RunStore, Timestamp, decide_row,
};
use surefoot_language::{Bindings, compile_and_bind};
use surefoot_worker::Tick;

use super::people::Reply;
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
    /// Calls under another key than that of their step.
    pub(super) strays: Vec<Entry>,
    /// A person asked to cancel the run that the event started, while it had not ended.
    pub(super) is_canceled: bool,
}

/// How far things were at one moment.
#[derive(Debug, Default)]
pub(super) struct Moment {
    pub(super) tree: Tree,
    /// Lines of the provider's log.
    pub(super) log: usize,
}

/// What is left after the trouble.
struct Suffered<F: StoreFactory> {
    before: Moment,
    is_canceled: bool,
    /// A process that lives.
    life: Life<F>,
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
        let suffered = match self.trouble {
            None => Suffered { before: Moment::default(), is_canceled: false, life: first },
            Some(trouble) => stage.suffer(first, trouble).await?,
        };
        stage.live(&suffered.life).await?;
        check_invariants(&stage.clean).await;
        stage.seen(suffered.before, suffered.is_canceled, process.faults().points()).await
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
        let mut budget = Some(self.scenario.budget());
        for (workflow, source) in self.scenario.workflows() {
            let plan = compile_and_bind(source, module.manifest(), &Bindings::new());
            let publish = Publish {
                app: APP.into(),
                scope: SCOPE.into(),
                workflow: (*workflow).into(),
                version: self.ids.version(),
                plan: plan.map_err(text)?,
                source: (*source).to_owned(),
                // Whatever a tree charges is charged to its root.
                budget: budget.take().unwrap_or_else(Amounts::default),
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

    /// Lives up to the trouble and through it.
    async fn suffer(&self, first: Life<F>, trouble: Trouble) -> Result<Suffered<F>, String> {
        let faults = first.process.faults().clone();
        let stop = faults.stop_at(trouble.nth, trouble.kind.when());
        let (mut before, mut is_canceled) = (Moment::default(), false);
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
                Kind::DiesBefore
                | Kind::DiesAfter
                | Kind::DiesBeforeCancel
                | Kind::DiesAfterCancel => {}
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
                Kind::CanceledBefore | Kind::CanceledAfter => {
                    is_canceled = self.cancel().await?;
                    stop.go_on(None);
                    living.await?;
                }
            }
        }
        let life = if trouble.kind.is_death() {
            drop(first);
            is_canceled = trouble.kind.is_cancel() && self.cancel().await?;
            self.start().await?
        } else {
            first.process.sleep(false);
            first
        };
        Ok(Suffered { before, is_canceled, life })
    }

    /// A person asks to cancel the run that the event started. Whether that changed anything.
    async fn cancel(&self) -> Result<bool, String> {
        let Some(run) = self.children(None).await?.first().copied() else { return Ok(false) };
        let stored = self.clean.run_load(LoadRequest { run, after: None }).await;
        let run = stored.map_err(text)?.ok_or("the run is gone")?;
        let input = RowInput::Cancel { actor: "ann".to_owned(), reason: "enough".to_owned() };
        let facts = decide_row(&run.run, input, run.now).map_err(text)?;
        if !facts.is_empty() {
            self.clean.run_commit(Commit::new(&run.run, &facts)).await.map_err(text)?;
        }
        Ok(!facts.is_empty())
    }

    /// Lives until all runs have ended, while time passes.
    async fn live(&self, life: &Life<F>) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            self.round(life).await?;
            let tree = self.tree().await?;
            let now = self.clean.store_now().await.map_err(text)?;
            let mut waits = Waits::default();
            for run in tree.runs() {
                self.look(life, &tree, run, now, &mut waits).await?;
            }
            match waits {
                // The next round has something to do, or has to make sure of the event.
                Waits { was_sent: true, .. } => {}
                _ if tree.runs().next().is_none() => {}
                Waits { time: Some(span), .. } => self.pass(span).await,
                _ if tree.runs().all(|run| run.state().is_terminal()) => return Ok(()),
                _ => return Err(format!("the runs wait for each other: {tree:?}")),
            }
        }
        Err(format!("the runs do not rest: {:?}", self.tree().await?))
    }

    /// What a run waits for. What the application or a person can do is done.
    async fn look(
        &self,
        life: &Life<F>,
        tree: &Tree,
        run: &Run,
        now: Timestamp,
        waits: &mut Waits,
    ) -> Result<(), String> {
        match Awaits::of(run) {
            Awaits::Nothing => {
                if let Phase::Failed { error, .. } = &run.phase {
                    waits.was_sent |= self.attend(life, run, error).await?;
                }
            }
            Awaits::Person => {
                let Phase::NeedsAttention(attention) = &run.phase else { return Ok(()) };
                if !self.attend(life, run, &attention.error).await? {
                    return Err(format!("it needs a person, and nobody knows better: {run:?}"));
                }
                waits.was_sent = true;
            }
            Awaits::Signal { on: Some(on), .. } if on.children_of().is_some() => {}
            Awaits::Signal { on, deadline } => match on.and_then(|on| self.scenario.reply(on)) {
                // An application that does not hear whether it was recorded says it again.
                Some(reply) => {
                    waits.was_sent = true;
                    let kernel = &life.living.kernel;
                    match (reply, tree.runs().next()) {
                        (Reply::Signal(signal), _) => {
                            drop(kernel.scope(SCOPE).signal(signal).await);
                        }
                        (Reply::Cancel, root) => {
                            let root = root.map_or(run.id, |root| root.id);
                            drop(kernel.cancel(root, "enough").await);
                        }
                    }
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

    /// A person has a word about a run, if the scenario says so, through the same process: it may die there as well.
    async fn attend(&self, life: &Life<F>, run: &Run, error: &Failure) -> Result<bool, String> {
        let Some(step) = error.step.clone() else { return Ok(false) };
        let key = run.effect_key(&step);
        let Some(verb) = self.scenario.attend(error, &self.provider.done(&key)) else {
            return Ok(false);
        };
        self.provider.add(Entry {
            process: 0,
            class: EffectClass::Ambiguous,
            run: Some(run.id),
            step: step.clone(),
            key: Some(key),
            did: Did::Attended(verb.clone()),
        });
        let store = life.process.store();
        let seen = store.run_load(LoadRequest { run: run.id, after: None }).await;
        // What the store did not answer is said again in the next round.
        let Ok(Some(seen)) = seen else { return Ok(true) };
        // Another word was faster, or an earlier one that was thought lost.
        let Ok(facts) = decide_row(&seen.run, verb.input(step), seen.now) else { return Ok(true) };
        let _ = store.run_commit(Commit::new(&seen.run, &facts)).await;
        Ok(true)
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
        self.scenario.beside(&life.process).await;
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

    async fn seen(
        &self,
        before: Moment,
        is_canceled: bool,
        calls: Vec<Method>,
    ) -> Result<Seen, String> {
        let tree = self.tree().await?;
        let log = self.provider.log();
        let strays = log.iter().filter(|entry| tree.is_stray(entry)).cloned().collect();
        let log: Vec<Entry> = log.into_iter().map(|entry| tree.named(entry)).collect();
        let mut rows = BTreeSet::new();
        for entry in &log {
            if let Did::Wrote(row) = &entry.did
                && F::read_row(&self.clean, row).await.is_some()
            {
                rows.insert(row.clone());
            }
        }
        Ok(Seen { tree, log, rows, calls, before, strays, is_canceled })
    }
}

/// What the runs of a tree wait for.
#[derive(Debug, Default)]
struct Waits {
    /// Something was sent to one of them.
    was_sent: bool,
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
