//! Semantic errors: what a caller must do next, not what a driver said.

use super::Place;
use crate::{BadName, Code, Exceeded, NotAnAmount, RunId};

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
    /// An operator wants a child tried again, and one above it has gone on with the result of its own child, or is
    /// reading it, or was canceled.
    #[error(
        "run {parent}, of which this run is a descendant, has taken the result of its child, or is reading it, or was \
         canceled: start a new run"
    )]
    ParentMovedOn {
        /// The one that has gone on: the parent, or one above it.
        parent: RunId,
    },
    /// The charge would pass a cap of the root run's budget: nothing of this write was written.
    #[error("the charge was refused and nothing was written: {0}")]
    BudgetExceeded(Exceeded),
    /// A fence is held on the run right now.
    #[error("the run is held by a fence of its own action until that transaction ends")]
    FenceHeld,
    /// The commit may or may not have happened.
    #[error("the commit may or may not have happened: look before anything is done again")]
    UnknownOutcome(#[source] Source),
    /// The store cannot be reached, or is too busy.
    #[error("the store is not available")]
    Unavailable(#[source] Source),
    /// The database refused this transaction in favour of another one; nothing was written.
    #[error("the database refused the transaction in favour of another one; nothing was written")]
    TransactionConflict(#[source] Source),
    /// The write transaction was open for too long and was rolled back.
    #[error("the transaction was open for longer than {limit_ms} ms and was rolled back")]
    TransactionTimeout {
        /// The limit.
        limit_ms: u64,
    },
    /// The store refused this one write; others of its batch are not touched.
    #[error("the store refused the write")]
    Refused(#[source] Source),
    /// A part of the run's tree is deleted already: nothing in it moves any more.
    #[error(
        "a part of the run's tree is deleted already, and nothing in it moves any more: the pruning or the deletion \
         that was stopped there goes on when the same command is given again"
    )]
    BeingDeleted,
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

impl From<crate::Fenced> for StoreError {
    fn from(fenced: crate::Fenced) -> Self {
        match fenced {
            crate::Fenced::LeaseLost => Self::LeaseLost,
            crate::Fenced::Conflict => Self::Conflict,
        }
    }
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

/// Why an event was not recorded. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// Data or context is over its limit.
    #[error("the event's {field} has {bytes} bytes of JSON, the limit is {limit}")]
    TooLarge {
        /// `data` or `context`.
        field: &'static str,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The payload cannot be kept exactly.
    #[error("the event's {field} cannot be kept exactly at `{pointer}`: {why}")]
    Payload {
        /// `data` or `context`.
        field: &'static str,
        /// JSON pointer.
        pointer: String,
        /// The rule.
        why: String,
    },
    /// A field has the wrong length.
    #[error("the event's {field} must have {min} to {max} characters, it has {got}")]
    Length {
        /// Which field.
        field: &'static str,
        /// At least.
        min: usize,
        /// At most.
        max: usize,
        /// What it has.
        got: usize,
    },
    /// A field has a NUL character in it.
    #[error(
        "the event's {field} has a NUL character in it, which no store can keep in a text: leave it out"
    )]
    Nul {
        /// Which field.
        field: &'static str,
    },
    /// More tags than an event may have.
    #[error("the event has {got} tags, the limit is {max}")]
    TooManyTags {
        /// What it has.
        got: usize,
        /// The limit.
        max: usize,
    },
    /// App, scope or target has a name that is none, or a tag is none.
    #[error(transparent)]
    Name(#[from] BadName),
    /// The workflow or the scope is being deleted.
    #[error("{place} is being deleted: nothing is emitted there any more")]
    BeingDeleted {
        /// What is being deleted.
        place: Place,
    },
    /// The store's word.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl EmitError {
    /// The kernel's code, where there is one.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::TooLarge { .. } => Some(Code::EVENT_TOO_LARGE),
            Self::Payload { .. }
            | Self::Length { .. }
            | Self::Nul { .. }
            | Self::TooManyTags { .. }
            | Self::Name(_)
            | Self::BeingDeleted { .. }
            | Self::Store(_) => None,
        }
    }
}

/// Why a workflow was not published. Nothing was written.
///
/// `Debug` prints the same as `Display`: a program whose `main` returns it shows source excerpts.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The source does not compile.
    #[error("{rendered}")]
    Compile {
        /// Source excerpts, ready to print.
        rendered: String,
        /// In the JSON shape of `surefoot check`.
        findings: Vec<serde_json::Value>,
    },
    /// A key has the wrong length.
    #[error("the workflow's key must have 1 to 200 characters, it has {got}")]
    KeyLength {
        /// What it has.
        got: usize,
    },
    /// App, scope or workflow has a name that is none.
    #[error(transparent)]
    Name(#[from] BadName),
    /// A cap is no amount.
    #[error("the budget cannot be set: {0}")]
    Budget(#[from] NotAnAmount),
    /// No such version or workflow.
    #[error("there is no {what}")]
    NotFound {
        /// What was looked for.
        what: String,
    },
    /// The active version is not the expected one.
    #[error(
        "the active version is {}, not the expected {}: look again, then decide",
        numbered(*active),
        numbered(*expected)
    )]
    NotExpected {
        /// What the caller saw.
        expected: Option<u64>,
        /// What is there.
        active: Option<u64>,
    },
    /// The workflow or the scope is being deleted.
    #[error("{place} is being deleted: nothing is published there any more")]
    BeingDeleted {
        /// What is being deleted.
        place: Place,
    },
    /// The store's word.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl std::fmt::Debug for PublishError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// Why a signal was not recorded. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignalError {
    /// Its data is over 64 KiB.
    #[error("the signal's data has {bytes} bytes of JSON, the limit is {limit}")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Its data cannot be kept exactly.
    #[error("the signal's data cannot be kept exactly at `{pointer}`: {why}")]
    Payload {
        /// JSON pointer.
        pointer: String,
        /// The rule.
        why: String,
    },
    /// Kind or key has the wrong length.
    #[error("the signal's {field} must have {min} to {max} characters, it has {got}")]
    Length {
        /// `kind` or `key`.
        field: &'static str,
        /// At least.
        min: usize,
        /// At most.
        max: usize,
        /// What it has.
        got: usize,
    },
    /// Kind or key has a NUL character in it.
    #[error(
        "the signal's {field} has a NUL character in it, which no store can keep in a text: leave it out"
    )]
    Nul {
        /// `kind` or `key`.
        field: &'static str,
    },
    /// App or scope has a name that is none.
    #[error(transparent)]
    Name(#[from] BadName),
    /// The workflow or the scope is being deleted.
    #[error("{place} is being deleted: nothing is signalled there any more")]
    BeingDeleted {
        /// What is being deleted.
        place: Place,
    },
    /// The store's word.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A version by its number.
fn numbered(version: Option<u64>) -> String {
    version.map_or_else(|| "none".to_owned(), |number| number.to_string())
}
