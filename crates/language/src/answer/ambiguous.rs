//! Stopping an ambiguous step.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use surefoot_kernel_core::{Code, Dependency, Micros, Source};

use super::classify::{Classifiers, Halt};
use super::question::UnknownByQuestionMark;
use super::stop::{Failure, Thrown};

/// Why an ambiguous step has no output. Every constructor says what became of the effect.
///
/// ```
/// use surefoot_language::{AmbiguousResult, AmbiguousResultExt, AmbiguousStop};
///
/// fn pay(address: &str, reply: &str) -> AmbiguousResult<u32> {
///     let port = address.parse::<u32>().or_nothing_happened("BANK_UNREACHABLE")?; // before the call
///     if reply == "no" {
///         return Err(AmbiguousStop::refused("CARD_DECLINED", "51"));            // a definite no
///     }
///     Ok(port + reply.parse::<u32>()?)                                          // nobody knows
/// }
/// assert!(!pay("x", "1").unwrap_err().may_have_acted());
/// assert!(!pay("1", "no").unwrap_err().may_have_acted());
/// assert!(pay("1", "??").unwrap_err().may_have_acted());
/// ```
#[derive(Debug)]
pub struct AmbiguousStop(Box<AmbiguousInner>);

#[derive(Debug)]
struct AmbiguousInner {
    kind: AmbiguousKind,
    halt: Option<Halt>,
}

#[derive(Debug)]
pub(super) enum AmbiguousKind {
    NothingHappened(Failure),
    NothingHappenedWaiting(Dependency),
    Refused(Failure),
    MayHaveHappened { message: String, evidence: Option<Value> },
    Threw(Thrown),
}

/// An [`AmbiguousStop`] as the driver reads it, after the module's classifiers.
#[derive(Debug)]
pub enum AmbiguousStopParts {
    /// The action's word: settle the mark, queue the run again with backoff.
    NothingHappened {
        /// The action's code.
        code: Code,
        /// For people.
        message: String,
        /// How long to wait at least, if the action said so.
        retry_after: Option<Micros>,
        /// The application's own error.
        source: Option<Source>,
    },
    /// The action's word: settle the mark, park the run.
    NothingHappenedWaiting(Dependency),
    /// The provider's definite no: settle the mark as failed, the run fails.
    Refused {
        /// The action's code.
        code: Code,
        /// For people.
        message: String,
        /// The application's own error.
        source: Option<Source>,
    },
    /// Nobody knows: `reconcile` is asked next.
    MayHaveHappened {
        /// What a classifier calls it, for people. It never turns the unknown into a failure.
        code: Option<Code>,
        /// For people.
        message: String,
        /// What the action could say about it.
        evidence: Option<Value>,
        /// The application's own error.
        source: Option<Source>,
    },
    /// The run belongs to another worker, or is being canceled: record nothing, the mark stays.
    Halted(Halt),
}

impl AmbiguousStop {
    /// The action's word that nothing happened: the mark is settled and the step is tried again.
    #[must_use]
    pub fn nothing_happened_retry(code: impl Into<Code>, message: impl Into<String>) -> Self {
        Self::of(AmbiguousKind::NothingHappened(Failure::definite(code, message, None)))
    }

    /// The action's word that nothing happened: the mark is settled and the run parks.
    #[must_use]
    pub fn nothing_happened_waiting(dependency: Dependency) -> Self {
        Self::of(AmbiguousKind::NothingHappenedWaiting(dependency))
    }

    /// The provider answered, and the answer is a definite no. The run ends as failed.
    #[must_use]
    pub fn refused(code: impl Into<Code>, message: impl Into<String>) -> Self {
        Self::of(AmbiguousKind::Refused(Failure::definite(code, message, None)))
    }

    /// The effect may have happened. The kernel asks `reconcile`, then an operator; never `run`.
    #[must_use]
    pub fn may_have_happened(message: impl Into<String>) -> Self {
        Self::of(AmbiguousKind::MayHaveHappened { message: message.into(), evidence: None })
    }

