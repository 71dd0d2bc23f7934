//! What PostgreSQL's errors mean.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use sqlx::postgres::{PgDatabaseError, PgSeverity};

use surefoot_kernel_core::{
    ChildrenError, EmitError, FenceError, PublishError, RetentionError, SignalError, StoreError,
};

/// An error of one transaction that several callers share.
#[derive(Debug, Clone)]
pub(crate) struct Shared(pub(crate) Arc<dyn Error + Send + Sync>);

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

/// Of a session that is not as it was asked for.
pub(crate) const IN_BETWEEN: &str = "a pooler is in between that drops or refuses what a session asks for: connect to the server itself";

/// What an error means to the transaction that it ended up in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The statement broke a rule of the schema: its entry is at fault, others are not.
    Refused,
    /// Another transaction was preferred; nothing was written.
    Conflict,
    /// A row stayed locked for as long as is waited for one.
    Locked,
    /// An earlier statement of the transaction failed, and its error was passed over.
    Aborted,
    /// The server or the connection.
    Unavailable,
}

/// Reads the SQLSTATE; an unknown one is no proof of anything but trouble.
pub(crate) fn kind(error: &sqlx::Error) -> Kind {
    match postgres(error) {
        Some(error) => kind_of(error),
        None if matches!(error, sqlx::Error::Encode(_) | sqlx::Error::InvalidArgument(_)) => {
            Kind::Refused
        }
        None => Kind::Unavailable,
    }
}

fn kind_of(error: &PgDatabaseError) -> Kind {
    match error.code() {
        // serialization_failure, deadlock_detected.
        "40001" | "40P01" => Kind::Conflict,
        // lock_not_available: after `lock_timeout`.
        "55P03" => Kind::Locked,
        // in_failed_sql_transaction.
        "25P02" => Kind::Aborted,
        // program_limit_exceeded: a row or a value is too large.
        code if code.starts_with("22") || code.starts_with("23") || code.starts_with("54") => {
            Kind::Refused
        }
        _ => Kind::Unavailable,
    }
}

fn postgres(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    error.as_database_error()?.try_downcast_ref()
}

/// Whether an error says for certain that the statement that ended a transaction, or was one, left nothing behind. A
/// connection that is lost, or closed by the server, says nothing.
pub(crate) fn left_nothing(error: &sqlx::Error) -> bool {
    // statement_completion_unknown.
    postgres(error).is_some_and(|it| it.severity() == PgSeverity::Error && it.code() != "40003")
}

/// Whether a statement found no transaction, or not the one that it is for.
pub(crate) fn is_of_no_transaction(error: &sqlx::Error) -> bool {
    // no_active_sql_transaction, invalid_savepoint_specification.
    postgres(error).is_some_and(|it| matches!(it.code(), "25P01" | "3B001"))
}

/// Whether an error, or one below it, says that PostgreSQL preferred another transaction.
pub(crate) fn is_transaction_conflict(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(StoreError::TransactionConflict(_)) = error.downcast_ref::<StoreError>() {
            return true;
        }
        let is_conflict = |error: &sqlx::Error| kind(error) == Kind::Conflict;
        if error.downcast_ref::<sqlx::Error>().is_some_and(is_conflict) {
            return true;
        }
        let postgres = error.downcast_ref::<PgDatabaseError>();
        if postgres.is_some_and(|error| kind_of(error) == Kind::Conflict) {
            return true;
        }
        next = error.source();
    }
    false
}

/// What a connection that was refused means. A server refuses nothing that the store asks of a new session: whoever
/// calls it a breach of the protocol is a pooler.
pub(crate) fn connect_error(error: sqlx::Error) -> StoreError {
    match postgres(&error) {
        // protocol_violation.
        Some(said) if said.code() == "08P01" => unavailable(IN_BETWEEN),
        Some(_) | None => store_error(error),
    }
}

/// What a failed statement means to its caller.
pub(crate) fn store_error(error: sqlx::Error) -> StoreError {
    match kind(&error) {
        Kind::Refused | Kind::Aborted => StoreError::Refused(Box::new(error)),
        Kind::Conflict => StoreError::TransactionConflict(Box::new(error)),
        Kind::Locked | Kind::Unavailable => StoreError::Unavailable(Box::new(error)),
    }
}

/// What a failed COMMIT, or a statement that is a transaction of its own, means to its caller.
pub(crate) fn commit_error(error: sqlx::Error) -> StoreError {
    if left_nothing(&error) {
        store_error(error)
    } else {
        StoreError::UnknownOutcome(Box::new(error))
    }
}

pub(crate) fn unavailable(said: &'static str) -> StoreError {
    StoreError::Unavailable(Box::new(Said(said)))
}

/// A row outside of runs that cannot be read.
pub(crate) fn unreadable() -> Fault {
    Fault(unavailable("a stored row is not what the kernel wrote"))
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
