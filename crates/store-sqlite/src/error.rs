//! What SQLite's errors mean.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use surefoot_kernel_core::{
    ChildrenError, EmitError, FenceError, PublishError, RetentionError, SignalError, StoreError,
};

/// An error of one transaction that several callers share.
#[derive(Debug, Clone)]
pub(crate) struct Shared(pub(crate) Arc<sqlx::Error>);

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the transaction failed")
    }
}

impl Error for Shared {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

/// A sentence where no driver error exists.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Said(pub(crate) &'static str);

/// What a database error means to the transaction that it ended up in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The statement broke a rule of the schema: its entry is at fault, others are not.
    Refused,
    /// Another transaction was preferred; nothing was written.
    Conflict,
    /// The statement ran into the transaction's time limit.
    Interrupted,
    /// The file, the disk or the connection.
    Unavailable,
}

/// Reads the primary result code; an unknown one is no proof of anything but trouble.
pub(crate) fn kind(error: &sqlx::Error) -> Kind {
    let Some(code) = code(error) else {
        let is_mine = matches!(error, sqlx::Error::Encode(_) | sqlx::Error::InvalidArgument(_));
        return if is_mine { Kind::Refused } else { Kind::Unavailable };
    };
    match code & 0xff {
        // SQLITE_BUSY (517 is one of them), SQLITE_LOCKED.
        5 | 6 => Kind::Conflict,
        // SQLITE_INTERRUPT.
        9 => Kind::Interrupted,
        // SQLITE_TOOBIG, SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_RANGE.
        18 | 19 | 20 | 25 => Kind::Refused,
        _ => Kind::Unavailable,
    }
}

/// SQLite's extended result code.
fn code(error: &sqlx::Error) -> Option<i64> {
    error.as_database_error()?.code()?.parse().ok()
}

pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    kind(error) == Kind::Conflict
}

/// Whether an error, or one below it, says that SQLite preferred another transaction.
pub(crate) fn is_transaction_conflict(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(StoreError::TransactionConflict(_)) = error.downcast_ref::<StoreError>() {
            return true;
        }
        if error.downcast_ref::<sqlx::Error>().is_some_and(is_busy) {
            return true;
        }
        let sqlite = error.downcast_ref::<sqlx::sqlite::SqliteError>();
        let code = sqlite.and_then(sqlx::error::DatabaseError::code);
        if code
            .and_then(|code| code.parse::<i64>().ok())
            .is_some_and(|code| matches!(code & 0xff, 5 | 6))
        {
            return true;
        }
        next = error.source();
    }
    false
}

/// What a failed statement means to its caller.
pub(crate) fn store_error(error: sqlx::Error) -> StoreError {
    match kind(&error) {
        Kind::Refused => StoreError::Refused(Box::new(error)),
        Kind::Conflict => StoreError::TransactionConflict(Box::new(error)),
        Kind::Interrupted => {
            StoreError::TransactionTimeout { limit_ms: crate::TRANSACTION_LIMIT_MS }
        }
        Kind::Unavailable => match cure(&error) {
            Some(what) => StoreError::Unavailable(Box::new(Trouble { what, source: error })),
            None => StoreError::Unavailable(Box::new(error)),
        },
    }
}

/// What SQLite says of the file or the disk, with what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
struct Trouble {
    what: &'static str,
    #[source]
    source: sqlx::Error,
}

fn cure(error: &sqlx::Error) -> Option<&'static str> {
    Some(match code(error)? & 0xff {
        // SQLITE_PERM, SQLITE_READONLY.
        3 | 8 => {
            "the file, or the folder that it is in, cannot be written: let this user write to both"
        }
        // SQLITE_IOERR.
        10 => "the disk failed: look at it, and at the system's log, before anything else",
        // SQLITE_CORRUPT.
        11 => "the file is damaged: `surefoot doctor` says more; restore it from a backup",
        // SQLITE_FULL.
        13 => "the disk is full: make room, then go on; what was acknowledged is there",
        // SQLITE_CANTOPEN.
        14 => {
            "the file cannot be opened: its folder must exist, and this user must be able to write there"
        }
        // SQLITE_NOTADB.
        26 => {
            "the file is not a database, or is damaged: name another one, or restore it from a backup"
        }
        _ => return None,
    })
}

pub(crate) fn unavailable(said: &'static str) -> StoreError {
    StoreError::Unavailable(Box::new(Said(said)))
}

/// A driver error, or the core's word, as an error of the store.
#[derive(Debug)]
pub(crate) struct Fault(pub(crate) StoreError);

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self(store_error(error))
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self(error)
    }
}

impl From<surefoot_kernel_core::Fenced> for Fault {
    fn from(fenced: surefoot_kernel_core::Fenced) -> Self {
        Self(fenced.into())
    }
}

/// An error of a port that can be the store's word.
pub(crate) trait PortError: From<StoreError> + Send + 'static {
    /// The store's word, if it is that.
    fn store(&self) -> Option<&StoreError>;
}

impl PortError for StoreError {
    fn store(&self) -> Option<&StoreError> {
        Some(self)
    }
}

macro_rules! port_errors {
    ($($name:ident),*) => {$(
        impl PortError for $name {
            fn store(&self) -> Option<&StoreError> {
                if let Self::Store(error) = self { Some(error) } else { None }
            }
        }

        impl From<Fault> for $name {
            fn from(Fault(error): Fault) -> Self {
                Self::Store(error)
            }
        }
    )*};
}

port_errors!(ChildrenError, EmitError, PublishError, SignalError, FenceError, RetentionError);

impl From<Fault> for StoreError {
    fn from(Fault(error): Fault) -> Self {
        error
    }
}
