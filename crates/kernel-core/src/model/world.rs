//! One run with everything around it: store, clock, two workers, a provider, signals, an operator.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::family::Family;
use super::invariants::{self, Violation};
use crate::plan::Plan;
use crate::{
    Budget, Command, Commit, EffectKey, EventId, Exceeded, Fact, Fenced, Held, Input, Invocation,
    JournalEntry, Lease, Micros, Mode, Origin, Phase, Receipt, RowInput, Run, RunId, SessionId,
    Stamp, StepKey, Timestamp, VersionId, Wake, apply, decide, decide_row,
};

pub(super) const LEASE: Micros = Micros::from_secs(120);

/// What happens next.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// The worker of a slot claims, if the run is due.
    Claim(usize),
    /// The worker of a slot does its next thing; the number chooses how it turns out.
    Work(usize, u8),
    /// The worker of a slot dies.
    Crash(usize),
    /// The next commit of a slot stays unanswered.
    Doubt {
        /// Whose.
        slot: usize,
        /// Whether it happened.
        landed: bool,
    },
    /// Time passes.
    Pass(Span),
    /// Recovery.
    Scan,
    /// A signal is sent.
    Signal(u8),
    /// A child ends, if one is live; the number chooses which one, and how.
    ChildEnds(u8),
    /// The worker of a slot stops in order.
    HandOver(usize),
    /// An operator acts; the number chooses details.
    Operator(Verb, u8),
    /// An input that nobody would send now: decided, checked, never committed.
    Stray(Box<Input>),
}

/// How much time passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// A second.
    Moment,
    /// Ten seconds.
    Little,
    /// Long enough for the last fifth of a lease to begin.
    MostOfALease,
    /// Over a lease.
    Lease,
    /// Over the time in which a provider may see a key late.
    Settled,
}

impl Span {
    /// Every span.
    pub const ALL: [Self; 5] =
        [Self::Moment, Self::Little, Self::MostOfALease, Self::Lease, Self::Settled];

    pub(super) const fn micros(self) -> Micros {
        Micros::from_secs(match self {
            Self::Moment => 1,
            Self::Little => 10,
            Self::MostOfALease => 100,
            Self::Lease => 121,
            Self::Settled => 601,
        })
    }
}

/// What an operator does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// `resolve`, truthfully.
    Resolve,
    /// `reconcile`.
    Reconcile,
    /// `retry`.
    Retry,
    /// `abandon`.
    Abandon,
    /// `cancel`.
    Cancel,
}

impl Verb {
    /// Every verb.
    pub const ALL: [Self; 5] =
        [Self::Resolve, Self::Reconcile, Self::Retry, Self::Abandon, Self::Cancel];
}

/// A worker that believes that it holds the run.
#[derive(Debug, Clone)]
pub(super) struct Worker {
    pub(super) held: Held,
    /// The stored row that `held` grew from.
    pub(super) base: Stamp,
    /// Facts that are not durable yet.
    pub(super) pending: Vec<Fact>,
    pub(super) receipt: Receipt,
    pub(super) command: Option<Command>,
    /// Its next commit stays unanswered.
    pub(super) doubt: Option<bool>,
}

/// What really happened outside.
#[derive(Debug, Clone, Default)]
pub(super) struct Provider {
    /// How often each key was carried out.
    pub(super) carried_out: BTreeMap<EffectKey, u32>,
    /// Keys that it will refuse from now on.
    pub(super) refuses: BTreeSet<EffectKey>,
    /// Calls that it sees late.
    pub(super) on_the_way: Vec<(EffectKey, Timestamp)>,
    /// Steps whose last call nobody has explained in the journal.
    pub(super) unexplained: BTreeSet<StepKey>,
}

/// One run with everything around it.
#[derive(Debug, Clone)]
pub struct World {
    pub(super) plan: Plan,
    pub(super) stored: Run,
    pub(super) journal: Vec<JournalEntry>,
    pub(super) now: Timestamp,
    pub(super) workers: [Option<Worker>; 2],
    pub(super) provider: Provider,
    pub(super) signals: BTreeSet<String>,
    pub(super) family: Family,
    /// Rows that transactional steps wrote, by step.
    pub(super) rows: BTreeMap<StepKey, u32>,
    /// The counters of the run's budget.
    pub(super) budget: Budget,
}

/// Why the store did not take a commit.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error(transparent)]
    Fenced(#[from] Fenced),
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
}

pub(super) type Checked = Result<(), Violation>;

