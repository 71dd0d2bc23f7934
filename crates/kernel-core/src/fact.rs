//! Facts: what happened to a run. Coarse, in words of the domain, never "write row X".

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    CancelRequest, Code, Dependency, EffectState, Failure, Finding, Lease, StepCharge, StepKey,
    StepValues, Timestamp, Wake,
};

/// One thing that happened to a run.
///
/// The stored form of the journaled ones stays readable for ever; a kind that this build does not know makes the
/// journal unreadable to it (`RESTORE_INVALID`), never half-read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    // Journaled.
    /// Step zero computed the inputs.
    InputsComputed {
        /// By name.
        inputs: Value,
    },
    /// A control step chose its branch or its items.
    BranchTaken {
        /// The control step.
        step: StepKey,
        /// What it chose.
        taken: Taken,
    },
    /// A step charges the budget of its root run, once.
    Charged(StepCharge),
    /// The application's resolver gave values to a step. Every later attempt sees the same.
    ValuesResolved {
        /// The step.
        step: StepKey,
        /// By reference; none of them was recorded before.
        values: StepValues,
    },
    /// An ambiguous call is about to be made.
    CallMarked {
        /// The step.
        step: StepKey,
        /// Its action.
        action: String,
        /// Store time.
        at: Timestamp,
    },
    /// The call ended and nobody knows what became of the effect.
    OutcomeUnknown {
        /// The step.
        step: StepKey,
        /// What is known, a sentence.
        message: String,
        /// What the action kept, at most 8 KiB.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<String>,
    },
    /// The marked effect did not happen.
    NothingHappened {
        /// The step.
        step: StepKey,
        /// Whose word that is.
        by: SaidBy,
    },
    /// A step has an outcome.
    StepCompleted {
        /// The step.
        step: StepKey,
        /// Its output.
        output: Value,
        /// Whose word that is.
        by: SaidBy,
    },
    /// The effect happened, but its output cannot be kept.
    OutputRefused {
        /// The step.
        step: StepKey,
        /// Its action.
        action: String,
        /// `OUTPUT_INVALID` or `OUTPUT_TOO_LARGE`.
        error: Failure,
        /// The first 8 KiB of the output.
        evidence: String,
        /// Store time.
        at: Timestamp,
    },
    /// A step failed for good.
    StepFailed {
        /// The step.
        step: StepKey,
        /// Why.
        error: Failure,
        /// What became of its effect, if a call was marked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effect: Option<EffectState>,
        /// Whose word that is.
        by: SaidBy,
        /// The run goes on with the step's `catch`: the failure is its outcome.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        caught: bool,
    },
    /// A dry run looked at a step, without doing anything.
    StepPlanned {
        /// The step.
        step: StepKey,
        /// What it found.
        finding: Finding,
    },
    /// The first park of a step fixed its deadline.
    DeadlineSet {
        /// The step.
        step: StepKey,
        /// The instant.
        at: Timestamp,
    },
    /// Somebody asked to cancel.
    CancelRequested(CancelRequest),
    /// The run needs a person.
    AttentionCalled {
        /// Why.
        error: Failure,
    },
    /// An operator has a worker ask the provider again.
    ReconcileAsked {
        /// The step.
        step: StepKey,
    },
    /// An operator has the run tried again.
    Retried,
    /// The run ended.
    Ended {
        /// How.
        end: End,
        /// Store time.
        at: Timestamp,
    },

    // Row only: scheduling. Folding the journal does not need them.
    /// A worker took the run.
    Claimed {
        /// Its lease.
        lease: Lease,
        /// Store time.
        at: Timestamp,
    },
    /// A worker took the run over from itself after an unknown commit: nothing is counted.
    TakenOver {
        /// Its lease.
        lease: Lease,
    },
    /// The writers before this are fenced out.
    FenceRaised,
    /// The worker gave the run back.
    Released {
        /// Not claimed before.
        ready_at: Timestamp,
        /// Why.
        why: ReleaseReason,
    },
    /// The run is queued again, not by a worker that held it.
    Requeued {
        /// Not claimed before.
        ready_at: Timestamp,
    },
    /// The run waits.
    Parked {
        /// The step that waits.
        step: StepKey,
        /// The signal or the children that end it.
        on: Option<Dependency>,
        /// The instant that ends it.
        deadline: Option<Timestamp>,
        /// Parks in a row on what had already occurred.
        spins: u32,
        /// Store time.
        at: Timestamp,
    },
    /// The wait ended.
    Woken {
        /// What ended it.
        wake: Wake,
        /// Not claimed before.
        ready_at: Timestamp,
        /// Whether the run parked on what had already occurred.
        at_once: bool,
    },
}

