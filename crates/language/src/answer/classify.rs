//! What errors mean: to the kernel, and to the application that brings them.

use std::error::Error as StdError;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use surefoot_kernel_core::{Code, FenceError, Micros, StoreError};

/// Why a worker must let go of the run: no failure is recorded, nothing more is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// Another worker took the run over.
    LeaseLost,
    /// Cancel was requested.
    Canceled,
}

impl Halt {
    /// What a fence's or a store's error says about the run, wherever it stands in the chain of sources.
    ///
    /// ```
    /// use surefoot_kernel_core::{FenceError, StoreError};
    /// use surefoot_language::Halt;
    ///
    /// assert_eq!(Halt::of(&FenceError::from(StoreError::LeaseLost)), Some(Halt::LeaseLost));
    /// assert_eq!(Halt::of(&std::fmt::Error), None);
    /// ```
    #[must_use]
    pub fn of(error: &(dyn StdError + 'static)) -> Option<Self> {
        chain(error).find_map(|link| {
            let fence = link.downcast_ref::<FenceError>().and_then(Self::of_fence);
            fence.or_else(|| link.downcast_ref::<StoreError>().and_then(Self::of_store))
        })
    }

    pub(crate) fn of_fence(error: &FenceError) -> Option<Self> {
        match error {
            FenceError::LeaseLost => Some(Self::LeaseLost),
            FenceError::Canceled => Some(Self::Canceled),
            FenceError::Store(store) => Self::of_store(store),
            // Non-exhaustive: what this build does not know is an ordinary failure.
            _ => None,
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other errors leave the run in place")]
    fn of_store(error: &StoreError) -> Option<Self> {
        match error {
            StoreError::LeaseLost => Some(Self::LeaseLost),
            StoreError::Canceled => Some(Self::Canceled),
            _ => None,
        }
    }
}

/// What one of an application's own errors means: its code, and whether trying again can help.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a classification does nothing by itself: return it from the function given to `classify`"]
pub struct Classified {
    pub(super) code: Code,
    pub(super) retryable: bool,
    pub(super) retry_after: Option<Micros>,
}

impl Classified {
    /// The run fails with this code.
    pub fn fail(code: impl Into<Code>) -> Self {
        Self { code: code.into(), retryable: false, retry_after: None }
    }

    /// The run is queued again, with this code.
    pub fn retry(code: impl Into<Code>) -> Self {
        Self { code: code.into(), retryable: true, retry_after: None }
    }

    /// Not before this much time has passed; only of use beside [`Classified::retry`].
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = self.retryable.then(|| delay.into());
        self
    }

    /// The code.
    #[must_use]
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// Whether trying again can help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }
}

type Classifier = Arc<dyn Fn(&(dyn StdError + 'static)) -> Option<Classified> + Send + Sync>;

/// What a module says about the errors of its application. Cheap to clone.
///
/// ```
/// # use surefoot_language::{Classified, Classifiers};
/// let known = Classifiers::default().and(|_: &std::fmt::Error| Classified::retry("PRINTER_BUSY"));
/// assert!(known.classify(&std::fmt::Error).is_some_and(|found| found.is_retryable()));
/// ```
#[derive(Clone, Default)]
pub struct Classifiers(Vec<Classifier>);

impl Classifiers {
    /// These and one more. The first that knows an error decides.
    #[must_use]
    pub fn and<E: StdError + 'static>(
        mut self,
        classify: impl Fn(&E) -> Classified + Send + Sync + 'static,
    ) -> Self {
        self.0.push(Arc::new(move |error| error.downcast_ref::<E>().map(&classify)));
        self
    }

    /// Asks about the error, then about what caused it, and so on. A function that panics knows nothing.
    #[must_use]
    pub fn classify(&self, error: &(dyn StdError + 'static)) -> Option<Classified> {
        let ask = |link: &(dyn StdError + 'static)| self.0.iter().find_map(|known| known(link));
        // This runs outside the action's own call, so nobody else would catch it.
        catch_unwind(AssertUnwindSafe(|| chain(error).find_map(ask))).ok().flatten()
    }
}

/// Whether the store's own word, wherever it stands in the chain, is that it may go better another time.
pub(super) fn may_go_better(error: &(dyn StdError + 'static)) -> bool {
    let is_transient = |store: &StoreError| {
        matches!(
            store,
            StoreError::Unavailable(_)
                | StoreError::UnknownOutcome(_)
                | StoreError::TransactionConflict(_)
                | StoreError::TransactionTimeout { .. }
                | StoreError::FenceHeld
        )
    };
    // A fence shows the store's error both as itself and as its cause.
    chain(error).any(|link| link.downcast_ref::<StoreError>().is_some_and(is_transient))
}

impl fmt::Debug for Classifiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Classifiers({})", self.0.len())
    }
}

/// An error and what caused it, outermost first. Bounded: an application's `source` may run in a circle.
pub(super) fn chain<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |link| (*link).source()).take(64)
}

/// The text of an error and of its causes, without what the outer text already says.
pub(super) fn describe(error: &(dyn StdError + 'static)) -> String {
    chain(error).fold(String::new(), |mut text, link| {
        let part = link.to_string();
        if !text.contains(&part) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&part);
        }
        text
    })
}
