//! Why a command stopped. Rendered once, at the edge, with everything below it.

use std::error::Error;
use std::path::PathBuf;

use surefoot_kernel_core::StoreError;
use surefoot_operator::OperatorError;

use crate::Exit;

/// Why a command stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Operator(#[from] OperatorError),
    #[cfg(feature = "demo")]
    #[error(transparent)]
    Demo(#[from] crate::demo::DemoError),
    #[error("the store `{url}` cannot be used")]
    Store {
        url: String,
        #[source]
        source: StoreError,
    },
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
    #[error(
        "`{verb}` was not confirmed, and nothing was changed: add `--yes`, or answer on a terminal"
    )]
    NotConfirmed { verb: &'static str },
    #[error("{0}")]
    Usage(String),
    #[error("the runtime cannot start")]
    Runtime(#[source] std::io::Error),
    #[error("the output cannot be written")]
    Output(#[source] std::io::Error),
}

impl CliError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Operator(error) => error.class().into(),
            Self::Store { .. } | Self::NoStore(_) | Self::Runtime(_) => Exit::Unavailable,
            Self::NotAStore(_)
            | Self::Unreadable { .. }
            | Self::Input { .. }
            | Self::NotConfirmed { .. }
            | Self::Usage(_) => Exit::Usage,
            Self::Output(_) => Exit::Finding,
            #[cfg(feature = "demo")]
            Self::Demo(_) => Exit::Finding,
        }
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
