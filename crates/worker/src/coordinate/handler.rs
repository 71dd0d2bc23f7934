//! What a handler of work is given, and what it says.

use std::error::Error as StdError;
use std::time::Duration;

use serde::de::DeserializeOwned;
use surefoot_kernel_core::Cancel;
use surefoot_sync_core::{Again, Delivery, Key, SyncError, Verdict, WorkId};

/// One piece of work, in the hands of a handler. It is held as long as the handler runs.
#[derive(Debug, Clone)]
pub struct JobCx {
    delivery: Delivery,
    cancel: Cancel,
}

impl JobCx {
    pub(super) fn new(delivery: Delivery, cancel: Cancel) -> Self {
        Self { delivery, cancel }
    }

    /// The id of the work, the same in every attempt.
    #[must_use]
    pub fn id(&self) -> &WorkId {
        &self.delivery.id
    }

    /// What the sender named it by.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        self.delivery.key.as_ref()
    }

    /// What was sent.
    ///
    /// # Errors
    /// [`SyncError::Corrupt`] if it is no such type.
    pub fn input<T: DeserializeOwned>(&self) -> Result<T, SyncError> {
        self.delivery.data()
    }

    /// The first is 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.delivery.attempt
    }

    /// How often the job was submitted again by its handler.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.delivery.generation
    }

    /// Completes when the handler has run for too long and will be dropped. Cancel safe.
    pub fn canceled(&self) -> impl Future<Output = ()> + Send + use<> {
        self.cancel.canceled()
    }
}

/// How a handler ends well.
#[derive(Debug, Clone, PartialEq)]
pub enum JobEnd {
    /// The job is done.
    Done,
    /// This part is done, and the same job is to come again.
    Again(Again),
}

/// How a handler ends otherwise. Any error converts into a retry by the backoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkStop(Verdict);

impl WorkStop {
    /// Try again, after the backoff.
    #[must_use]
    pub fn retry(reason: impl Into<String>) -> Self {
        Self(Verdict::Retry { delay: None, reason: reason.into() })
    }

    /// Try again after a wait.
    #[must_use]
    pub fn retry_after(delay: Duration, reason: impl Into<String>) -> Self {
        Self(Verdict::Retry { delay: Some(delay), reason: reason.into() })
    }

    /// Give the work up: no attempt can do it.
    #[must_use]
    pub fn dead(reason: impl Into<String>) -> Self {
        Self(Verdict::DeadLetter { reason: reason.into() })
    }

    /// Why, whatever is to follow.
    pub(super) fn into_reason(self) -> String {
        match self.0 {
            Verdict::Done => String::new(),
            Verdict::Retry { reason, .. } | Verdict::DeadLetter { reason } => reason,
        }
    }

    pub(super) fn into_verdict(self) -> Verdict {
        self.0
    }
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for WorkStop {
    fn from(error: E) -> Self {
        Self::retry(told(&*error.into()))
    }
}

/// An error with its sources.
fn told(error: &(dyn StdError + 'static)) -> String {
    let (mut text, mut source) = (error.to_string(), error.source());
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
