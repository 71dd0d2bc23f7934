//! The run: what a store keeps of one execution, as the core sees it.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    App, Code, Dependency, EffectKey, EffectState, EventId, Micros, RunId, Scope, SessionId,
    StepCharge, StepKey, Timestamp, VersionId, WorkflowKey,
};

/// The states of a run, without their data. Exhaustive on purpose: a new state must stop every caller's build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Ready for a worker, now or after a backoff.
    Queued,
    /// A worker holds the lease.
    Running,
    /// Parked on a signal, its children or a deadline.
    Waiting,
    /// Ended with a result.
    Succeeded,
    /// Ended with an error; an operator may retry it.
    Failed,
    /// Ended by a cancel request.
    Canceled,
    /// Nothing moves until a person says what is true.
    NeedsAttention,
}

impl RunState {
    /// Every state.
    pub const ALL: &'static [Self] = &[
        Self::Queued,
        Self::Running,
        Self::Waiting,
        Self::Succeeded,
        Self::Failed,
        Self::Canceled,
        Self::NeedsAttention,
    ];

    /// The word used in stores and views.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::NeedsAttention => "needs_attention",
        }
    }

    /// Whether the run has ended. Attention is not an end.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed | Self::Canceled => true,
            Self::Queued | Self::Running | Self::Waiting | Self::NeedsAttention => false,
        }
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for RunState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().copied().find(|state| state.as_str() == text);
        known.ok_or_else(|| {
            let all: Vec<_> = Self::ALL.iter().map(|state| state.as_str()).collect();
            format!("`{text}` is not a state of a run; the states are {}", all.join(", "))
        })
    }
}

/// How a run treats effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Effects happen.
    Execute,
    /// Effects are planned and listed; none happens.
    DryRun,
}

impl Mode {
    /// The word used in stores and views.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Execute => "execute",
            Self::DryRun => "dry_run",
        }
    }
}

/// What of a run never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Who owns it.
    pub app: App,
    /// The boundary it stays in.
    pub scope: Scope,
    /// The workflow.
    pub workflow: WorkflowKey,
    /// The version it is pinned to.
    pub version: VersionId,
    /// Hash of the plan's footprint: what a worker must be able to run.
    pub footprint: String,
    /// Whether effects happen.
    pub mode: Mode,
    /// What started it.
    pub event: Option<EventId>,
    /// The trigger kind whose `with` computes the inputs; absent when the event's data are the inputs.
    pub trigger: Option<String>,
    /// The event's time: `now()` in expressions.
    pub occurred_at: Timestamp,
    /// The top of its tree; itself when it is no child.
    pub root: RunId,
    /// The step that created it.
    pub parent: Option<Parent>,
    /// Store time.
    pub created_at: Timestamp,
}

/// The step that created a child run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The parent run.
    pub run: RunId,
    /// Its step.
    pub step: StepKey,
    /// Position among the step's children.
    pub index: u32,
    /// How far below the root the child is, from 1.
    pub depth: u32,
}

impl Origin {
    /// How far below the root it is; 0 for a run that is no child.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.parent.as_ref().map_or(0, |parent| parent.depth)
    }
}

/// One execution pinned to one version. Changed only by [`apply`](crate::apply).
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// What never changes.
    pub origin: Arc<Origin>,
    /// Who may write: raised by each claim, takeover and operator input.
    pub generation: u64,
    /// On what a write was decided: raised by each commit (renewals aside).
    pub revision: u64,
    /// Journaled facts so far.
    pub seq: u64,
    /// Bytes of the journal so far.
    pub journal_bytes: u64,
    /// Claims so far.
    pub attempt: u64,
    /// Executions in a row that ended badly, the present one included until it proves otherwise.
    pub failures: u32,
    /// Claims since the previous durable outcome, the present one included, parks excluded.
    pub step_attempt: u32,
    /// The first claim.
    pub started_at: Option<Timestamp>,
    /// The end, if it has ended.
    pub ended_at: Option<Timestamp>,
    /// Set once cancel was requested.
    pub cancel: Option<CancelRequest>,
    /// The deadline of the step that parked first with one; until that step's outcome.
    pub deadline: Option<StepDeadline>,
    /// What the open step has charged; until its outcome, so that it pays once over retries and parks.
    pub charged: Option<StepCharge>,
    /// How the open step's last wait ended; until its outcome.
    pub resume: Option<Resume>,
    /// Why the last execution ended badly; for people, until the next durable outcome.
    pub last_failure: Option<Failure>,
    /// Where it stands.
    pub phase: Phase,
}

