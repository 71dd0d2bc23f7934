//! What the application and people do about runs that wait for them.

use surefoot_kernel_core::{Code, Failure, RowInput, Signal, StepKey, Verdict};

use super::provider::Did;

/// What the application does when a run waits.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Sends a signal.
    Signal(Signal),
    /// Cancels the run that the event started, and with it everything below.
    Cancel,
}

/// What a person does about a run that needs one, or that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verb {
    /// Says what became of the effect.
    Resolve(Verdict),
    /// Has the provider asked again.
    Reconcile,
    /// Has the run tried again.
    Retry,
}

impl Verb {
    /// As the core takes it, about a step.
    pub(super) fn input(self, step: StepKey) -> RowInput {
        match self {
            Self::Resolve(verdict) => RowInput::Resolve { step, verdict },
            Self::Reconcile => RowInput::AskReconcile { step },
            Self::Retry => RowInput::Retry,
        }
    }

    /// Whether the action may be called again since.
    const fn lets_it_be_called_again(&self) -> bool {
        match self {
            Self::Resolve(Verdict::NotPerformed) | Self::Retry => true,
            Self::Resolve(Verdict::Succeeded { .. } | Verdict::Failed { .. }) | Self::Reconcile => {
                false
            }
        }
    }
}

impl Did {
    /// Whether a person let the action be called again.
    pub(super) const fn lets_it_be_called_again(&self) -> bool {
        match self {
            Self::Attended(verb) => verb.lets_it_be_called_again(),
            Self::Called
            | Self::CarriedOut
            | Self::Asked
            | Self::Wrote(_)
            | Self::PassedFence(_) => false,
        }
    }
}

/// A person who is asked only where a marked call was never made, and says so.
pub(super) fn nothing_happened(error: &Failure) -> Option<Verb> {
    (error.code == Code::EFFECT_OUTCOME_UNKNOWN).then_some(Verb::Resolve(Verdict::NotPerformed))
}
