//! Nothing is done to a run before somebody has said yes.

use std::io::{self, IsTerminal as _};

use crate::error::CliError;
use crate::page::{clean, to_stderr};

/// How a verb may be confirmed, found out before anything is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirmation {
    /// `--yes` was given.
    Given,
    /// A person sits at a terminal and can be asked.
    Ask,
}

impl Confirmation {
    /// Refuses where nobody has said yes and nobody can be asked.
    pub(crate) fn of(verb: &'static str, yes: bool) -> Result<Self, CliError> {
        if yes {
            Ok(Self::Given)
        } else if io::stdin().is_terminal() && io::stderr().is_terminal() {
            Ok(Self::Ask)
        } else {
            Err(CliError::NotConfirmed { verb })
        }
    }

    /// Asks, if that is still to be done. `what` is said before the question.
    pub(crate) fn obtain(self, verb: &'static str, what: &str) -> Result<(), CliError> {
        match self {
            Self::Given => Ok(()),
            Self::Ask => {
                to_stderr(&format!("{}\n{verb}? [y/N] ", clean(what)));
                let mut answer = String::new();
                let read = io::stdin().read_line(&mut answer);
                let is_yes = matches!(answer.trim(), "y" | "Y" | "yes");
                if read.is_ok() && is_yes { Ok(()) } else { Err(CliError::NotConfirmed { verb }) }
            }
        }
    }
}