/// Where a run stands, with the data that exists only there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Ready from an instant on.
    Queued {
        /// Not claimed before.
        ready_at: Timestamp,
        /// What the next claim does first.
        todo: Todo,
    },
    /// Held by a worker.
    Running {
        /// By whom and until when.
        lease: Lease,
        /// What has to be explained before anything else.
        todo: Todo,
    },
    /// Parked.
    Waiting(Wait),
    /// Stands in a person's list.
    NeedsAttention(Attention),
    /// Ended well.
    Succeeded {
        /// Output of the last top-level step; keeps its JSON type.
        result: Value,
        /// A sentence for people.
        message: Option<String>,
    },
    /// Ended badly.
    Failed {
        /// Why.
        error: Failure,
        /// The effect that was open when an operator gave the run up; listed for ever.
        abandoned: Option<OpenEffect>,
    },
    /// Ended by request.
    Canceled {
        /// The reason that was given.
        message: Option<String>,
    },
}

/// What a worker does first with a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Todo {
    /// Go on with the steps.
    Steps,
    /// Find out what became of an effect; the step is not called again before.
    Reconcile(OpenEffect),
}

/// An effect that is not explained yet, or whose output could not be kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenEffect {
    /// The step.
    pub step: StepKey,
    /// Its action.
    pub action: String,
    /// What is known.
    pub state: EffectState,
    /// When the call was marked.
    pub since: Timestamp,
    /// What the action could tell, at most 8 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// The right of one worker session to write, while the generation is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Who holds it.
    pub owner: SessionId,
    /// Store time; past it another worker may claim.
    pub until: Timestamp,
    /// How long a renewal lasts.
    pub length: Micros,
}

/// A parked run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// The step that waits.
    pub step: StepKey,
    /// The signal or the children that end it; a `delay` has none.
    pub on: Option<Dependency>,
    /// The instant that ends it.
    pub deadline: Option<Timestamp>,
    /// When it parked.
    pub since: Timestamp,
    /// Parks in a row on what had already occurred: feeds the delay of this park only.
    pub spins: u32,
}

/// How a wait ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resume {
    /// The step that waited.
    pub step: StepKey,
    /// What ended the wait.
    pub wake: Wake,
    /// See [`Wait::spins`].
    pub spins: u32,
}

impl Resume {
    /// The step, if the end of its children ended the wait.
    #[must_use]
    pub fn on_children(&self) -> Option<&StepKey> {
        matches!(self.wake, Wake::Children).then_some(&self.step)
    }
}

/// What ended a wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wake {
    /// The signal, with its data.
    Signal(Value),
    /// The deadline.
    Deadline,
    /// The last of the children that the step waits for has ended.
    Children,
}

/// The deadline of a step's wait, from its first park on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepDeadline {
    /// The step.
    pub step: StepKey,
    /// The instant.
    pub at: Timestamp,
}

/// Why a run waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attention {
    /// What is wrong, with its code and step.
    pub error: Failure,
    /// The effect that has to be explained, or whose output has to be supplied.
    pub effect: Option<OpenEffect>,
}

/// Who asked for cancel, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelRequest {
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Timestamp,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Stable.
    pub code: Code,
    /// A sentence for people, at most 8 KiB.
    pub message: String,
    /// Where, if at a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepKey>,
    /// Structured facts, such as a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl Failure {
    /// A failure without place or details. The message is cut and escaped so that every store can keep it.
    #[must_use]
    pub fn new(code: impl Into<Code>, message: impl AsRef<str>) -> Self {
        let message = crate::payload::text_for_storage(message.as_ref());
        Self { code: code.into(), message, step: None, details: None }
    }

    /// At a step.
    #[must_use]
    pub fn at(mut self, step: &StepKey) -> Self {
        self.step = Some(step.clone());
        self
    }

    /// With structured facts.
    #[must_use]
    pub fn details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }
}

impl Run {
    /// A run that nobody has claimed yet.
    #[must_use]
    pub fn new(id: RunId, origin: Origin) -> Self {
        let ready_at = origin.created_at;
        Self {
            id,
            origin: Arc::new(origin),
            generation: 0,
            revision: 0,
            seq: 0,
            journal_bytes: 0,
            attempt: 0,
            failures: 0,
            step_attempt: 0,
            started_at: None,
            ended_at: None,
            cancel: None,
            deadline: None,
            charged: None,
            resume: None,
            last_failure: None,
            phase: Phase::Queued { ready_at, todo: Todo::Steps },
        }
    }