    /// What an operator may want to see: a reply, a reference of the provider. Only beside
    /// [`AmbiguousStop::may_have_happened`]; elsewhere there is nothing to find out.
    #[must_use]
    pub fn evidence(mut self, found: impl Serialize) -> Self {
        if let AmbiguousKind::MayHaveHappened { evidence, .. } = &mut self.0.kind {
            let written = serde_json::to_value(found);
            *evidence = Some(written.unwrap_or_else(|error| Value::String(error.to_string())));
        }
        self
    }

    /// Not before this much time has passed; only beside [`AmbiguousStop::nothing_happened_retry`].
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        if let AmbiguousKind::NothingHappened(failure) = &mut self.0.kind {
            failure.retry_after = Some(delay.into());
        }
        self
    }

    /// Whether nobody knows what became of the effect.
    #[must_use]
    pub fn may_have_acted(&self) -> bool {
        match &self.0.kind {
            AmbiguousKind::MayHaveHappened { .. } | AmbiguousKind::Threw(_) => true,
            AmbiguousKind::NothingHappened(_)
            | AmbiguousKind::NothingHappenedWaiting(_)
            | AmbiguousKind::Refused(_) => false,
        }
    }

    /// For people. Empty for a wait.
    #[must_use]
    pub fn message(&self) -> &str {
        match &self.0.kind {
            AmbiguousKind::NothingHappened(failure) | AmbiguousKind::Refused(failure) => {
                &failure.message
            }
            AmbiguousKind::MayHaveHappened { message, .. } => message,
            AmbiguousKind::Threw(thrown) => &thrown.message,
            AmbiguousKind::NothingHappenedWaiting(_) => "",
        }
    }

    /// Whether it is the fence's word that this worker may not go on. The mark stays then. A definite word of the
    /// action (`refused`, `nothing_happened_*`) is never overruled by it: it settles the mark if it still can.
    #[must_use]
    pub fn halt(&self) -> Option<Halt> {
        match &self.0.kind {
            AmbiguousKind::Threw(thrown) => Halt::of(&*thrown.source).or(self.0.halt),
            AmbiguousKind::NothingHappened(_)
            | AmbiguousKind::NothingHappenedWaiting(_)
            | AmbiguousKind::Refused(_)
            | AmbiguousKind::MayHaveHappened { .. } => None,
        }
    }

    /// What the driver acts on.
    #[must_use]
    pub fn into_parts(self, classifiers: &Classifiers) -> AmbiguousStopParts {
        if let Some(halt) = self.halt() {
            return AmbiguousStopParts::Halted(halt);
        }
        match self.0.kind {
            AmbiguousKind::NothingHappened(Failure {
                code, message, retry_after, source, ..
            }) => AmbiguousStopParts::NothingHappened { code, message, retry_after, source },
            AmbiguousKind::NothingHappenedWaiting(dependency) => {
                AmbiguousStopParts::NothingHappenedWaiting(dependency)
            }
            AmbiguousKind::Refused(Failure { code, message, source, .. }) => {
                AmbiguousStopParts::Refused { code, message, source }
            }
            AmbiguousKind::MayHaveHappened { message, evidence } => {
                AmbiguousStopParts::MayHaveHappened { code: None, message, evidence, source: None }
            }
            AmbiguousKind::Threw(Thrown { message, source }) => {
                AmbiguousStopParts::MayHaveHappened {
                    code: classifiers.classify(&*source).map(|found| found.code),
                    message,
                    evidence: None,
                    source: Some(source),
                }
            }
        }
    }

    pub(crate) fn after(mut self, halt: Option<Halt>) -> Self {
        self.0.halt = self.0.halt.or(halt);
        self
    }

    pub(super) fn of(kind: AmbiguousKind) -> Self {
        Self(Box::new(AmbiguousInner { kind, halt: None }))
    }
}

/// `?` after the mark means: nobody knows, whatever the error says.
impl<E: UnknownByQuestionMark> From<E> for AmbiguousStop {
    fn from(error: E) -> Self {
        Self::of(AmbiguousKind::Threw(Thrown::new(error.into())))
    }
}
