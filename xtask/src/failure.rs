//! Why a task failed, in sentences for the person who ran it.

use std::fmt;

/// A failed task. Shown as it is, so it says what went wrong and, where known, what to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }

    /// The command line was wrong: says how, and shows the help of the command.
    pub(crate) fn usage(problem: impl fmt::Display, help: &str) -> Self {
        Self(format!("{problem}\n\n{help}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
