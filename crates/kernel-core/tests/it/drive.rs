//! One run, driven decision by decision: every fact is committed at once, every command opened.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use surefoot_kernel_core::expr::Template;
use surefoot_kernel_core::plan::{
    ActionPolicy, Footprint, Hashes, Input as PlanInput, ModuleRef, Plan, PlanLimits, RetryPolicy,
    Step, StepKind,
};
use surefoot_kernel_core::{
    Amounts, Answer, Command, Commit, Durability, EffectClass, Fact, Failure, Held, Input,
    Invocation, Lease, Micros, Mode, Origin, Receipt, Rejection, RowInput, Run, RunId, RunState,
    SessionId, StepKey, Timestamp, VersionId, apply, decide,
};

pub(crate) const LEASE: Micros = Micros::from_secs(120);

pub(crate) fn step(kind: StepKind) -> Step {
    Step { kind, save_as: None, label: None, line: 1 }
}

pub(crate) fn action(class: EffectClass) -> Step {
    let config = Template::Literal(json!({ "of": class.as_str() }));
    step(StepKind::Action {
        action: class.as_str().to_owned(),
        config,
        timeout: None,
        retry: None,
        catch: None,
    })
}

pub(crate) fn saved(mut step: Step, name: &str) -> Step {
    step.save_as = Some(name.to_owned());
    step
}

pub(crate) fn plan(steps: Vec<Step>) -> Plan {
    let policy = |class: EffectClass| {
        let retry = RetryPolicy::default();
        let settle_after = None;
        (class.as_str().to_owned(), ActionPolicy { class, retry, settle_after, output: None })
    };
    use EffectClass::{Ambiguous, Idempotent, Pure, Transactional};
    Plan {
        schema: 1,
        language: 1,
        module: ModuleRef { id: "test".to_owned(), version: 1 },
        hashes: Hashes { source: String::new(), manifest: String::new(), catalog: String::new() },
        footprint: Footprint { module: "test".to_owned(), uses: BTreeMap::new() },
        policies: [Pure, Transactional, Idempotent, Ambiguous].map(policy).into(),
        inputs: BTreeMap::<String, PlanInput>::new(),
        triggers: BTreeMap::new(),
        steps,
        bindings: BTreeMap::new(),
        limits: PlanLimits { loop_items: 100 },
    }
}

pub(crate) fn key(text: &str) -> StepKey {
    text.into()
}

/// A run that one worker drives.
#[derive(Debug, Clone)]
pub(crate) struct Drive {
    pub(crate) plan: Plan,
    pub(crate) held: Held,
    pub(crate) now: Timestamp,
    pub(crate) command: Option<Command>,
    /// The facts of the last decision.
    pub(crate) facts: Vec<Fact>,
    pub(crate) durability: Durability,
    /// What a prepared call costs.
    pub(crate) cost: Amounts,
}

impl Drive {
    pub(crate) fn new(plan: Plan) -> Self {
        Self::with(plan, Value::Null)
    }

    pub(crate) fn with(plan: Plan, trigger: Value) -> Self {
        let now = Timestamp::from_micros(1_000_000_000);
        let id = RunId::from_bytes([7; 16]);
        let origin = Origin {
            app: "app".into(),
            scope: "scope".into(),
            workflow: "workflow".into(),
            version: VersionId::from_bytes([1; 16]),
            footprint: plan.footprint.hash(),
            mode: Mode::Execute,
            event: None,
            trigger: plan.triggers.keys().next().cloned(),
            occurred_at: now,
            root: id,
            parent: None,
            created_at: now,
        };
        let run = Run::new(id, origin);
        let invocation = Invocation { trigger, ..Invocation::default() };
        let cursor = surefoot_kernel_core::Cursor::new(&run, &plan, invocation);
        let durability = Durability::Lazy;
        let held = Held { run, cursor };
        let cost = Amounts::default();
        Self { plan, held, now, command: None, facts: Vec::new(), durability, cost }
    }

