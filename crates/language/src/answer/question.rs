//! What `?` does with errors, and how to say more.

use surefoot_kernel_core::{Code, Dependency, Source};

use super::ambiguous::{AmbiguousKind, AmbiguousStop};
use super::stop::{Failure, Stop, StopKind, Thrown};

/// What `?` accepts in pure, transactional and idempotent actions: every ordinary error.
#[diagnostic::on_unimplemented(
    message = "`?` cannot stop this action with `{Self}`",
    label = "this action stops with an error that is `Send + Sync + 'static` (or a text), with `.or_fail(\"CODE\")?` or with `.or_retry(\"CODE\")?`"
)]
pub trait StopsByQuestionMark: Into<Source> {}

#[diagnostic::do_not_recommend]
impl<E: Into<Source>> StopsByQuestionMark for E {}

/// What `?` accepts in ambiguous actions: every ordinary error, and it means that nobody knows.
#[diagnostic::on_unimplemented(
    message = "`?` cannot stop an ambiguous action with `{Self}`",
    label = "this does not say what became of the effect: write `.or_nothing_happened(\"CODE\")?` or `.or_refused(\"CODE\")?`",
    note = "write `.or_nothing_happened(\"CODE\")?`, `.or_refused(\"CODE\")?`, or return `AmbiguousStop::may_have_happened(..)`"
)]
pub trait UnknownByQuestionMark: Into<Source> {}

#[diagnostic::do_not_recommend]
impl<E: Into<Source>> UnknownByQuestionMark for E {}

/// Says with a code what an error means: `call().await.or_retry("SUPPLIER_DOWN")?`.
pub trait ResultExt<T> {
    /// The run fails with this code.
    ///
    /// # Errors
    /// The error of `self`, with the code.
    fn or_fail(self, code: impl Into<Code>) -> Result<T, Stop>;

    /// The run is queued again, with this code.
    ///
    /// # Errors
    /// The error of `self`, with the code.
    fn or_retry(self, code: impl Into<Code>) -> Result<T, Stop>;
}

impl<T, E: Into<Source>> ResultExt<T> for Result<T, E> {
    fn or_fail(self, code: impl Into<Code>) -> Result<T, Stop> {
        self.map_err(|error| Stop::caused(error.into(), code.into(), false))
    }

    fn or_retry(self, code: impl Into<Code>) -> Result<T, Stop> {
        self.map_err(|error| Stop::caused(error.into(), code.into(), true))
    }
}

/// The same for ambiguous actions, where the caller must say what became of the effect.
pub trait AmbiguousResultExt<T> {
    /// Our word that nothing happened: the mark is settled and the step is tried again, with this code.
    ///
    /// # Errors
    /// The error of `self`, with the code. The wait of a [`Stop`] (of `cx.resolve(..)`) stays a wait.
    fn or_nothing_happened(self, code: impl Into<Code>) -> Result<T, AmbiguousStop>;

    /// A definite no: the run fails with this code.
    ///
    /// # Errors
    /// The error of `self`, with the code.
    fn or_refused(self, code: impl Into<Code>) -> Result<T, AmbiguousStop>;
}

impl<T, E: Into<Source>> AmbiguousResultExt<T> for Result<T, E> {
    fn or_nothing_happened(self, code: impl Into<Code>) -> Result<T, AmbiguousStop> {
        self.map_err(|error| {
            AmbiguousStop::of(AmbiguousKind::NothingHappened(Failure::caused(code, error.into())))
        })
    }

    fn or_refused(self, code: impl Into<Code>) -> Result<T, AmbiguousStop> {
        self.map_err(|error| {
            AmbiguousStop::of(AmbiguousKind::Refused(Failure::caused(code, error.into())))
        })
    }
}

/// The context's own methods stop with [`Stop`], which says nothing about the effect: it takes these two to use
/// them in an ambiguous action.
impl<T> AmbiguousResultExt<T> for Result<T, Stop> {
    fn or_nothing_happened(self, code: impl Into<Code>) -> Result<T, AmbiguousStop> {
        self.map_err(|stop| match stop.0.kind {
            StopKind::Waiting(dependency) => AmbiguousStop::nothing_happened_waiting(dependency),
            StopKind::Failed(Failure { message, retry_after, source, .. }) => {
                let failure = Failure { retry_after, ..Failure::definite(code, message, source) };
                AmbiguousStop::of(AmbiguousKind::NothingHappened(failure))
            }
            StopKind::Threw(Thrown { message, source }) => AmbiguousStop::of(
                AmbiguousKind::NothingHappened(Failure::definite(code, message, Some(source))),
            ),
        })
    }

    fn or_refused(self, code: impl Into<Code>) -> Result<T, AmbiguousStop> {
        self.map_err(|stop| {
            let (message, source) = match stop.0.kind {
                StopKind::Waiting(dependency) => (waits_for(&dependency), None),
                StopKind::Failed(Failure { message, source, .. }) => (message, source),
                StopKind::Threw(Thrown { message, source }) => (message, Some(source)),
            };
            AmbiguousStop::of(AmbiguousKind::Refused(Failure::definite(code, message, source)))
        })
    }
}

pub(super) fn waits_for(dependency: &Dependency) -> String {
    format!("waits for `{}` of `{}`", dependency.kind(), dependency.key())
}
