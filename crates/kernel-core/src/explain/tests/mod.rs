//! Explanations of runs that were driven through the real state machine.

mod advice;
mod effects;
mod loops;
mod promises;
mod states;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{ExplainInput, Explanation, explain};
pub(super) use crate::RowInput;
use crate::expr::Template;
use crate::plan::{
    ActionPolicy, Footprint, Hashes, ModuleRef, Plan, PlanLimits, RetryPolicy, Step, StepKind,
};
use crate::{
    Answer, Command, Commit, Decision, Durability, EffectClass, Fact, Failure, Held, Input,
    Invocation, JournalEntry, Lease, Micros, Mode, Origin, Phase, Prepared, ReconcileAnswer, Run,
    RunId, RunState, SessionId, SessionRow, StepKey, Timestamp, decide, decide_row,
};

pub(super) const MINUTE: Micros = Micros::from_secs(60);

pub(super) fn at(text: &str) -> Timestamp {
    format!("2026-11-29T{text}Z").parse().unwrap()
}

pub(super) fn action(name: &str) -> Step {
    step(StepKind::Action {
        action: name.to_owned(),
        config: Template::Literal(json!({})),
        timeout: None,
        retry: None,
        catch: None,
    })
}

/// An action with steps that handle its failure.
pub(super) fn catching(name: &str, steps: Vec<Step>) -> Step {
    let mut step = action(name);
    if let StepKind::Action { catch, .. } = &mut step.kind {
        *catch = Some(steps);
    }
    step
}

pub(super) fn step(kind: StepKind) -> Step {
    Step { kind, save_as: None, label: None, line: 1 }
}

pub(super) fn literal(value: impl Into<Value>) -> Template {
    Template::Literal(value.into())
}

/// A plan over the actions `price` (pure), `book` (transactional), `mail` (idempotent) and `pay` (ambiguous).
pub(super) fn plan(steps: Vec<Step>) -> Plan {
    let classes = [
        ("price", EffectClass::Pure),
        ("book", EffectClass::Transactional),
        ("mail", EffectClass::Idempotent),
        ("pay", EffectClass::Ambiguous),
    ];
    let policy = |class| ActionPolicy {
        class,
        retry: RetryPolicy { attempts: 3, ..RetryPolicy::default() },
        settle_after: None,
        output: None,
    };
    let uses = classes.map(|(name, _)| (format!("action/{name}"), "hash".to_owned()));
    Plan {
        schema: 1,
        language: 1,
        module: ModuleRef { id: "inventory".to_owned(), version: 1 },
        hashes: Hashes { source: String::new(), manifest: String::new(), catalog: String::new() },
        footprint: Footprint { module: "inventory".to_owned(), uses: uses.into() },
        policies: classes.map(|(name, class)| (name.to_owned(), policy(class))).into(),
        inputs: BTreeMap::new(),
        triggers: BTreeMap::new(),
        steps,
        bindings: BTreeMap::new(),
        limits: PlanLimits { loop_items: 1_000 },
    }
}

/// A run, what is stored of it, and what its worker holds in memory.
#[derive(Debug, Clone)]
pub(super) struct Story {
    pub(super) plan: Plan,
    pub(super) stored: Run,
    pub(super) journal: Vec<JournalEntry>,
    pub(super) sessions: Vec<SessionRow>,
    pub(super) now: Timestamp,
    pub(super) held: Option<Held>,
    pending: Vec<Fact>,
    /// Steps for which a worker got any command.
    pub(super) commanded: BTreeSet<StepKey>,
    /// Those of them whose command was no transaction: that leaves nothing behind, unless its outcome is there.
    pub(super) begun: BTreeSet<StepKey>,
    /// Steps whose `run` was called outside of a transaction, and that were not settled as never performed since.
    pub(super) called: BTreeSet<StepKey>,
}

