//! The ports: what the kernel asks of the world.

use std::future::Future;
use std::pin::Pin;

use crate::RunId;

/// A boxed future, as object-safe ports return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The error below a store's error.
pub type Source = Box<dyn std::error::Error + Send + Sync>;

/// What every store means by its errors; the suite asserts each variant.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Written by somebody else since it was read.
    #[error("the run was changed by somebody else; load it and decide again")]
    Conflict,
    /// Another generation holds the run.
    #[error("another worker took the run over; stop and write nothing more")]
    LeaseLost,
    /// Cancel was requested.
    #[error("cancel was requested")]
    Canceled,
    /// A fence is held on the run right now.
    #[error("the run is held by a fence of its own action until that transaction ends")]
    FenceHeld,
    /// The commit may or may not have happened.
    #[error("the commit may or may not have happened; take the run over before doing anything")]
    UnknownOutcome(#[source] Source),
    /// The store cannot be reached, or is too busy.
    #[error("the store is not available")]
    Unavailable(#[source] Source),
    /// Stored data is not what the kernel wrote.
    #[error("run {run} cannot be read: {what}")]
    Corrupt {
        /// Which run.
        run: RunId,
        /// What is wrong with it.
        what: String,
    },
    /// A `*_in` method got a connection that is in no transaction.
    #[error(
        "the connection is not inside a transaction: call `begin` first, or use the method without `_in`"
    )]
    NotInTransaction,
    /// The database was written by a newer build.
    #[error(
        "the store has schema version {found}, this build knows up to {known}: upgrade this program"
    )]
    SchemaTooNew {
        /// In the database.
        found: u32,
        /// In this build.
        known: u32,
    },
}

/// The fence said no: nothing may be written any more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FenceError {
    /// Another generation holds the run.
    #[error("another worker took the run over")]
    LeaseLost,
    /// Cancel was requested.
    #[error("cancel was requested")]
    Canceled,
    /// It could not be found out.
    #[error("the fence could not be checked")]
    Store(#[from] StoreError),
}

/// Holds the run row on somebody's transaction until that transaction ends.
pub trait Fence<Tx>: Send + Sync {
    /// Checks generation and cancellation, and locks the run. Writes nothing when it refuses.
    fn hold<'a>(&'a self, tx: &'a mut Tx) -> BoxFuture<'a, Result<(), FenceError>>;
}
