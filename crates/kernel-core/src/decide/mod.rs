//! What is done with a run: pure decisions over held state, an input and the store's time.
//!
//! One small file per family of inputs; here are only their types and the one `match`.

mod advance;
mod ahead;
mod answer;
mod backoff;
mod children;
mod claim;
mod operator;
mod park;
mod reconcile;
mod sealed;

use serde_json::Value;

use crate::plan::Plan;
use crate::{
    Amounts, Children, Code, Cursor, Dependency, EffectClass, EffectKey, Exceeded, Fact, Failure,
    Invocation, Joined, JournalEntry, Lease, Micros, Run, RunId, RunState, StepKey, StepValues,
    Timestamp, Wake,
};

pub(crate) use advance::{exhausted, journal_is_full, policy_of};
pub(crate) use backoff::retry_delay;
pub use backoff::{RELEASE_BACKOFF_FIRST, RELEASE_BACKOFF_MAX, release_backoff};
pub use sealed::{Receipt, Sealed, Unopened};

/// Bytes of facts that one run's journal may hold.
pub const JOURNAL_MAX_BYTES: u64 = 256 * 1024 * 1024;
/// Bytes of JSON of one output.
pub const OUTPUT_MAX_BYTES: usize = 1024 * 1024;
/// How long `NotFound` of a reconcile proves nothing, if the action does not say.
pub const SETTLE_AFTER_DEFAULT: Micros = Micros::from_secs(600);
/// How long after an unknown outcome the provider is first asked.
pub const RECONCILE_FIRST_AFTER: Micros = Micros::from_secs(1);

/// A run in memory: the stored state, and the position rebuilt by folding the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// As stored.
    pub run: Run,
    /// Rebuilt, never stored.
    pub cursor: Cursor,
}

impl Held {
    /// A run as a store holds it: folds the whole journal over the plan.
    ///
    /// # Errors
    /// [`RestoreInvalid`](crate::RestoreInvalid) if a row is missing or does not belong where it stands.
    pub fn restore(
        run: Run,
        plan: &Plan,
        invocation: Invocation,
        journal: &[JournalEntry],
    ) -> Result<Self, crate::RestoreInvalid> {
        JournalEntry::check_contiguous(journal, 0, run.seq)?;
        let cursor = Cursor::new(&run, plan, invocation);
        let cursor = cursor.restore(plan, journal.iter().flat_map(|entry| &entry.facts))?;
        Ok(Self { run, cursor })
    }

    /// The same run, read again: folds only what the journal got since.
    ///
    /// # Errors
    /// As [`Held::restore`].
    pub fn catch_up(
        self,
        run: Run,
        plan: &Plan,
        journal: &[JournalEntry],
    ) -> Result<Self, crate::RestoreInvalid> {
        JournalEntry::check_contiguous(journal, self.run.seq, run.seq)?;
        let facts = journal.iter().flat_map(|entry| &entry.facts);
        Ok(Self { run, cursor: self.cursor.restore(plan, facts)? })
    }

    /// Moves by facts: the run and the position together.
    ///
    /// # Errors
    /// [`RestoreInvalid`](crate::RestoreInvalid) if a fact does not belong where the run stands; facts of a
    /// decision on this same value always do.
    pub fn apply<'f>(
        mut self,
        plan: &Plan,
        facts: impl IntoIterator<Item = &'f Fact>,
    ) -> Result<Self, crate::RestoreInvalid> {
        for fact in facts {
            self.cursor.advance(plan, fact)?;
            self.run.apply(fact);
        }
        Ok(self)
    }
}

/// What comes to a run from the worker that holds it.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// What to do next?
    Advance,
    /// All that comes before the call was done: schema, authorisation.
    Prepared {
        /// The step.
        step: StepKey,
        /// What came of it.
        result: Prepared,
    },
    /// The action came back.
    Answer {
        /// The step.
        step: StepKey,
        /// With what.
        answer: Answer,
    },
    /// The application's resolver gave values to the open step. What is recorded already stays as it is.
    ///
    /// Lazy: durable ahead of the call that comes next, or in the step's own transaction. A driver that hands a value
    /// to a call which goes on already makes it durable first.
    Resolved {
        /// The step.
        step: StepKey,
        /// By reference.
        values: StepValues,
    },
    /// A transactional action has done its work, inside of the transaction that records it.
    Worked {
        /// The step.
        step: StepKey,
        /// What it charges, last in its transaction.
        cost: Amounts,
        /// An output that fits its schema and size.
        output: Value,
    },
    /// The provider was asked what became of an effect.
    Reconciled {
        /// The step.
        step: StepKey,
        /// What it said.
        answer: ReconcileAnswer,
    },
    /// The children of a built-in step exist, or could not be created.
    Spawned {
        /// The step.
        step: StepKey,
        /// Why not.
        result: Result<(), Failure>,
    },
    /// The children of a built-in step have been read.
    Joined {
        /// The step.
        step: StepKey,
        /// What they came to.
        joined: Joined,
    },
    /// Anything that needs neither plan nor position.
    Row(RowInput),
}

