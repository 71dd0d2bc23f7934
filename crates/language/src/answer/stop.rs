//! Stopping a pure, transactional or idempotent step.

use std::error::Error as StdError;
use std::time::Duration;

use surefoot_kernel_core::{Code, Dependency, Micros, Source};

use super::classify::{Classified, Classifiers, Halt, describe, may_go_better};
use super::question::StopsByQuestionMark;

/// Why a pure, transactional or idempotent step has no output now.
///
/// `?` turns any error into `ACTION_ERROR`, not retryable; [`or_retry`](crate::ResultExt::or_retry) and
/// [`or_fail`](crate::ResultExt::or_fail) say more; a module's `classify` says it once for a whole error type.
///
/// Not an `Error` itself, and never will be: `?` depends on it.
///
/// ```
/// use surefoot_language::{ActionResult, ResultExt, Stop};
///
/// fn boxes(text: &str) -> ActionResult<u32> {
///     let missing: u32 = text.parse()?;                            // ACTION_ERROR
///     let known = std::str::from_utf8(b"12").or_fail("NO_TEXT")?;  // our own code
///     if missing > 1_000 {
///         return Err(Stop::retry("SUPPLIER_BUSY", "asked too often"));
///     }
///     Ok(missing + known.len() as u32)
/// }
/// assert_eq!(boxes("10").ok(), Some(12));
/// assert_eq!(boxes("ten").unwrap_err().code().as_str(), "ACTION_ERROR");
/// assert!(boxes("5000").unwrap_err().is_retryable());
/// ```
#[derive(Debug)]
pub struct Stop(pub(super) Box<StopInner>);

#[derive(Debug)]
pub(super) struct StopInner {
    pub(super) kind: StopKind,
    /// What the step's own fence answered before; survives errors that hide their source.
    halt: Option<Halt>,
}

#[derive(Debug)]
pub(super) enum StopKind {
    Failed(Failure),
    Waiting(Dependency),
    /// By `?`: the module's classifiers have not seen it yet.
    Threw(Thrown),
}

/// A [`Stop`] as the driver reads it, after the module's classifiers.
#[derive(Debug)]
pub enum StopParts {
    /// The attempt failed.
    Failed {
        /// The action's or the classifier's code, else `ACTION_ERROR`.
        code: Code,
        /// For people.
        message: String,
        /// Whether the run is queued again.
        retryable: bool,
        /// How long to wait at least, if the action said so.
        retry_after: Option<Micros>,
        /// The application's own error: a driver finds a database's verdict in it.
        source: Option<Source>,
    },
    /// The run parks.
    Waiting(Dependency),
    /// The run belongs to another worker, or is being canceled: record no failure.
    Halted(Halt),
}

impl Stop {
    /// The run ends as failed.
    #[must_use]
    pub fn fail(code: impl Into<Code>, message: impl Into<String>) -> Self {
        Self::failed(code.into(), message.into(), false, None)
    }

    /// The run is queued again with backoff and returns to this step.
    #[must_use]
    pub fn retry(code: impl Into<Code>, message: impl Into<String>) -> Self {
        Self::failed(code.into(), message.into(), true, None)
    }

    /// Parks the run. Only before any effect: the step runs again under the same effect key.
    #[must_use]
    pub fn wait_for(dependency: Dependency) -> Self {
        Self::of(StopKind::Waiting(dependency))
    }

