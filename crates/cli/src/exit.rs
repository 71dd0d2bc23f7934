//! What a command came to.

use surefoot_operator::ErrorClass;

/// The exit codes: part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// A finding, a refusal, or red health.
    Finding = 1,
    /// Wrong usage: nothing was tried.
    Usage = 2,
    /// The store cannot be reached or used.
    Unavailable = 3,
    /// Somebody else was faster: look again, then decide.
    Conflict = 4,
}

impl Exit {
    /// Every code.
    pub const ALL: &'static [Self] =
        &[Self::Done, Self::Finding, Self::Usage, Self::Unavailable, Self::Conflict];

    /// As a number.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl From<ErrorClass> for Exit {
    fn from(class: ErrorClass) -> Self {
        match class {
            ErrorClass::Refused => Self::Finding,
            ErrorClass::Usage => Self::Usage,
            ErrorClass::Unavailable => Self::Unavailable,
            ErrorClass::Conflict => Self::Conflict,
        }
    }
}
