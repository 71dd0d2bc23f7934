//! Errors of the handle and of workers.

use surefoot_kernel_core::{EmitError, RunId, StoreError};
use surefoot_sync_core::SyncError;

/// Why a worker could not be built, or could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// A worker without slots would never do anything.
    #[error("a worker needs at least one slot: `concurrency` is 0")]
    NoSlots,
    /// The lease is too short to be renewed in time, or so long that a crash would never be noticed.
    #[error("the lease must be from 100 ms to 24 h, it is {got_ms} ms")]
    BadLease {
        /// What was given.
        got_ms: u128,
    },
    /// Scans would never end, or never come.
    #[error("`scan_every` must be from 10 ms to 60 s, it is {got_ms} ms")]
    BadScan {
        /// What was given.
        got_ms: u128,
    },
    /// Slots of weeks ago help nobody.
    #[error("the catch-up window of schedules is at most 7 days, it is {got_ms} ms")]
    BadCatchUp {
        /// What was given.
        got_ms: u128,
    },
    /// The event of a schedule's slot could not be recorded; it is tried again.
    #[error("a schedule could not fire")]
    Schedule(#[source] EmitError),
    /// The schedules on the coordination server cannot be read or changed; it is tried again.
    #[error("the schedules on the coordination server cannot be kept")]
    Schedules(#[source] SyncError),
    /// One version of a module has one meaning.
    #[error("module `{id}` is loaded twice with version {version}")]
    SameModuleTwice {
        /// The module.
        id: String,
        /// Its version.
        version: u32,
    },
    /// The worker runs already; its slots are in use.
    #[error("the worker is started already: stop it before it is started again")]
    AlreadyStarted,
    /// It was stopped meanwhile.
    #[error("the worker was stopped")]
    Stopped,
    /// The operating system gave no thread for the lease keeper.
    #[error("no thread for the lease keeper")]
    Thread(#[source] std::io::Error),
    /// The store's word.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a cancel request was not recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CancelError {
    /// The application has no such run.
    #[error("there is no run {run}")]
    NotFound {
        /// The run.
        run: RunId,
    },
    /// The store's word.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a run's end cannot be awaited.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AwaitError {
    /// The application has no such run.
    #[error("there is no run {run}")]
    NotFound {
        /// The run.
        run: RunId,
    },
    /// The store's word.
    #[error(transparent)]
    Store(#[from] StoreError),
}