/// What comes to a run from outside, or from its worker, and is decided on the stored row alone.
#[derive(Debug, Clone, PartialEq)]
pub enum RowInput {
    /// A worker takes it: queued and due, or running with a lease that ran out.
    Claim {
        /// The lease that it gets.
        lease: Lease,
    },
    /// A worker takes it over from itself, since the outcome of its last commit is unknown.
    TakeOver {
        /// The generation under which that commit was sent.
        generation: u64,
        /// The lease that it gets.
        lease: Lease,
    },
    /// Its worker stops, between two steps.
    HandOver,
    /// Its journal or plan cannot be read.
    Unreadable {
        /// What is wrong, and where.
        what: String,
    },
    /// Somebody wants it canceled.
    Cancel {
        /// Who.
        actor: String,
        /// Why.
        reason: String,
    },
    /// Recovery found its lease run out with cancel requested.
    LeaseGone,
    /// What it waits for occurred.
    Wake {
        /// What.
        wake: Wake,
        /// Whether its own park found that it had occurred already.
        at_once: bool,
    },
    /// A sibling has ended, and this child was held back until then.
    LetGo,
    /// An operator says what became of an effect.
    Resolve {
        /// The step.
        step: StepKey,
        /// What is true.
        verdict: Verdict,
    },
    /// An operator has the provider asked again.
    AskReconcile {
        /// The step.
        step: StepKey,
    },
    /// An operator has it tried again.
    Retry,
    /// An operator gives it up.
    Abandon {
        /// Whether an effect that may have happened may stay unexplained.
        accept_unknown: bool,
        /// Whether no live worker can run its plan.
        unclaimable: bool,
    },
}

/// What came of the preparation of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Prepared {
    /// The call may be made, at this cost.
    Ready {
        /// What it charges, unless the step has paid already.
        cost: Amounts,
    },
    /// It may not: refused, failed or waiting; nothing was called.
    Stopped(Answer),
}

impl Input {
    /// What a refused charge makes of the input whose decision asked for it; `None` for one that never charges.
    #[must_use]
    pub fn over_budget(self, exceeded: &Exceeded) -> Option<Self> {
        let (retryable, retry_after) = (false, None);
        let answer = Answer::Failed { failure: exceeded.failure(), retryable, retry_after };
        match self {
            Self::Prepared { step, result: Prepared::Ready { .. } } => {
                Some(Self::Prepared { step, result: Prepared::Stopped(answer) })
            }
            Self::Worked { step, .. } => Some(Self::Answer { step, answer }),
            Self::Advance
            | Self::Resolved { .. }
            | Self::Prepared { result: Prepared::Stopped(_), .. }
            | Self::Answer { .. }
            | Self::Reconciled { .. }
            | Self::Spawned { .. }
            | Self::Joined { .. }
            | Self::Row(_) => None,
        }
    }
}

/// How an action came back, in one vocabulary for all classes.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// With an output that fits its schema and size.
    Succeeded {
        /// The output.
        output: Value,
    },
    /// With an output that cannot be kept.
    OutputRefused {
        /// `OUTPUT_INVALID` or `OUTPUT_TOO_LARGE`.
        error: Failure,
        /// The first 8 KiB of it.
        evidence: String,
    },
    /// Without one. From an ambiguous action, retryable is its word that nothing happened, not retryable is the
    /// provider's definite no.
    Failed {
        /// Why.
        failure: Failure,
        /// Whether trying again can help.
        retryable: bool,
        /// Not before.
        retry_after: Option<Micros>,
    },
    /// It waits, and nothing happened.
    Waiting {
        /// For what.
        on: Dependency,
    },
    /// Nobody knows: an error, a panic or a timeout after the mark, or the action says so.
    Unknown {
        /// What is known, a sentence.
        message: String,
        /// What the action kept.
        evidence: Option<String>,
    },
    /// The driver did not make the call after all (its lease was nearly over).
    NotCalled,
}

