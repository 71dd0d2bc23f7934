//! Why a use case did not do what was asked.

use surefoot_kernel_core::{
    App, BadName, Code, EmitError, PublishError, REASON_MAX_CHARS, Rejection, RetentionError,
    RunId, RunState, SignalError, StoreError,
};
use surefoot_language::SchemaFinding;

/// Why a use case did not do what was asked. Unless it says so, nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperatorError {
    /// Nothing of that id.
    #[error("there is no {what}")]
    NotFound {
        /// What was looked for.
        what: String,
    },
    /// The run is not as it was when it was looked at.
    #[error(
        "run {run} was changed since: you looked at revision {seen}, it is {state} at revision {revision} now; \
         nothing was changed, explain it again and decide"
    )]
    Conflict {
        /// Which run.
        run: RunId,
        /// The revision that the caller looked at.
        seen: u64,
        /// The revision that is there.
        revision: u64,
        /// Where the run stands now.
        state: RunState,
    },
    /// Somebody else changed the run again and again meanwhile.
    #[error("run {run} changes all the time; nothing was changed, try again")]
    Busy {
        /// Which run.
        run: RunId,
    },
    /// Nobody knows whether the verb was done. Repeating it with the same revision is safe: at most one is done.
    #[error(
        "nobody knows whether it was done: explain run {run} again; to repeat it with the same revision is safe"
    )]
    InDoubt {
        /// Which run.
        run: RunId,
        /// The store's word.
        #[source]
        source: StoreError,
    },
    /// Nobody knows whether something was written that is no verb on a run.
    #[error("nobody knows whether {what}: {then}")]
    Unsure {
        /// What may have been done.
        what: &'static str,
        /// How to find out, and what is safe.
        then: &'static str,
        /// The store's word.
        #[source]
        source: StoreError,
    },
    /// The run is not where the verb needs it.
    #[error(transparent)]
    Refused(#[from] Rejection),
    /// A child is not tried again once its parent has its result.
    #[error(transparent)]
    ParentMovedOn(StoreError),
    /// The cursor does not come from this list.
    #[error("the cursor is not one of this list: begin again without a cursor")]
    NotACursor,
    /// The code of a verdict is no code.
    #[error(
        "`{code}` is no code: write letters, digits, `_`, `-` and `.`, at most 100 of them, like `CARD_DECLINED`"
    )]
    NotACode {
        /// What was given.
        code: String,
    },
    /// The event type belongs to the scheduler.
    #[error(
        "events of type `{kind}` are emitted by the scheduler alone, or one of its slots would be taken: to start the \
         workflow now, emit `surefoot.start` to it"
    )]
    OfSchedules {
        /// The event type.
        kind: String,
    },
    /// A verb needs a word of its own.
    #[error("a {what} is needed: it stands in the audit")]
    Unsaid {
        /// What is missing.
        what: &'static str,
    },
    /// What was said is too long.
    #[error("the {what} has {got} characters, the limit is {max}", max = REASON_MAX_CHARS)]
    TooLong {
        /// What was given.
        what: &'static str,
        /// What it has.
        got: usize,
    },
    /// A text that no store can keep.
    #[error(
        "the {what} has a NUL character in it, which no store can keep in a text: leave it out"
    )]
    Nul {
        /// What was given.
        what: &'static str,
    },
    /// A name that is none.
    #[error(transparent)]
    Name(#[from] BadName),
    /// The output that was supplied does not fit the action's schema.
    #[error("the output does not fit the schema of `{action}`: {}", listed(.findings))]
    OutputInvalid {
        /// The action.
        action: String,
        /// What is wrong with it.
        findings: Vec<SchemaFinding>,
    },
    /// The output that was supplied cannot be kept exactly.
    #[error("the output cannot be kept exactly at `{pointer}`: {why}")]
    OutputPayload {
        /// JSON pointer.
        pointer: String,
        /// The rule.
        why: String,
    },
    /// The output that was supplied is too large.
    #[error("the output has {bytes} bytes of JSON, the limit is {limit}")]
    OutputTooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// What is stored cannot be read by this build.
    #[error("{what} cannot be read: {why}")]
    Unreadable {
        /// What.
        what: String,
        /// Why.
        why: String,
    },
    /// The store holds no app yet.
    #[error("the store holds no app yet: name one with `--app`")]
    NoApp,
    /// The store holds several apps, and none was named.
    #[error("the store holds several apps ({}): name one with `--app`", names(.apps))]
    ManyApps {
        /// Those that it holds.
        apps: Vec<App>,
    },
    /// The event was not recorded.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// The signal was not recorded.
    #[error(transparent)]
    Signal(#[from] SignalError),
    /// The workflow was not published or activated.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The event was not redriven, or the place not deleted.
    #[error(transparent)]
    Retention(#[from] RetentionError),
    /// A prune that names nothing.
    #[error(
        "say what is to be pruned: runs in which states, spent signals, unmatched events, or audit rows"
    )]
    NothingToPrune,
    /// The store's word.
    #[error("the store cannot be used")]
    Store(#[from] StoreError),
}

/// What a caller does about an error: the exit codes of the command line follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// What was asked is refused, or is not there.
    Refused,
    /// It was asked in the wrong way.
    Usage,
    /// The store cannot be reached or used.
    Unavailable,
    /// Somebody else was faster: look again, then decide.
    Conflict,
}

