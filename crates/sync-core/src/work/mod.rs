//! Durable work, at least once: what jobs and queues have in common.
//!
//! A delivery is held for the time of [`WorkSettings::ack_wait`]; whoever holds it longer says so by
//! [`Work::heartbeat`], or it is delivered to somebody else. So a handler may run again, even beside a slow first
//! one, and must be idempotent.

mod dead;
mod job;
mod queue;
mod settings;

use std::time::Duration;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use surefoot_kernel_core::Timestamp;

use crate::{Key, SyncError};

pub use dead::{DeadLetter, DeadPage};
pub use job::{Again, Job, Jobs, Start, Submitted};
pub use queue::{Message, Partitions, Queue, QueueSettings, SendAllError, Sent};
pub use settings::WorkSettings;

/// The id of one piece of work: made when it is stored, and kept over its attempts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkId(String);

impl WorkId {
    /// For adapters, and for what a person types.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for WorkId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// One piece of work, held for a while.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Of what.
    pub id: WorkId,
    /// What the sender named it by: the key of a job, the ordering key of a message.
    pub key: Option<Key>,
    /// What was sent.
    pub data: Value,
    /// Which attempt this is, the first being 1. An attempt whose holder died counts.
    pub attempt: u32,
    /// How often the work was submitted again by its own handler.
    pub generation: u32,
    /// What the adapter settles it by.
    pub ticket: String,
}

impl Delivery {
    /// What was sent, as a type.
    ///
    /// # Errors
    /// [`SyncError::Corrupt`] if it is none.
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, SyncError> {
        T::deserialize(&self.data).map_err(|error| SyncError::Corrupt {
            what: format!("the data of {}", self.id),
            why: error.to_string(),
        })
    }
}

/// What becomes of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The work is done.
    Done,
    /// Again later, unless this was the last attempt: then it becomes a dead letter.
    Retry {
        /// When; `None` follows the backoff of the settings.
        delay: Option<Duration>,
        /// Why, for people.
        reason: String,
    },
    /// Never again by itself: it is kept as a dead letter.
    DeadLetter {
        /// Why, for people.
        reason: String,
    },
}

/// What an adapter does about a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// Acknowledge.
    Done,
    /// Deliver again after a wait.
    Retry(Duration),
    /// Keep as a dead letter, for a reason.
    Bury(String),
}

impl Verdict {
    /// The reason that a dead letter has if its last holder died.
    pub const HOLDER_LOST: &str =
        "the last attempt was never settled: its worker died or was too slow";

    /// What follows for an attempt. The one place that knows when attempts are spent.
    #[must_use]
    pub fn of_attempt(self, attempt: u32, settings: &WorkSettings) -> Move {
        match self {
            Self::Done => Move::Done,
            Self::DeadLetter { reason } => Move::Bury(reason),
            Self::Retry { reason, .. } if attempt >= settings.attempts_max => Move::Bury(reason),
            Self::Retry { delay, .. } => {
                Move::Retry(delay.unwrap_or_else(|| settings.backoff.after(attempt)))
            }
        }
    }
}

/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// As the verdict says.
    Done,
    /// It will be delivered again.
    Retried,
    /// It is a dead letter.
    Buried,
    /// The acknowledgement was sent and nobody confirmed it. The work was done; it may be delivered once more.
    Unconfirmed,
}

/// How much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depth {
    /// Waits for a worker, or for its time.
    pub waiting: u64,
    /// Held by a worker.
    pub held: u64,
    /// Dead letters.
    pub dead: u64,
    /// What all takes up, in bytes.
    pub bytes: u64,
    /// Since when the oldest is there.
    pub oldest: Option<Timestamp>,
    /// The present, by the same clock.
    pub now: Timestamp,
    /// Whether nothing is handed out.
    pub paused: bool,
}

/// How much to receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receive {
    /// At most so many.
    pub max: usize,
    /// How long to wait for the first one.
    pub wait: Duration,
}

/// Work of one resource, seen by those who do it.
#[async_trait]
pub trait Work: Send + Sync {
    /// As it was declared.
    fn settings(&self) -> &WorkSettings;

    /// Takes work that is due: at once what is there, and if there is nothing, the first that comes. Not cancel safe:
    /// what a dropped call was being handed is held by nobody, and is delivered again after the time it would be held.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`]; calling again is right.
    async fn receive(&self, request: Receive) -> Result<Vec<Delivery>, SyncError>;

    /// Holds a delivery for its whole time again.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn heartbeat(&self, delivery: &Delivery) -> Result<(), SyncError>;

    /// Settles a delivery. A success that cannot be confirmed is no error, and settling late is none either, as long
    /// as nobody else has settled it differently.
    ///
    /// # Errors
    /// [`SyncError::StaleDelivery`] if a retry or dead letter comes too late; [`SyncError::Unavailable`]: the work is
    /// delivered again when its time is over.
    async fn settle(&self, delivery: &Delivery, verdict: Verdict) -> Result<Settled, SyncError>;

    /// How much there is.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn depth(&self) -> Result<Depth, SyncError>;

    /// Hands out nothing more, to no worker of any process; what is held is finished and settled. Repeatable.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn pause(&self) -> Result<(), SyncError>;

    /// Hands out work again. Repeatable.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn resume(&self) -> Result<(), SyncError>;

    /// Repairs what the server lost sight of, and tells how many pieces of work that were. Workers call it when they
    /// start, and every minute.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn repair(&self) -> Result<usize, SyncError>;

    /// Dead letters, the oldest first, behind a place.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn dead_list(&self, page: DeadPage) -> Result<Vec<DeadLetter>, SyncError>;

    /// One dead letter.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn dead_load(&self, id: &WorkId) -> Result<Option<DeadLetter>, SyncError>;

    /// Sends a dead letter's data once more under a new key, with all its attempts, and removes the letter. Where a
    /// call was cut off, calling it again with the same key sends nothing twice. A queue keeps the ordering key.
    ///
    /// # Errors
    /// [`SyncError::NotFound`] if there is no such letter; [`SyncError::Unavailable`].
    async fn dead_requeue(&self, id: &WorkId, key: &Key) -> Result<WorkId, SyncError>;

    /// Removes a dead letter; `false` if there is none.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn dead_delete(&self, id: &WorkId) -> Result<bool, SyncError>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ResourceId;

    #[test]
    fn the_last_attempt_becomes_a_dead_letter() {
        let settings = WorkSettings::new(ResourceId::new("mail").unwrap());
        let retry = |delay| Verdict::Retry { delay, reason: "busy".to_owned() };
        let second = Duration::from_secs(1);
        assert_eq!(retry(None).of_attempt(1, &settings), Move::Retry(second));
        assert_eq!(retry(None).of_attempt(4, &settings), Move::Retry(120 * second));
        assert_eq!(retry(Some(second)).of_attempt(4, &settings), Move::Retry(second));
        assert_eq!(retry(Some(second)).of_attempt(5, &settings), Move::Bury("busy".to_owned()));
        assert_eq!(Verdict::Done.of_attempt(9, &settings), Move::Done);
        let dead = Verdict::DeadLetter { reason: "no such user".to_owned() };
        assert_eq!(dead.of_attempt(1, &settings), Move::Bury("no such user".to_owned()));
    }
}
