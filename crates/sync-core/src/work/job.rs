//! Jobs: work with a key.

use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use surefoot_kernel_core::Timestamp;

use super::{Delivery, Work, WorkId};
use crate::{Key, SyncError};

/// When work begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// As soon as a worker is free.
    #[default]
    Now,
    /// After a wait.
    After(Duration),
    /// Not before an instant, by the server's clock.
    At(Timestamp),
}

impl Start {
    /// How long that is from an instant.
    #[must_use]
    pub fn wait_from(self, now: Timestamp) -> Duration {
        match self {
            Self::Now => Duration::ZERO,
            Self::After(wait) => wait,
            Self::At(at) => at.since(now).into(),
        }
    }
}

/// A job to submit.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// What it is known by. Two plain submits of one key inside the dedupe window are one job.
    pub key: Key,
    /// What its handler gets.
    pub input: Value,
    /// One job per key at a time: a submit joins the one that waits or runs, with its first input, and is free again
    /// when that one is done or dead. A submit that joins a job that already runs may not be seen by it. Do not mix
    /// with plain submits of the same key.
    pub coalesce: bool,
    /// When it begins.
    pub start: Start,
}

impl Job {
    /// A plain job that begins now.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] if the input cannot be JSON.
    pub fn new(key: Key, input: &impl Serialize) -> Result<Self, SyncError> {
        Ok(Self { key, input: json(input)?, coalesce: false, start: Start::Now })
    }

    /// One at a time: see [`Job::coalesce`].
    #[must_use]
    pub fn coalesced(mut self) -> Self {
        self.coalesce = true;
        self
    }

    /// Begins after a wait.
    #[must_use]
    pub fn after(mut self, wait: Duration) -> Self {
        self.start = Start::After(wait);
        self
    }

    /// Begins at an instant.
    #[must_use]
    pub fn at(mut self, at: Timestamp) -> Self {
        self.start = Start::At(at);
        self
    }
}

pub(super) fn json(data: &impl Serialize) -> Result<Value, SyncError> {
    let refused = |error: serde_json::Error| SyncError::InvalidOption {
        option: "data",
        why: error.to_string(),
    };
    serde_json::to_value(data).map_err(refused)
}

/// What became of a submit. All three are success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submitted {
    /// A new job.
    Stored(WorkId),
    /// The key was sent before, within the window; which job that was is known while it is stored.
    Duplicate(Option<WorkId>),
    /// A job of the key waits or runs.
    Joined(WorkId),
}

/// A job again, by its own handler.
#[derive(Debug, Clone, PartialEq)]
pub struct Again {
    /// When.
    pub delay: Duration,
    /// Its input, if not the same again.
    pub input: Option<Value>,
}

/// Jobs of one kind.
#[async_trait]
pub trait Jobs: Work {
    /// Stores a job, durably. Not cancel safe in that it may be stored; repeating a plain submit within the window, or
    /// a coalesced one at any time, stores nothing twice.
    ///
    /// # Errors
    /// [`SyncError::PayloadTooLarge`], [`SyncError::StoreFull`], [`SyncError::InvalidOption`] for a start that is too
    /// far away, [`SyncError::Unavailable`].
    async fn submit(&self, job: Job) -> Result<Submitted, SyncError>;

    /// Ends a delivery and has the same job come again, with all its attempts. The key stays taken in between.
    ///
    /// # Errors
    /// [`SyncError::StaleDelivery`] if the job is not the holder's any more; drop the result.
    async fn resubmit(&self, delivery: &Delivery, again: Again) -> Result<(), SyncError>;
}