/// What a control step chose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Taken {
    /// `then`.
    Then,
    /// `else`.
    Else,
    /// This case of a switch, from 0.
    Case(u32),
    /// `default`.
    Default,
    /// No branch: a false `if` without `else`, a `switch` without a match.
    Nothing,
    /// The items of a loop.
    Items(Vec<Value>),
}

/// Whose word a fact rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SaidBy {
    /// The kernel itself: built-in steps, evaluation.
    Kernel,
    /// The action's `run`.
    Action,
    /// The action's `reconcile`.
    Reconcile,
    /// A person.
    Operator,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Well.
    Succeeded {
        /// Output of the last top-level step.
        result: Value,
        /// A sentence for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The `succeed` step, if one ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<StepKey>,
    },
    /// Badly.
    Failed(Failure),
    /// An operator gave it up; an unsettled effect stays listed as such.
    Abandoned(Failure),
    /// By request.
    Canceled,
}

/// Why a worker gave a run back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseReason {
    /// The execution ended badly and is tried again.
    Failed(Failure),
    /// The effect of the last call has to be explained.
    ToReconcile,
    /// The provider does not know the effect key yet: asked again, no failure.
    NotFoundYet,
    /// The worker stops.
    HandOver,
}

impl Fact {
    /// The step that it ends, with the code that the step ended with, if not well. A call whose outcome is unknown has
    /// ended no step.
    #[must_use]
    pub const fn ended_step(&self) -> Option<(&StepKey, Option<&Code>)> {
        match self {
            Self::StepCompleted { step, .. } => Some((step, None)),
            Self::StepFailed { step, error, .. } | Self::OutputRefused { step, error, .. } => {
                Some((step, Some(&error.code)))
            }
            Self::InputsComputed { .. }
            | Self::BranchTaken { .. }
            | Self::Charged(_)
            | Self::ValuesResolved { .. }
            | Self::StepPlanned { .. }
            | Self::CallMarked { .. }
            | Self::OutcomeUnknown { .. }
            | Self::NothingHappened { .. }
            | Self::DeadlineSet { .. }
            | Self::CancelRequested(_)
            | Self::AttentionCalled { .. }
            | Self::ReconcileAsked { .. }
            | Self::Retried
            | Self::Ended { .. }
            | Self::Claimed { .. }
            | Self::TakenOver { .. }
            | Self::FenceRaised
            | Self::Released { .. }
            | Self::Requeued { .. }
            | Self::Parked { .. }
            | Self::Woken { .. } => None,
        }
    }

    /// Whether it goes to the journal. The others change the row only.
    #[must_use]
    pub const fn is_journaled(&self) -> bool {
        match self {
            Self::InputsComputed { .. }
            | Self::BranchTaken { .. }
            | Self::Charged(_)
            | Self::ValuesResolved { .. }
            | Self::CallMarked { .. }
            | Self::OutcomeUnknown { .. }
            | Self::NothingHappened { .. }
            | Self::StepCompleted { .. }
            | Self::OutputRefused { .. }
            | Self::StepFailed { .. }
            | Self::StepPlanned { .. }
            | Self::DeadlineSet { .. }
            | Self::CancelRequested(_)
            | Self::AttentionCalled { .. }
            | Self::ReconcileAsked { .. }
            | Self::Retried
            | Self::Ended { .. } => true,
            Self::Claimed { .. }
            | Self::TakenOver { .. }
            | Self::FenceRaised
            | Self::Released { .. }
            | Self::Requeued { .. }
            | Self::Parked { .. }
            | Self::Woken { .. } => false,
        }
    }

    /// The step whose call this marks, if it is a mark.
    #[must_use]
    pub const fn marked_step(&self) -> Option<&StepKey> {
        if let Self::CallMarked { step, .. } = self { Some(step) } else { None }
    }

    /// The step whose outcome this is, if it is one: also a failure, and an effect whose output could not be kept.
    #[must_use]
    pub const fn outcome_of(&self) -> Option<&StepKey> {
        match self {
            Self::StepCompleted { step, .. }
            | Self::StepFailed { step, .. }
            | Self::OutputRefused { step, .. } => Some(step),
            Self::InputsComputed { .. }
            | Self::BranchTaken { .. }
            | Self::Charged(_)
            | Self::ValuesResolved { .. }
            | Self::CallMarked { .. }
            | Self::OutcomeUnknown { .. }
            | Self::NothingHappened { .. }
            | Self::StepPlanned { .. }
            | Self::DeadlineSet { .. }
            | Self::CancelRequested(_)
            | Self::AttentionCalled { .. }
            | Self::ReconcileAsked { .. }
            | Self::Retried
            | Self::Ended { .. }
            | Self::Claimed { .. }
            | Self::TakenOver { .. }
            | Self::FenceRaised
            | Self::Released { .. }
            | Self::Requeued { .. }
            | Self::Parked { .. }
            | Self::Woken { .. } => None,
        }
    }
}