impl Story {
    pub(super) fn of(plan: Plan) -> Self {
        let id = RunId::from_bytes([7; 16]);
        let now = at("12:00:00");
        let origin = Origin {
            app: "shop".into(),
            scope: "berlin".into(),
            workflow: "reorder".into(),
            version: crate::VersionId::from_bytes([1; 16]),
            footprint: plan.footprint.hash(),
            mode: Mode::Execute,
            event: None,
            trigger: None,
            occurred_at: now,
            root: id,
            parent: None,
            created_at: now,
        };
        let session = SessionRow {
            session: SessionId::from_bytes([2; 16]),
            name: "host 12".to_owned(),
            mode: Mode::Execute,
            offers: vec![plan.footprint.clone()],
            tree: None,
            slots: 4,
            busy: 0,
            stuck: 0,
            seen_at: Timestamp::MAX,
            now,
        };
        Self {
            plan,
            stored: Run::new(id, origin),
            journal: Vec::new(),
            sessions: vec![session],
            now,
            held: None,
            pending: Vec::new(),
            commanded: BTreeSet::new(),
            begun: BTreeSet::new(),
            called: BTreeSet::new(),
        }
    }

    pub(super) fn explain(&self) -> Explanation {
        self.explain_with(&[])
    }

    pub(super) fn explain_with(&self, children: &[crate::GroupRow]) -> Explanation {
        explain(&ExplainInput {
            run: &self.stored,
            plan: Some(&self.plan),
            invocation: &Invocation::default(),
            journal: &self.journal,
            unreadable: None,
            sessions: &self.sessions,
            budget: &crate::Budget::default(),
            is_signaled: None,
            children,
            group: None,
            now: self.now,
        })
    }

    /// Commits facts on the stored row.
    pub(super) fn record(&mut self, facts: &[Fact]) {
        let before = self.stored.clone();
        let commit = Commit::new(&before, facts);
        if let Some(text) = &commit.journal {
            let generation = commit.after.generation;
            let entry = JournalEntry::read(text.seq, generation, self.now, &text.facts).unwrap();
            self.journal.push(entry);
        }
        self.stored = commit.after;
    }

    /// Something comes to the stored row. Whether it was taken.
    pub(super) fn row(&mut self, input: RowInput) -> bool {
        let decided = decide_row(&self.stored, input, self.now);
        let facts = decided.unwrap_or_default();
        if !facts.is_empty() {
            self.settle(&facts);
            self.record(&facts);
        }
        !facts.is_empty()
    }

    /// A worker takes the run as soon as it may.
    pub(super) fn claim(&mut self) -> bool {
        let Some(due) = self.stored.claimable_at() else { return false };
        self.now = self.now.max(due);
        let length = Micros::from_secs(120);
        let owner = SessionId::from_bytes([2; 16]);
        let lease = Lease { owner, until: self.now.plus(length), length };
        if !self.row(RowInput::Claim { lease }) {
            return false;
        }
        self.pending.clear();
        let run = self.stored.clone();
        let held = Held::restore(run, &self.plan, Invocation::default(), &self.journal);
        self.held = Some(held.unwrap());
        true
    }

    /// The worker goes on until it has to call something, or the run leaves it.
    pub(super) fn advance(&mut self) -> Option<Command> {
        loop {
            let held = self.held.as_ref()?;
            let decision = decide(held, &self.plan, Input::Advance, self.now).unwrap();
            if let Some(command) = self.carry_out(decision) {
                return Some(command);
            }
        }
    }

    fn carry_out(&mut self, decision: Decision) -> Option<Command> {
        let held = self.held.take()?;
        self.settle(&decision.facts);
        let held = held.apply(&self.plan, &decision.facts).unwrap();
        self.pending.extend(decision.facts.iter().cloned());
        self.held = Some(held);
        if decision.durability != Durability::Lazy {
            self.flush();
        }
        let command = decision.command.peek().cloned();
        if let Some(command) = &command {
            let step = match command {
                Command::Prepare(call)
                | Command::Call(call)
                | Command::Transact(call)
                | Command::Reconcile(call) => &call.step,
                Command::Spawn(spawn) => &spawn.step,
                Command::Collect(collect) => &collect.step,
            };
            self.commanded.insert(step.clone());
            if !matches!(command, Command::Transact(_)) {
                self.begun.insert(step.clone());
            }
            if matches!(command, Command::Call(_)) {
                self.called.insert(step.clone());
            }
        }
        if self.stored.state() != RunState::Running {
            self.held = None;
        }
        command
    }