/// What went wrong, as far as programs tell it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Nothing of that name.
    NotFound,
    /// It is not as it was when it was looked at.
    ChangedSince,
    /// Somebody else was faster.
    Conflict,
    /// Nobody knows whether it was done; to repeat it is safe.
    InDoubt,
    /// It was asked in the wrong way.
    Usage,
    /// What was given is over a limit.
    TooLarge,
    /// What was given cannot be used: a payload, an output, a source.
    Invalid,
    /// It is not done as things stand.
    Refused,
    /// What is stored cannot be read by this build.
    Unreadable,
    /// The store cannot be reached or used.
    Unavailable,
}

impl ErrorKind {
    /// What a caller does about it.
    #[must_use]
    pub const fn class(self) -> ErrorClass {
        match self {
            Self::NotFound | Self::TooLarge | Self::Invalid | Self::Refused | Self::Unreadable => {
                ErrorClass::Refused
            }
            Self::ChangedSince | Self::Conflict => ErrorClass::Conflict,
            Self::Usage => ErrorClass::Usage,
            Self::InDoubt | Self::Unavailable => ErrorClass::Unavailable,
        }
    }
}

fn listed(findings: &[SchemaFinding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn names(apps: &[App]) -> String {
    apps.iter().map(App::as_str).collect::<Vec<_>>().join(", ")
}

impl OperatorError {
    /// What a caller does about it.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        self.kind().class()
    }

    /// What went wrong, as far as programs tell it apart.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. }
            | Self::Publish(PublishError::NotFound { .. })
            | Self::Retention(RetentionError::NotFound { .. }) => ErrorKind::NotFound,
            Self::Conflict { .. } | Self::Publish(PublishError::NotExpected { .. }) => {
                ErrorKind::ChangedSince
            }
            Self::Busy { .. } => ErrorKind::Conflict,
            Self::InDoubt { .. } | Self::Unsure { .. } => ErrorKind::InDoubt,
            Self::NotACursor
            | Self::NotACode { .. }
            | Self::OfSchedules { .. }
            | Self::Unsaid { .. }
            | Self::TooLong { .. }
            | Self::Name(_)
            | Self::Emit(
                EmitError::Name(_)
                | EmitError::Length { .. }
                | EmitError::Nul { .. }
                | EmitError::TooManyTags { .. },
            )
            | Self::Signal(
                SignalError::Name(_) | SignalError::Length { .. } | SignalError::Nul { .. },
            )
            | Self::Nul { .. }
            | Self::Publish(PublishError::Name(_) | PublishError::KeyLength { .. })
            | Self::NoApp
            | Self::NothingToPrune
            | Self::ManyApps { .. } => ErrorKind::Usage,
            Self::OutputTooLarge { .. }
            | Self::Emit(EmitError::TooLarge { .. })
            | Self::Signal(SignalError::TooLarge { .. }) => ErrorKind::TooLarge,
            Self::OutputInvalid { .. }
            | Self::OutputPayload { .. }
            | Self::Emit(EmitError::Payload { .. })
            | Self::Signal(SignalError::Payload { .. })
            | Self::Publish(PublishError::Compile { .. } | PublishError::Budget(_)) => {
                ErrorKind::Invalid
            }
            Self::Unreadable { .. } => ErrorKind::Unreadable,
            Self::Store(error)
            | Self::Emit(EmitError::Store(error))
            | Self::Signal(SignalError::Store(error))
            | Self::Publish(PublishError::Store(error))
            | Self::Retention(RetentionError::Store(error)) => of_store(error),
            Self::Refused(_)
            | Self::ParentMovedOn(_)
            | Self::Emit(_)
            | Self::Signal(_)
            | Self::Publish(_)
            | Self::Retention(_) => ErrorKind::Refused,
        }
    }

    /// The kernel's code, where there is one.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::OutputInvalid { .. } => Some(Code::OUTPUT_INVALID),
            Self::OutputTooLarge { .. } => Some(Code::OUTPUT_TOO_LARGE),
            Self::Emit(error) => error.code(),
            Self::Retention(error) => error.code(),
            Self::NotFound { .. }
            | Self::Conflict { .. }
            | Self::Busy { .. }
            | Self::InDoubt { .. }
            | Self::Unsure { .. }
            | Self::Refused(_)
            | Self::ParentMovedOn(_)
            | Self::NotACursor
            | Self::NotACode { .. }
            | Self::OfSchedules { .. }
            | Self::Unsaid { .. }
            | Self::TooLong { .. }
            | Self::Nul { .. }
            | Self::Name(_)
            | Self::OutputPayload { .. }
            | Self::Unreadable { .. }
            | Self::NoApp
            | Self::NothingToPrune
            | Self::ManyApps { .. }
            | Self::Signal(_)
            | Self::Publish(_)
            | Self::Store(_) => None,
        }
    }

    /// What a store says to a question for a page: the one thing of it that can be refused is the cursor.
    pub(crate) fn of_page(error: StoreError) -> Self {
        if matches!(error, StoreError::Refused(_)) { Self::NotACursor } else { error.into() }
    }

    /// A write whose commit got no answer is told in the words of whoever asked for it: what a store says of it is
    /// advice for a worker.
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other error stays what it is")]
    pub(crate) fn unsure(self, what: &'static str, then: &'static str) -> Self {
        match self {
            Self::Store(source @ StoreError::UnknownOutcome(_))
            | Self::Emit(EmitError::Store(source @ StoreError::UnknownOutcome(_)))
            | Self::Signal(SignalError::Store(source @ StoreError::UnknownOutcome(_)))
            | Self::Publish(PublishError::Store(source @ StoreError::UnknownOutcome(_)))
            | Self::Retention(RetentionError::Store(source @ StoreError::UnknownOutcome(_))) => {
                Self::Unsure { what, then, source }
            }
            known => known,
        }
    }

    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::NotFound { what: what.into() }
    }
}

fn of_store(error: &StoreError) -> ErrorKind {
    if matches!(
        error,
        StoreError::Conflict | StoreError::LeaseLost | StoreError::TransactionConflict(_)
    ) {
        ErrorKind::Conflict
    } else if matches!(error, StoreError::Refused(_) | StoreError::BeingDeleted) {
        ErrorKind::Refused
    } else if matches!(error, StoreError::Corrupt { .. }) {
        ErrorKind::Unreadable
    } else {
        // Whether it happened is found out by looking again; every verb may be repeated with its revision.
        ErrorKind::Unavailable
    }
}
