//! Why a command stopped. Rendered once, at the edge, with everything below it.

use std::error::Error;
use std::path::PathBuf;

use surefoot_console::ServeError;
use surefoot_kernel_core::{EmitError, Failure, PublishError, StoreError, WorkflowKey};
use surefoot_operator::OperatorError;
use surefoot_sync_core::SyncError;
use surefoot_worker::WorkerError;

use crate::Exit;

/// Why a command stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// With what may be typed instead.
    #[error(transparent)]
    Helped(HelpedError),
    #[cfg(feature = "demo")]
    #[error(transparent)]
    Demo(#[from] crate::demo::DemoError),
    #[error("the store `{url}` cannot be used")]
    Store {
        url: String,
        #[source]
        source: StoreError,
    },
    #[error("the coordination server `{url}` cannot be used")]
    Broker {
        url: String,
        #[source]
        source: Box<SyncError>,
    },
    #[error(transparent)]
    Sync(Box<SyncError>),
    /// With where it was looked for.
    #[error("{source} {place}")]
    NotOnServer { place: String, source: Box<SyncError> },
    #[error(
        "there is no store at `{}`: publish a workflow or emit an event to create one, or name another with `--store`",
        .0.display()
    )]
    NoStore(PathBuf),
    #[error("`{0}` names no store: write `sqlite:PATH` or `postgres://USER@HOST/DATABASE`")]
    NotAStore(String),
    #[error("`{what}` cannot be read")]
    Unreadable {
        what: String,
        #[source]
        source: std::io::Error,
    },
    #[error("{what} is not usable: {why}")]
    Input { what: String, why: String },
    /// Told before anything was started.
    #[error("the inputs do not fit `{workflow}`, and nothing was started: {}; {takes}", .why.message)]
    Inputs { workflow: WorkflowKey, why: Box<Failure>, takes: String },
    #[error(
        "`{verb}` was not confirmed, and nothing was changed: add `--yes`, or answer on a terminal"
    )]
    NotConfirmed { verb: &'static str },
    #[error("{0}")]
    Usage(String),
    #[error("the application's module cannot be made")]
    Module(#[source] Box<dyn Error + Send + Sync>),
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Emit(#[from] EmitError),
    #[error("there is no place for temporary files")]
    Scratch(#[source] StoreError),
    #[error("the runtime cannot start")]
    Runtime(#[source] std::io::Error),
    #[error("the output cannot be written")]
    Output(#[source] std::io::Error),
}

/// A refusal, and the flag that would help.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub(crate) struct HelpedError {
    source: OperatorError,
    help: &'static str,
}

/// Flags are the command line's own: what is below it does not know them.
pub(crate) trait Helped {
    fn with_help(self, help: &'static str) -> CliError;
}

impl Helped for OperatorError {
    fn with_help(self, help: &'static str) -> CliError {
        CliError::Helped(HelpedError { source: self, help })
    }
}

/// Boxed: it is larger than the others, and seldom.
impl From<SyncError> for CliError {
    fn from(error: SyncError) -> Self {
        Self::Sync(Box::new(error))
    }
}

impl CliError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Operator(error) | Self::Helped(HelpedError { source: error, .. }) => {
                error.class().into()
            }
            // What no server was asked for is not its fault.
            Self::Broker { source, .. } if of_sync(source) == Exit::Usage => Exit::Usage,
            Self::Store { .. }
            | Self::Broker { .. }
            | Self::NoStore(_)
            | Self::Runtime(_)
            | Self::Scratch(_) => Exit::Unavailable,
            Self::Sync(error) | Self::NotOnServer { source: error, .. } => of_sync(error),
            Self::NotAStore(_)
            | Self::Unreadable { .. }
            | Self::Input { .. }
            | Self::Inputs { .. }
            | Self::NotConfirmed { .. }
            | Self::Usage(_)
            | Self::Serve(ServeError::Unguarded { .. }) => Exit::Usage,
            Self::Output(_)
            | Self::Module(_)
            | Self::Worker(_)
            | Self::Serve(_)
            | Self::Publish(_)
            | Self::Emit(_) => Exit::Finding,
            #[cfg(feature = "demo")]
            Self::Demo(_) => Exit::Finding,
        }
    }

    /// The kernel's code, where there is one.
    pub(crate) fn code(&self) -> Option<String> {
        match self {
            Self::Operator(error) | Self::Helped(HelpedError { source: error, .. }) => {
                error.code().map(|code| code.to_string())
            }
            Self::Emit(error) => error.code().map(|code| code.to_string()),
            Self::Inputs { why, .. } => Some(why.code.to_string()),
            Self::Store { .. }
            | Self::Broker { .. }
            | Self::Sync(_)
            | Self::NotOnServer { .. }
            | Self::Serve(_)
            | Self::Publish(_)
            | Self::Scratch(_)
            | Self::NoStore(_)
            | Self::NotAStore(_)
            | Self::Unreadable { .. }
            | Self::Input { .. }
            | Self::NotConfirmed { .. }
            | Self::Usage(_)
            | Self::Module(_)
            | Self::Worker(_)
            | Self::Runtime(_)
            | Self::Output(_) => None,
            #[cfg(feature = "demo")]
            Self::Demo(_) => None,
        }
    }

    /// What may be typed instead.
    pub(crate) const fn help(&self) -> Option<&'static str> {
        if let Self::Helped(HelpedError { help, .. }) = self { Some(*help) } else { None }
    }

    /// The error and what is below it, a line each; what a line says already is not said again.
    pub(crate) fn chain(&self) -> Vec<String> {
        let mut lines = vec![self.to_string()];
        let mut below = self.source();
        while let Some(error) = below {
            let line = error.to_string();
            if lines.last().is_none_or(|last| !last.contains(&line)) {
                lines.push(line);
            }
            below = error.source();
        }
        lines
    }
}

/// What is not there may be elsewhere: says where it was looked for.
pub(crate) fn looked_for(error: CliError, place: impl FnOnce() -> String) -> CliError {
    if let CliError::Sync(source) = error {
        if matches!(*source, SyncError::NotFound { .. }) {
            CliError::NotOnServer { place: place(), source }
        } else {
            CliError::Sync(source)
        }
    } else {
        error
    }
}

fn of_sync(error: &SyncError) -> Exit {
    match error {
        SyncError::Unavailable { .. }
        | SyncError::Unauthorized { .. }
        | SyncError::UnsupportedServer { .. } => Exit::Unavailable,
        SyncError::Conflict { .. } => Exit::Conflict,
        SyncError::InvalidName { .. } | SyncError::InvalidOption { .. } => Exit::Usage,
        SyncError::ConflictingDeclaration { .. }
        | SyncError::ResourceDrift { .. }
        | SyncError::PayloadTooLarge { .. }
        | SyncError::StoreFull { .. }
        | SyncError::StaleDelivery
        | SyncError::RetentionGap { .. }
        | SyncError::CursorMismatch
        | SyncError::SnapshotOverflow { .. }
        | SyncError::NotFound { .. }
        | SyncError::Corrupt { .. }
        | SyncError::Refused { .. }
        // What a later version adds is a refusal until it has a place here.
        | _ => Exit::Finding,
    }
}
