//! What hooks answer: outputs, every way to stop without one, previews, costs and classifications.

mod ambiguous;
mod classify;
mod question;
mod stop;
#[cfg(test)]
mod tests;
mod verdict;

pub use ambiguous::{AmbiguousStop, AmbiguousStopParts};
pub use classify::{Classified, Classifiers, Halt};
pub use question::{AmbiguousResultExt, ResultExt, StopsByQuestionMark, UnknownByQuestionMark};
pub use stop::{Stop, StopParts};
pub use verdict::{Access, Cost, Planned, Reconciled};

/// The answer of `run`: `Ok` is the output, `Err` is every way to stop without one.
pub type ActionResult<T> = Result<T, Stop>;
/// The answer of an ambiguous action's `run`.
pub type AmbiguousResult<T> = Result<T, AmbiguousStop>;
/// The answer of `plan`.
pub type PlanResult<T> = Result<Planned<T>, Stop>;
/// The answer of `reconcile`.
pub type ReconcileResult<T> = Result<Reconciled<T>, Stop>;