impl Answer {
    /// A wait for what no signal can be named is a failure: nothing would ever end it.
    fn that_can_be_kept(self) -> Self {
        match self {
            Self::Waiting { on } if !on.is_storable() => {
                let text = "the action waits for a signal with a NUL character in its kind or key: no signal has one";
                let failure = Failure::new(Code::ACTION_ERROR, text);
                Self::Failed { failure, retryable: false, retry_after: None }
            }
            kept @ (Self::Succeeded { .. }
            | Self::OutputRefused { .. }
            | Self::Failed { .. }
            | Self::Waiting { .. }
            | Self::Unknown { .. }
            | Self::NotCalled) => kept,
        }
    }
}

/// What the provider said of an effect.
#[derive(Debug, Clone, PartialEq)]
pub enum ReconcileAnswer {
    /// It happened, with this output.
    Succeeded {
        /// The output.
        output: Value,
    },
    /// It happened, and its output cannot be kept.
    OutputRefused {
        /// `OUTPUT_INVALID` or `OUTPUT_TOO_LARGE`.
        error: Failure,
        /// The first 8 KiB of it.
        evidence: String,
    },
    /// The provider refused this key, or will from now on.
    Failed {
        /// Why.
        failure: Failure,
    },
    /// The provider does not know the key yet.
    NotFound,
    /// The provider cannot tell.
    Unknown {
        /// Why.
        why: String,
    },
    /// Asking failed.
    Error {
        /// Why.
        message: String,
        /// Not before.
        retry_after: Option<Micros>,
    },
}

/// What an operator says became of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It happened, with this output; the caller has checked it against the plan's schema.
    Succeeded {
        /// The output.
        output: Value,
    },
    /// It was refused.
    Failed {
        /// `EFFECT_CONFIRMED_FAILED` if absent.
        code: Option<Code>,
        /// A sentence for people.
        message: String,
    },
    /// It did not happen: the step runs again.
    NotPerformed,
}

/// When the facts of a decision must be durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// With the next commit, at the latest 1 s, 100 facts or 256 KiB after the first; a transactional step writes them
    /// in its own transaction.
    Lazy,
    /// The commit starts at once.
    Now,
    /// Durable, with everything before, ahead of the command.
    Before,
}

/// What is done about an input.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What happened to the run; empty where only a command follows.
    pub facts: Vec<Fact>,
    /// What the driver does next, once the store has answered.
    pub command: Sealed,
    /// When the facts must be durable.
    pub durability: Durability,
}

/// What the driver does, after the facts are as durable as the decision asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Check the config, authorise: everything before the call of a non-pure action.
    Prepare(Call),
    /// Call `run`.
    Call(Call),
    /// Prepare, run and record in one transaction of the store.
    Transact(Call),
    /// Ask the provider what became of the effect.
    Reconcile(Call),
    /// Create the children of a built-in step.
    Spawn(Spawn),
    /// Read what the children of a built-in step came to.
    Collect(Collect),
}

/// Children that a built-in step wants.
#[derive(Debug, Clone, PartialEq)]
pub struct Spawn {
    /// The step.
    pub step: StepKey,
    /// In order.
    pub children: Children,
    /// At most so many are unfinished at once; absent is all of them.
    pub parallel: Option<u32>,
}

/// Results that a built-in step wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collect {
    /// The step.
    pub step: StepKey,
    /// Whether its outcome is the list of results, or the one result.
    pub is_list: bool,
}

/// One call of an action.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The step.
    pub step: StepKey,
    /// The action.
    pub action: String,
    /// What it promises.
    pub class: EffectClass,
    /// The resolved config.
    pub config: Value,
    /// The same for every attempt.
    pub effect_key: EffectKey,
    /// From 1.
    pub attempt: u32,
    /// How the step's last wait ended, if it resumes from one.
    pub resumed: Option<Wake>,
    /// How long `run` may take.
    pub timeout: Option<Micros>,
}

