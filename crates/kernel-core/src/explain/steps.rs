//! One step as people see it.

use serde::Serialize;

use super::{ShownError, text};
use crate::{EffectClass, EffectKey, EffectState, StepKey, Timestamp};

/// The states of a step. Not those of its effect, and not those of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// A worker holds the run at it.
    Running,
    /// It has an outcome.
    Completed,
    /// The run is parked at it, or is tried again later.
    Waiting,
    /// It failed for good.
    Failed,
    /// A person has to say what is true.
    NeedsAttention,
    /// It ended the run early.
    Terminal,
    /// The run was canceled at it.
    Canceled,
    /// The run has not come to it; the step says why.
    NotReached,
}

impl StepState {
    /// The word used in views.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
            Self::NeedsAttention => "needs_attention",
            Self::Terminal => "terminal",
            Self::Canceled => "canceled",
            Self::NotReached => "not_reached",
        }
    }
}

/// One step of a run, or one step of the plan that the run has not come to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shown {
    /// The step's key; of a step inside a loop that was not begun, its place in the plan.
    pub key: StepKey,
    /// The action, or the word of a built-in step.
    pub action: String,
    /// What the action promises; built-in steps have none.
    pub class: Option<EffectClass>,
    /// The author's label.
    pub label: Option<String>,
    /// Where in the source, from 1.
    pub line: u32,
    /// Where it stands.
    pub state: StepState,
    /// Why it stands there, where that is not plain from the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What became of its effect, where that is known to be settled or unsettled.
    pub effect_state: Option<EffectState>,
    /// The same for every attempt; absent for steps without effects, and where no worker has come to the step.
    pub effect_key: Option<EffectKey>,
    /// Claims of the run since it came to this step; known of the open step only.
    pub attempt: Option<u32>,
    /// When the run came to it.
    #[serde(serialize_with = "text::maybe_at")]
    pub started_at: Option<Timestamp>,
    /// When its outcome was recorded.
    #[serde(serialize_with = "text::maybe_at")]
    pub finished_at: Option<Timestamp>,
    /// What went wrong.
    pub error: Option<ShownError>,
    /// Of a loop, how far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<Iterations>,
}

/// How far a loop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Iterations {
    /// Items.
    pub total: usize,
    /// Iterations that are over.
    pub completed: usize,
    /// The first iteration whose steps are listed; the ones before it are only counted.
    pub listed_from: usize,
}