    /// The state, without its data.
    #[must_use]
    pub const fn state(&self) -> RunState {
        match self.phase {
            Phase::Queued { .. } => RunState::Queued,
            Phase::Running { .. } => RunState::Running,
            Phase::Waiting(_) => RunState::Waiting,
            Phase::NeedsAttention(_) => RunState::NeedsAttention,
            Phase::Succeeded { .. } => RunState::Succeeded,
            Phase::Failed { .. } => RunState::Failed,
            Phase::Canceled { .. } => RunState::Canceled,
        }
    }

    /// The effect that has to be explained, or whose output has to be supplied.
    #[must_use]
    pub const fn effect(&self) -> Option<&OpenEffect> {
        match &self.phase {
            Phase::Queued { todo: Todo::Reconcile(effect), .. }
            | Phase::Running { todo: Todo::Reconcile(effect), .. } => Some(effect),
            Phase::NeedsAttention(attention) => attention.effect.as_ref(),
            Phase::Failed { abandoned, .. } => abandoned.as_ref(),
            Phase::Queued { todo: Todo::Steps, .. }
            | Phase::Running { todo: Todo::Steps, .. }
            | Phase::Waiting(_)
            | Phase::Succeeded { .. }
            | Phase::Canceled { .. } => None,
        }
    }

    /// Whether an effect may have happened and nobody knows.
    #[must_use]
    pub const fn has_unsettled_effect(&self) -> bool {
        match self.effect() {
            Some(effect) => effect.state.is_unsettled(),
            None => false,
        }
    }

    /// The lease, while running.
    #[must_use]
    pub const fn lease(&self) -> Option<&Lease> {
        match &self.phase {
            Phase::Running { lease, .. } => Some(lease),
            Phase::Queued { .. }
            | Phase::Waiting(_)
            | Phase::NeedsAttention(_)
            | Phase::Succeeded { .. }
            | Phase::Failed { .. }
            | Phase::Canceled { .. } => None,
        }
    }

    /// When a worker may claim it: end of backoff, or end of lease. `None` where no claim ever fits.
    #[must_use]
    pub const fn claimable_at(&self) -> Option<Timestamp> {
        match &self.phase {
            Phase::Queued { ready_at, .. } => Some(*ready_at),
            Phase::Running { lease, .. } => Some(lease.until),
            Phase::Waiting(_)
            | Phase::NeedsAttention(_)
            | Phase::Succeeded { .. }
            | Phase::Failed { .. }
            | Phase::Canceled { .. } => None,
        }
    }

    /// In its first execution: how long after its creation it was taken.
    #[must_use]
    pub fn first_lag(&self) -> Option<Micros> {
        let started = self.started_at.filter(|_| self.attempt == 1)?;
        Some(started.since(self.origin.created_at))
    }

    /// What a write was decided on.
    #[must_use]
    pub const fn stamp(&self) -> Stamp {
        Stamp {
            run: self.id,
            generation: self.generation,
            revision: self.revision,
            seq: self.seq,
            has_effect: self.effect().is_some(),
        }
    }

    /// Whether a step has paid already.
    #[must_use]
    pub fn has_paid(&self, step: &StepKey) -> bool {
        self.charged.as_ref().is_some_and(|charged| charged.step == *step)
    }

    /// The key under which a step's effect happens, for every attempt.
    #[must_use]
    pub fn effect_key(&self, step: &StepKey) -> EffectKey {
        EffectKey::of(self.id, step)
    }
}

/// What a write was decided on: the fence of every commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// The run.
    pub run: RunId,
    /// Who may write.
    pub generation: u64,
    /// On what it was decided.
    pub revision: u64,
    /// Journaled facts before the write.
    pub seq: u64,
    /// Whether an effect was open: a write may settle it. Fences nothing.
    pub has_effect: bool,
}

/// Why a write is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fenced {
    /// Stop and write nothing more.
    #[error("another worker took the run over")]
    LeaseLost,
    /// Reload and decide again.
    #[error("the run was changed since it was read")]
    Conflict,
}

impl Stamp {
    /// The one fence check: who may write, and on what.
    ///
    /// # Errors
    /// [`Fenced::LeaseLost`] if the generation differs, [`Fenced::Conflict`] if only the revision does.
    pub const fn check(self, run: &Run) -> Result<(), Fenced> {
        self.check_counters(run.generation, run.revision)
    }

    /// The same check for a store that has read no more of the row than its two counters.
    ///
    /// # Errors
    /// As [`Stamp::check`].
    pub const fn check_counters(self, generation: u64, revision: u64) -> Result<(), Fenced> {
        if self.generation != generation {
            Err(Fenced::LeaseLost)
        } else if self.revision != revision {
            Err(Fenced::Conflict)
        } else {
            Ok(())
        }
    }
}