/// Why an input does nothing. Normal life: a late answer, a double wake, an operator who was too late.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The run is not where the input needs it.
    #[error("run {run} is {state}: {why}")]
    WrongState {
        /// Which run.
        run: RunId,
        /// Where it stands.
        state: RunState,
        /// What the input needs.
        why: &'static str,
    },
    /// The input is about another step than the open one.
    #[error("step `{got}` is not open: run {run} stands at {open}")]
    WrongStep {
        /// Which run.
        run: RunId,
        /// The step of the input.
        got: StepKey,
        /// Where the run stands.
        open: String,
    },
    /// It is too early.
    #[error("run {run} is not due yet")]
    NotDue {
        /// Which run.
        run: RunId,
    },
    /// An effect has to be explained first.
    #[error(
        "the effect of step `{step}` of run {run} is unexplained: resolve or reconcile it first"
    )]
    EffectUnsettled {
        /// Which run.
        run: RunId,
        /// Whose effect.
        step: StepKey,
    },
    /// The run was given up with an open effect, which another attempt could repeat.
    #[error(
        "run {run} was abandoned with the effect of step `{step}` open, and a retry could repeat it: start a new run"
    )]
    GivenUp {
        /// Which run.
        run: RunId,
        /// Whose effect.
        step: StepKey,
    },
    /// Only an output can help.
    #[error(
        "the effect of step `{step}` of run {run} did happen: supply its output with `--succeeded`"
    )]
    OutputNeeded {
        /// Which run.
        run: RunId,
        /// Whose effect.
        step: StepKey,
    },
}

/// Decides what is done about an input.
///
/// Total: no clock, no IO, no randomness, no panic on any input. The same arguments give the same answer. A
/// rejected input changes nothing.
///
/// # Errors
/// [`Rejection`] if the run is not where the input needs it.
pub fn decide(
    held: &Held,
    plan: &Plan,
    input: Input,
    now: Timestamp,
) -> Result<Decision, Rejection> {
    match input {
        Input::Advance => advance::advance(held, plan, now),
        Input::Prepared { step, result } => answer::prepared(held, plan, &step, result, now),
        Input::Answer { step, answer } => answer::answered(held, plan, &step, answer, now),
        Input::Resolved { step, values } => answer::resolved(held, plan, step, values),
        Input::Worked { step, cost, output } => {
            answer::worked(held, plan, &step, cost, output, now)
        }
        Input::Reconciled { step, answer } => reconcile::reconciled(held, plan, &step, answer, now),
        Input::Spawned { step, result } => children::spawned(held, plan, &step, result, now),
        Input::Joined { step, joined } => children::joined(held, plan, &step, joined, now),
        Input::Row(input) => {
            let facts = decide_row(&held.run, input, now)?;
            Ok(Decision::record(&held.run, facts, Durability::Now))
        }
    }
}

/// Decides what needs neither plan nor position: claims, wakes, cancel, operator verbs. Stores and operators use
/// it on the row; [`decide`] does the same for a run that a worker holds. The facts are committed at once; no facts
/// mean that nothing is written.
///
/// # Errors
/// [`Rejection`] if the run is not where the input needs it.
pub fn decide_row(run: &Run, input: RowInput, now: Timestamp) -> Result<Vec<Fact>, Rejection> {
    match input {
        RowInput::Claim { lease } => claim::claim(run, lease, now),
        RowInput::TakeOver { generation, lease } => claim::take_over(run, generation, lease),
        RowInput::HandOver => claim::hand_over(run, now),
        RowInput::Unreadable { what } => claim::unreadable(run, &what),
        RowInput::Cancel { actor, reason } => Ok(operator::cancel(run, actor, &reason, now)),
        RowInput::LeaseGone => claim::lease_gone(run, now),
        RowInput::Wake { wake, at_once } => park::wake(run, wake, at_once, now),
        RowInput::LetGo => claim::let_go(run, now),
        RowInput::Resolve { step, verdict } => operator::resolve(run, &step, verdict, now),
        RowInput::AskReconcile { step } => operator::ask_reconcile(run, &step, now),
        RowInput::Retry => operator::retry(run, now),
        RowInput::Abandon { accept_unknown, unclaimable } => {
            operator::abandon(run, accept_unknown, unclaimable, now)
        }
    }
}

impl Decision {
    /// Facts without a command.
    fn record(run: &Run, facts: Vec<Fact>, durability: Durability) -> Self {
        let command = Sealed::none(run);
        Self { facts, command, durability }
    }

    /// A command behind facts.
    fn command(held: &Held, facts: Vec<Fact>, command: Command, durability: Durability) -> Self {
        let command = Sealed::new(&held.run, &facts, command, durability);
        Self { facts, command, durability }
    }
}

fn wrong_state(run: &Run, why: &'static str) -> Rejection {
    Rejection::WrongState { run: run.id, state: run.state(), why }
}
