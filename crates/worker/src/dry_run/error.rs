//! Why there is no bill.

use std::time::Duration;

use surefoot_kernel_core::{EmitError, Failure, RunId, RunState, StoreError, Timestamp, VersionId};

/// Why there is no bill.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DryRunError {
    /// No such version in this scope.
    #[error("there is no version {version} in scope `{scope}`")]
    NotFound {
        /// The version.
        version: VersionId,
        /// The scope that was looked in.
        scope: String,
    },
    /// The stored plan cannot be read.
    #[error("the plan of version {version} cannot be read: {why}")]
    Unreadable {
        /// The version.
        version: VersionId,
        /// Why.
        why: String,
    },
    /// The version does not listen to the event.
    #[error("version {version} has no trigger for events of type `{kind}`")]
    NoTrigger {
        /// The version.
        version: VersionId,
        /// The event's type.
        kind: String,
    },
    /// The module cannot run the version.
    #[error("the module lacks what version {version} needs: {}", .lacks.join(", "))]
    Lacking {
        /// The version.
        version: VersionId,
        /// By name.
        lacks: Vec<String>,
    },
    /// The event cannot be kept, or not there.
    #[error(transparent)]
    Event(EmitError),
    /// The dry run itself failed: its inputs, or a preview that failed each time.
    #[error("dry run {run} is {state}{}", .failure.as_ref().map_or_else(String::new, |failure| format!(": {}: {}", failure.code, failure.message)))]
    Ended {
        /// Which run.
        run: RunId,
        /// What it came to.
        state: RunState,
        /// Why.
        failure: Option<Failure>,
    },
    /// Nothing moved for so long that this call gave up waiting. The dry run stays, and a dry-run worker goes on with it.
    #[error("dry run {run} is {state}{} and did not move for {} s: a dry-run worker goes on with it", .due.map_or_else(String::new, |due| format!(", due at {due}")), .waited.as_secs())]
    Unfinished {
        /// Which run.
        run: RunId,
        /// Where it stands.
        state: RunState,
        /// When a worker may take it next.
        due: Option<Timestamp>,
        /// How long nothing moved.
        waited: Duration,
    },
    /// The store's word.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<EmitError> for DryRunError {
    fn from(error: EmitError) -> Self {
        if let EmitError::Store(error) = error { Self::Store(error) } else { Self::Event(error) }
    }
}
