//! Small ports at the edge: clock, ids, wake-ups, observation, values.

use async_trait::async_trait;
use serde_json::Value;

use super::Source;
use crate::{EventId, Micros, RunId, RunState, SessionId, StepKey, Timestamp, VersionId};

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
}

/// Resolves references of one run: one resolver per claim. What it gives is journaled as it is, so that every attempt
/// of a step sends the same: answer with references to secrets rather than with secrets, or put a payload codec around
/// the store.
#[async_trait]
pub trait ValueResolver: Send + Sync {
    /// `None` is missing.
    async fn resolve(&self, reference: &str) -> Result<Option<Value>, Source>;
}
