//! Small ports at the edge: clock, ids, wake-ups, observation, values.

use async_trait::async_trait;
use serde_json::Value;

use super::Source;
use crate::{
    EffectClass, EventId, Micros, RunId, RunState, SessionId, StepKey, Timestamp, VersionId,
};

/// Time as this process sees it. Serves logs and pauses; what is stored is the store's time.
pub trait Clock: Send + Sync {
    /// Wall clock.
    fn wall(&self) -> Timestamp;
    /// Since an instant of this process that never changes; never goes back.
    fn monotonic(&self) -> Micros;
}

/// A store whose clock, the clock of record, a test may move on: leases, backoffs and deadlines pass at once.
pub trait PassTime: Send + Sync {
    /// Lets the clock gain a span, for every handle of this process.
    fn pass_time(&self, span: Micros);
}

/// New ids: unique, and roughly in order of creation.
pub trait Ids: Send + Sync {
    /// For an event.
    fn event(&self) -> EventId;
    /// For a version.
    fn version(&self) -> VersionId;
    /// For a worker session.
    fn session(&self) -> SessionId;
}

/// Carries "something is ready" between processes. Best effort: nothing depends on it.
#[async_trait]
pub trait WakeBus: Send + Sync {
    /// Tells the others.
    async fn announce(&self, app: &str);
    /// Completes when another process announced something for the app.
    async fn heard(&self, app: &str);
}

/// Observes; cannot influence. A panic in it changes nothing.
pub trait Trace: Send + Sync {
    /// A worker begins or goes on with a run.
    fn run_started(&self, run: RunId, generation: u64);
    /// An action is about to be called.
    fn step_started(&self, run: RunId, step: &StepKey, attempt: u32);
    /// A step's outcome is durable.
    fn step_finished(&self, run: RunId, step: &StepKey, code: Option<&str>);
    /// What a worker leaves is durable.
    fn run_finished(&self, run: RunId, state: RunState);
    /// Something that is counted or measured. Called on the way of each commit: be quick.
    fn measured(&self, measure: Measure);
}

/// What a worker measures, by the clock of its process where nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// A claim was answered.
    Claimed {
        /// Runs that it brought.
        runs: usize,
        /// From the question to the answer.
        took: Micros,
    },
    /// A run was taken for the first time.
    FirstTaken {
        /// From its creation, by the store's clock.
        lag: Micros,
    },
    /// A step was executed: its hook answered, or was given up.
    Executed {
        /// Of its action.
        class: EffectClass,
        /// From the call to the answer.
        took: Micros,
    },
    /// A commit is durable.
    Committed {
        /// What it wrote.
        facts: usize,
        /// From the first try to the answer.
        took: Micros,
    },
    /// A write was not done as it was decided.
    NotWritten(NotWritten),
    /// Recovery found something to do.
    Recovered {
        /// Runs whose deadline or signal had come.
        woken: usize,
        /// Runs that were ended because nobody else would have.
        finalised: usize,
        /// Events that got their runs.
        dispatched: usize,
    },
}

/// Why a write was not done as it was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotWritten {
    /// Another worker has the run.
    Fenced,
    /// Somebody else wrote to the run: it was read again, and decided on again.
    Raced,
    /// The answer was lost: the run was taken over before anything else.
    InDoubt,
}

impl NotWritten {
    /// Every reason.
    pub const ALL: &'static [Self] = &[Self::Fenced, Self::Raced, Self::InDoubt];

    /// The word of it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fenced => "fenced",
            Self::Raced => "raced",
            Self::InDoubt => "in_doubt",
        }
    }
}

/// Resolves references of one run: one resolver per claim. What it gives is journaled as it is, so that every attempt
/// of a step sends the same: answer with references to secrets rather than with secrets, or put a payload codec around
/// the store.
#[async_trait]
pub trait ValueResolver: Send + Sync {
    /// `None` is missing.
    async fn resolve(&self, reference: &str) -> Result<Option<Value>, Source>;
}