    pub(super) fn flush(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        if !pending.is_empty() {
            self.record(&pending);
        }
        if let Some(held) = &mut self.held {
            held.run = self.stored.clone();
        }
    }

    fn settle(&mut self, facts: &[Fact]) {
        for fact in facts {
            if let Fact::NothingHappened { step, .. } = fact {
                self.called.remove(step);
            }
        }
    }

    pub(super) fn input(&mut self, input: Input) -> Option<Command> {
        let held = self.held.as_ref()?;
        let decision = decide(held, &self.plan, input, self.now).unwrap();
        self.carry_out(decision)
    }

    pub(super) fn prepared(&mut self, key: &str) -> Option<Command> {
        self.input(Input::Prepared {
            step: key.into(),
            result: Prepared::Ready { cost: crate::Amounts::default() },
        })
    }

    pub(super) fn answer(&mut self, key: &str, answer: Answer) {
        self.input(Input::Answer { step: key.into(), answer });
    }

    pub(super) fn reconciled(&mut self, key: &str, answer: ReconcileAnswer) {
        self.input(Input::Reconciled { step: key.into(), answer });
    }

    /// The worker dies; its lease lapses a minute ago.
    pub(super) fn crash(&mut self) {
        (self.held, self.pending) = (None, Vec::new());
        if let Phase::Running { lease, .. } = &self.stored.phase {
            self.now = lease.until.plus(MINUTE);
        }
    }
}

pub(super) fn succeeded(output: impl Into<Value>) -> Answer {
    Answer::Succeeded { output: output.into() }
}

pub(super) fn failed(code: &'static str, retryable: bool) -> Answer {
    let failure = Failure::new(code, "in words");
    Answer::Failed { failure, retryable, retry_after: None }
}

pub(super) fn unknown() -> Answer {
    Answer::Unknown { message: "no answer".to_owned(), evidence: None }
}

/// An explanation as a few lines; keys of effects are left out.
pub(super) fn rendered(explanation: &Explanation) -> String {
    let mut out = format!("{}\n", explanation.headline);
    for reason in &explanation.why_not_moving {
        let kind = serde_json::to_value(reason.kind).unwrap();
        let _ = writeln!(out, "- {}: {}", kind.as_str().unwrap(), reason.text);
    }
    for step in &explanation.steps {
        let _ = write!(out, "{} {} {}", step.key, step.action, step.state.as_str());
        if let Some(effect) = step.effect_state {
            let _ = write!(out, " effect={}", effect.as_str());
        }
        if let Some(attempt) = step.attempt {
            let _ = write!(out, " attempt={attempt}");
        }
        if let Some(error) = &step.error {
            let _ = write!(out, " error={}", error.code);
        }
        if let Some(loops) = step.iterations {
            let _ = write!(out, " {}/{}", loops.completed, loops.total);
        }
        let why = step.why.as_deref().map_or_else(String::new, |why| format!(" ({why})"));
        let _ = writeln!(out, "{why}");
    }
    let effects = &explanation.effects;
    for (name, notes) in [
        ("happened", &effects.happened),
        ("may have happened", &effects.may_have_happened),
        ("not started", &effects.not_started),
    ] {
        for note in notes {
            let times = if note.count == 1 { String::new() } else { format!(" x{}", note.count) };
            let _ = writeln!(out, "{name}: {} {}{times}: {}", note.step, note.action, note.why);
        }
    }
    for repeat in &explanation.would_repeat {
        let _ = writeln!(out, "again: {} {}: {}", repeat.step, repeat.action, repeat.what);
    }
    for action in &explanation.legal_actions {
        let _ = writeln!(out, "$ {}", action.command);
    }
    out
}