    /// Not before this much time has passed. Only a retryable failure has a next time; others stay as they are.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use surefoot_language::Stop;
    /// let busy = Stop::retry("SUPPLIER_BUSY", "429").retry_after(Duration::from_secs(30));
    /// assert!(busy.is_retryable());
    /// ```
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        if let StopKind::Failed(failure) = &mut self.0.kind
            && failure.retryable
        {
            failure.retry_after = Some(delay.into());
        }
        self
    }

    /// The code so far: a classifier of the module may still give another one to an error that came by `?`.
    #[must_use]
    pub fn code(&self) -> Code {
        match &self.0.kind {
            StopKind::Failed(failure) => failure.code.clone(),
            StopKind::Threw(_) | StopKind::Waiting(_) => Code::ACTION_ERROR,
        }
    }

    /// For people. Empty for a wait.
    #[must_use]
    pub fn message(&self) -> &str {
        match &self.0.kind {
            StopKind::Failed(failure) => &failure.message,
            StopKind::Threw(thrown) => &thrown.message,
            StopKind::Waiting(_) => "",
        }
    }

    /// Whether it says so itself; classifiers are not asked.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(&self.0.kind, StopKind::Failed(Failure { retryable: true, .. }))
    }

    /// What it waits for, if it does.
    #[must_use]
    pub fn dependency(&self) -> Option<&Dependency> {
        match &self.0.kind {
            StopKind::Waiting(dependency) => Some(dependency),
            StopKind::Failed(_) | StopKind::Threw(_) => None,
        }
    }

    /// The application's own error.
    #[must_use]
    pub fn source(&self) -> Option<&(dyn StdError + Send + Sync + 'static)> {
        match &self.0.kind {
            StopKind::Threw(thrown) => Some(&*thrown.source),
            StopKind::Failed(failure) => failure.source.as_deref(),
            StopKind::Waiting(_) => None,
        }
    }

    /// Whether it is the fence's word that this worker may not go on.
    ///
    /// Found in the chain of sources; and where the error hides its source, by what the step's own
    /// `heartbeat` or `heartbeat_in` answered before.
    #[must_use]
    pub fn halt(&self) -> Option<Halt> {
        let source = self.source()?;
        Halt::of(source).or(self.0.halt)
    }

    /// What the driver acts on. Only an error that came by `?` is shown to the classifiers: a code that the action
    /// wrote itself stands.
    #[must_use]
    pub fn into_parts(self, classifiers: &Classifiers) -> StopParts {
        if let Some(halt) = self.halt() {
            return StopParts::Halted(halt);
        }
        let failure = match self.0.kind {
            StopKind::Waiting(dependency) => return StopParts::Waiting(dependency),
            StopKind::Failed(failure) => failure,
            StopKind::Threw(thrown) => thrown.classified(classifiers),
        };
        let Failure { code, message, retryable, retry_after, source } = failure;
        StopParts::Failed { code, message, retryable, retry_after, source }
    }

    pub(crate) fn after(mut self, halt: Option<Halt>) -> Self {
        self.0.halt = self.0.halt.or(halt);
        self
    }

    fn failed(code: Code, message: String, retryable: bool, source: Option<Source>) -> Self {
        let failure = Failure { code, message, retryable, retry_after: None, source };
        Self::of(StopKind::Failed(failure))
    }

    pub(super) fn caused(source: Source, code: Code, retryable: bool) -> Self {
        Self::failed(code, describe(&*source), retryable, Some(source))
    }

    fn of(kind: StopKind) -> Self {
        Self(Box::new(StopInner { kind, halt: None }))
    }
}

impl Thrown {
    fn classified(self, classifiers: &Classifiers) -> Failure {
        let found = classifiers.classify(&*self.source);
        // The application's own transactions fail like the kernel's: that the store is away is no reason to give up.
        let found = found.unwrap_or_else(|| match may_go_better(&*self.source) {
            true => Classified::retry(Code::ACTION_ERROR),
            false => Classified::fail(Code::ACTION_ERROR),
        });
        Failure {
            code: found.code,
            message: self.message,
            retryable: found.retryable,
            retry_after: found.retry_after,
            source: Some(self.source),
        }
    }
}

impl<E: StopsByQuestionMark> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::of(StopKind::Threw(Thrown::new(error.into())))
    }
}

#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: Code,
    pub(super) message: String,
    pub(super) retryable: bool,
    pub(super) retry_after: Option<Micros>,
    pub(super) source: Option<Source>,
}

/// An error of the application and its text, which is written where the error came from: inside the hook, whose
/// panics are caught.
#[derive(Debug)]
pub(super) struct Thrown {
    pub(super) message: String,
    pub(super) source: Source,
}

impl Thrown {
    pub(super) fn new(source: Source) -> Self {
        Self { message: describe(&*source), source }
    }
}

impl Failure {
    pub(super) fn definite(
        code: impl Into<Code>,
        message: impl Into<String>,
        source: Option<Source>,
    ) -> Self {
        let (code, message) = (code.into(), message.into());
        Self { code, message, retryable: false, retry_after: None, source }
    }

    pub(super) fn caused(code: impl Into<Code>, source: Source) -> Self {
        Self::definite(code, describe(&*source), Some(source))
    }
}