    /// Claimed, and advanced to the first command or to where it stops.
    pub(crate) fn begun(plan: Plan) -> Self {
        let mut drive = Self::new(plan);
        drive.claim();
        drive.advance();
        drive
    }

    pub(crate) fn run(&self) -> &Run {
        &self.held.run
    }

    pub(crate) fn state(&self) -> RunState {
        self.held.run.state()
    }

    pub(crate) fn failure(&self) -> &Failure {
        match &self.held.run.phase {
            surefoot_kernel_core::Phase::Failed { error, .. } => error,
            surefoot_kernel_core::Phase::NeedsAttention(attention) => &attention.error,
            other => panic!("no failure in {other:?}"),
        }
    }

    /// Decides, commits and opens.
    pub(crate) fn give(&mut self, input: Input) -> Result<(), Rejection> {
        let decision = decide(&self.held, &self.plan, input, self.now)?;
        let commit = Commit::new(&self.held.run, &decision.facts);
        self.held = self.held.clone().apply(&self.plan, &decision.facts).unwrap();
        if !decision.facts.is_empty() {
            self.held.run = commit.after;
        }
        self.command = decision.command.open(&Receipt::attest(&self.held.run)).unwrap();
        self.facts = decision.facts;
        self.durability = decision.durability;
        Ok(())
    }

    pub(crate) fn row(&mut self, input: RowInput) -> Result<(), Rejection> {
        self.give(Input::Row(input))
    }

    pub(crate) fn lease(&self) -> Lease {
        let owner = SessionId::from_bytes([3; 16]);
        Lease { owner, until: self.now.plus(LEASE), length: LEASE }
    }

    /// Waits until the run is due, and claims it.
    pub(crate) fn claim(&mut self) {
        self.now = self.now.max(self.held.run.claimable_at().unwrap());
        let lease = self.lease();
        self.row(RowInput::Claim { lease }).unwrap();
    }

    /// Until there is a command, or the run is not running any more.
    pub(crate) fn advance(&mut self) {
        self.give(Input::Advance).unwrap();
        while self.command.is_none() && self.state() == RunState::Running {
            self.give(Input::Advance).unwrap();
        }
    }

    pub(crate) fn prepared(&mut self) {
        let Some(Command::Prepare(call)) = self.command.clone() else {
            panic!("nothing to prepare: {:?}", self.command);
        };
        let result = surefoot_kernel_core::Prepared::Ready { cost: self.cost.clone() };
        self.give(Input::Prepared { step: call.step, result }).unwrap();
    }

    /// The open command comes back with an answer; preparation goes well.
    pub(crate) fn answer(&mut self, answer: Answer) {
        if matches!(self.command, Some(Command::Prepare(_))) {
            self.prepared();
        }
        let Some(Command::Call(call) | Command::Transact(call)) = self.command.clone() else {
            panic!("no call is open: {:?}", self.command);
        };
        self.give(Input::Answer { step: call.step, answer }).unwrap();
    }

    pub(crate) fn succeed(&mut self, output: Value) {
        self.answer(Answer::Succeeded { output });
    }

    pub(crate) fn pass(&mut self, span: Micros) {
        self.now = self.now.plus(span);
    }

    /// The worker dies: another one claims after the lease.
    pub(crate) fn crash(&mut self) {
        self.command = None;
        self.claim();
    }

    pub(crate) fn completed(&self, step: &str) -> Option<&Value> {
        self.facts.iter().find_map(|fact| match fact {
            Fact::StepCompleted { step: done, output, .. } if done.as_str() == step => Some(output),
            _ => None,
        })
    }

    /// What the run would be after these facts alone.
    pub(crate) fn after(&self, facts: &[Fact]) -> Run {
        facts.iter().fold(self.held.run.clone(), apply)
    }
}

pub(crate) fn failed(retryable: bool) -> Answer {
    let failure = Failure::new("BUSY", "busy");
    Answer::Failed { failure, retryable, retry_after: None }
}

pub(crate) fn unknown() -> Answer {
    Answer::Unknown { message: "no answer".to_owned(), evidence: Some("half".to_owned()) }
}