impl World {
    /// A run that was just created.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let now = Timestamp::from_micros(1_000_000_000);
        let id = RunId::from_bytes([7; 16]);
        let origin = Origin {
            app: "model".into(),
            scope: "model".into(),
            workflow: "model".into(),
            version: VersionId::from_bytes([1; 16]),
            footprint: plan.footprint.hash(),
            mode: Mode::Execute,
            event: Some(EventId::from_bytes([2; 16])),
            trigger: None,
            occurred_at: now,
            root: id,
            parent: None,
            created_at: now,
        };
        Self {
            plan,
            stored: Run::new(id, origin),
            journal: Vec::new(),
            now,
            workers: [None, None],
            provider: Provider::default(),
            signals: BTreeSet::new(),
            family: Family::default(),
            rows: BTreeMap::new(),
            budget: Budget::of_caps(&super::work::caps()),
        }
    }

    /// The stored row.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.stored
    }

    /// Every fact that the journal got.
    pub fn journaled(&self) -> impl Iterator<Item = &Fact> {
        self.facts()
    }

    /// What was written in one commit each.
    pub fn commits(&self) -> impl Iterator<Item = &[Fact]> {
        self.journal.iter().map(|entry| entry.facts.as_slice())
    }

    /// Resolves one operation, and checks everything that must hold.
    ///
    /// # Errors
    /// [`Violation`] says which property does not hold.
    pub fn step(&mut self, op: Op) -> Checked {
        let before = self.stored.clone();
        match op {
            Op::Claim(slot) => self.claim(slot)?,
            Op::Work(slot, choice) => self.work(slot, choice)?,
            Op::Crash(slot) => self.set_worker(slot, None),
            Op::Doubt { slot, landed } => {
                if let Some(worker) = self.workers.get_mut(slot).and_then(Option::as_mut) {
                    worker.doubt = Some(landed);
                }
            }
            Op::Pass(span) => self.pass(span),
            Op::Scan => self.scan()?,
            Op::Signal(key) => self.signal(key.to_string())?,
            Op::ChildEnds(choice) => self.child_ends(choice)?,
            Op::HandOver(slot) => self.hand_over(slot)?,
            Op::Operator(verb, choice) => self.operator(verb, choice)?,
            Op::Stray(input) => self.stray(*input)?,
        }
        self.check(&before)
    }

    fn check(&self, before: &Run) -> Checked {
        invariants::check(&self.stored, &self.journal, self.now)?;
        invariants::charged_once(&self.budget, &self.journal)?;
        if matches!(before.phase, Phase::Succeeded { .. } | Phase::Canceled { .. })
            && *before != self.stored
        {
            return Err(Violation(format!("a run that is {} moved", before.state())));
        }
        if let Some((key, times)) = self.provider.carried_out.iter().find(|(_, times)| **times > 1)
        {
            return Err(Violation(format!("effect {key} was carried out {times} times")));
        }
        if self.occurred().is_some() {
            return Err(Violation("the run waits for what has occurred".to_owned()));
        }
        self.family.check(&self.stored, self.facts())?;
        self.rows_match_outcomes()?;
        self.nothing_dropped()
    }

    /// A transactional step's row is there exactly once, exactly if its outcome is.
    fn rows_match_outcomes(&self) -> Checked {
        for (step, rows) in &self.rows {
            let recorded = self
                .facts()
                .any(|fact| matches!(fact, Fact::StepCompleted { step: done, .. } if done == step));
            if *rows != 1 || !recorded {
                let text = format!("`{step}` wrote {rows} rows, its outcome: {recorded}");
                return Err(Violation(text));
            }
        }
        Ok(())
    }

    /// An effect that was carried out is recorded, or open, or was given up in plain sight.
    fn nothing_dropped(&self) -> Checked {
        let run = &self.stored;
        if !run.state().is_terminal() || run.effect().is_some() {
            return Ok(());
        }
        for key in self.provider.carried_out.keys() {
            let known = self.facts().any(|fact| {
                if let Fact::StepCompleted { step, .. } | Fact::OutputRefused { step, .. } = fact {
                    run.effect_key(step) == *key
                } else {
                    false
                }
            });
            if !known {
                return Err(Violation(format!("effect {key} happened and nobody says so")));
            }
        }
        Ok(())
    }

    pub(super) fn facts(&self) -> impl Iterator<Item = &Fact> {
        self.journal.iter().flat_map(|entry| &entry.facts)
    }

    pub(super) fn set_worker(&mut self, slot: usize, worker: Option<Worker>) {
        if let Some(place) = self.workers.get_mut(slot) {
            *place = worker;
        }
    }

    pub(super) fn lease(&self, slot: usize) -> Lease {
        let owner = SessionId::from_bytes([u8::try_from(slot).unwrap_or(u8::MAX); 16]);
        Lease { owner, until: self.now.plus(LEASE), length: LEASE }
    }

    /// The store's side of a commit: fence, row, journal, and a park that finds its signal.
    pub(super) fn commit(&mut self, commit: Commit) -> Result<(), Refused> {
        commit.before.check(&self.stored)?;
        if let Some(charge) = &commit.charge {
            self.budget.charge(charge)?;
        }
        let generation = commit.after.generation;
        self.stored = commit.after;
        if let Some(text) = commit.journal {
            let entry = JournalEntry::read(text.seq, generation, self.now, &text.facts);
            if let Ok(entry) = entry {
                self.explain(&entry.facts);
                self.journal.push(entry);
            }
        }
        if let Some(wake) = self.occurred() {
            let wake = RowInput::Wake { wake, at_once: true };
            if let Ok(facts) = decide_row(&self.stored, wake, self.now) {
                self.stored = facts.iter().fold(self.stored.clone(), apply);
            }
        }
        Ok(())
    }

    /// What the stored run waits for, if it has occurred.
    fn occurred(&self) -> Option<Wake> {
        let Phase::Waiting(wait) = &self.stored.phase else { return None };
        let on = wait.on.as_ref()?;
        match on.children_of() {
            Some(step) => self.family.is_over(&step).then_some(Wake::Children),
            None => self.signals.contains(on.key()).then(|| Wake::Signal(json!("data"))),
        }
    }

    /// Facts that explain the last call of a step.
    fn explain(&mut self, facts: &[Fact]) {
        for fact in facts {
            if let Fact::NothingHappened { step, .. }
            | Fact::StepCompleted { step, .. }
            | Fact::OutputRefused { step, .. }
            | Fact::StepFailed { step, .. } = fact
            {
                self.provider.unexplained.remove(step);
            }
        }
    }

    /// A row input, decided and committed as a store or an operator does.
    pub(super) fn row(&mut self, input: RowInput) -> Result<bool, Violation> {
        let Ok(facts) = decide_row(&self.stored, input, self.now) else { return Ok(false) };
        if facts.is_empty() {
            return Ok(false);
        }
        let commit = Commit::new(&self.stored, &facts);
        match self.commit(commit) {
            Ok(()) => Ok(true),
            Err(refused) => Err(Violation(format!("a commit on the present row: {refused}"))),
        }
    }

    /// The run as a worker loads it.
    pub(super) fn load(&self) -> Result<Held, Violation> {
        let invocation = Invocation { trigger: Value::Null, ..Invocation::default() };
        Held::restore(self.stored.clone(), &self.plan, invocation, &self.journal)
            .map_err(|error| Violation(error.to_string()))
    }

    fn claim(&mut self, slot: usize) -> Checked {
        if self.workers.get(slot).is_none_or(Option::is_some) {
            return Ok(());
        }
        let generation = self.stored.generation;
        if !self.row(RowInput::Claim { lease: self.lease(slot) })? {
            return Ok(());
        }
        if self.stored.generation <= generation {
            return Err(Violation("a claim did not raise the generation".to_owned()));
        }
        self.begin(slot)
    }

    /// The worker of a slot holds the stored row from here on.
    pub(super) fn begin(&mut self, slot: usize) -> Checked {
        let held = self.load()?;
        let (base, receipt) = (self.stored.stamp(), Receipt::attest(&self.stored));
        let (pending, command, doubt) = (Vec::new(), None, None);
        self.set_worker(slot, Some(Worker { held, base, pending, receipt, command, doubt }));
        Ok(())
    }

    fn pass(&mut self, span: Span) {
        // Renewals: whoever holds the run and is alive keeps it, unless a lot of time passes at once.
        self.now = self.now.plus(span.micros());
        let due = self.provider.on_the_way.iter().filter(|(_, at)| *at <= self.now);
        let arrived: Vec<EffectKey> = due.map(|(key, _)| key.clone()).collect();
        self.provider.on_the_way.retain(|(_, at)| *at > self.now);
        for key in arrived {
            if !self.provider.refuses.contains(&key) {
                *self.provider.carried_out.entry(key).or_default() += 1;
            }
        }
    }

    fn scan(&mut self) -> Checked {
        self.row(RowInput::Wake { wake: Wake::Deadline, at_once: false })?;
        self.row(RowInput::LeaseGone)?;
        Ok(())
    }

    fn signal(&mut self, key: String) -> Checked {
        self.signals.insert(key.clone());
        if let Phase::Waiting(wait) = &self.stored.phase
            && wait.on.as_ref().is_some_and(|on| on.is_signal() && on.key() == key)
        {
            self.row(RowInput::Wake { wake: Wake::Signal(json!("data")), at_once: false })?;
        }
        Ok(())
    }

    /// Whatever comes, a decision leaves a run that is whole. Decided on what a worker would load, never kept.
    fn stray(&self, input: Input) -> Checked {
        let held = self.load()?;
        let Ok(decision) = decide(&held, &self.plan, input, self.now) else { return Ok(()) };
        let run = decision.facts.iter().fold(held.run.clone(), apply);
        invariants::has_wake_source(&run)?;
        if run.state().is_terminal() && run.has_unsettled_effect() {
            return Err(Violation("a stray input ended a run on an unexplained effect".to_owned()));
        }
        match held.apply(&self.plan, &decision.facts) {
            Ok(_) => Ok(()),
            Err(error) => Err(Violation(format!("a decision cannot be applied: {error}"))),
        }
    }
}
