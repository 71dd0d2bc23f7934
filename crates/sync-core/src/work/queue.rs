//! Queues: messages, each settled by the application, in order where that matters.

use std::num::NonZeroU16;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;

use super::job::json;
use super::{Work, WorkId, WorkSettings};
use crate::{Key, SyncError};

/// How a queue is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSettings {
    /// What it has in common with jobs.
    pub work: WorkSettings,
    /// With partitions, messages of one ordering key are handled one after the other.
    pub partitions: Option<Partitions>,
}

impl QueueSettings {
    /// Without order.
    #[must_use]
    pub fn new(work: WorkSettings) -> Self {
        Self { work, partitions: None }
    }

    /// With order: each message needs an ordering key.
    #[must_use]
    pub fn ordered(work: WorkSettings, partitions: Partitions) -> Self {
        Self { work, partitions: Some(partitions) }
    }

    /// The lane of a message.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] if it needs an ordering key and has none.
    pub fn lane(&self, message: &Message) -> Result<u16, SyncError> {
        match (&self.partitions, &message.ordering_key) {
            (None, _) => Ok(0),
            (Some(partitions), Some(key)) => Ok(partitions.of(key)),
            (Some(_), None) => {
                let why = "a message of an ordered queue needs one".to_owned();
                Err(SyncError::InvalidOption { option: "ordering_key", why })
            }
        }
    }
}

/// Into how many lanes the ordering keys of a queue fall. It cannot be changed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partitions(NonZeroU16);

/// 16.
impl Default for Partitions {
    fn default() -> Self {
        Self(NonZeroU16::MIN.saturating_add(15))
    }
}

impl Partitions {
    /// So many, up to 256.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`].
    pub fn new(count: u16) -> Result<Self, SyncError> {
        let why = || format!("{count} is not from 1 to 256");
        let fits = NonZeroU16::new(count).filter(|count| count.get() <= 256);
        fits.map(Self).ok_or_else(|| SyncError::InvalidOption { option: "partitions", why: why() })
    }

    /// How many.
    #[must_use]
    pub const fn count(self) -> u16 {
        self.0.get()
    }

    /// The lane of a key, by 64-bit FNV-1a. It never changes: what is stored already lies in its lane.
    #[must_use]
    pub fn of(self, key: &Key) -> u16 {
        let hash = key.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        u16::try_from(hash % u64::from(self.count())).unwrap_or(0)
    }
}

/// A message to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// What its reader gets.
    pub data: Value,
    /// Two messages with one key inside the dedupe window are one.
    pub idempotency_key: Option<Key>,
    /// Messages of one key are handled in the order in which they came, if the queue has partitions.
    pub ordering_key: Option<Key>,
    /// When it may be read first. In an ordered queue it takes its place when that time comes.
    pub delay: Duration,
}

impl Message {
    /// A message that may be read at once.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] if the data cannot be JSON.
    pub fn new(data: &impl Serialize) -> Result<Self, SyncError> {
        let data = json(data)?;
        Ok(Self { data, idempotency_key: None, ordering_key: None, delay: Duration::ZERO })
    }

    /// Recognised by a key when it is sent again.
    #[must_use]
    pub fn idempotency_key(mut self, key: Key) -> Self {
        self.idempotency_key = Some(key);
        self
    }

    /// In order with the others of a key.
    #[must_use]
    pub fn ordering_key(mut self, key: Key) -> Self {
        self.ordering_key = Some(key);
        self
    }

    /// Read first after a wait.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

/// What became of a message that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// Its id; that of the first one if it is a duplicate, as long as that one is stored.
    pub id: Option<WorkId>,
    /// It was sent before.
    pub duplicate: bool,
}

/// Some of many messages were not sent.
#[derive(Debug, thiserror::Error)]
#[error(
    "{accepted} messages were stored and {duplicates} were already; sending all again with the same keys is safe"
)]
pub struct SendAllError {
    /// Stored by this call.
    pub accepted: usize,
    /// Stored before.
    pub duplicates: usize,
    /// Why the next one was not.
    #[source]
    pub source: SyncError,
}

/// Messages of one kind.
#[async_trait]
pub trait Queue: Work {
    /// Whether messages are in order, and in how many lanes.
    fn partitions(&self) -> Option<Partitions>;

    /// Stores a message, durably. Not cancel safe in that it may be stored; repeating it with its idempotency key is safe.
    ///
    /// # Errors
    /// [`SyncError::PayloadTooLarge`], [`SyncError::StoreFull`], [`SyncError::InvalidOption`],
    /// [`SyncError::Unavailable`].
    async fn send(&self, message: Message) -> Result<Sent, SyncError>;

    /// Stores messages in their order. If one of them cannot be, by its size or settings, none is.
    ///
    /// # Errors
    /// [`SendAllError`] tells how many were stored before the one that failed.
    async fn send_all(&self, messages: Vec<Message>) -> Result<Vec<Sent>, SendAllError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stays_in_its_lane_for_ever() {
        let key = |name: &str| Key::new(name).unwrap();
        let lanes =
            ["a", "order-17", "Ä", "berlin"].map(|name| Partitions::default().of(&key(name)));
        assert_eq!(lanes, [12, 14, 2, 1]);
        assert_eq!(Partitions::new(1).unwrap().of(&key("a")), 0);
        assert!(Partitions::new(0).is_err() && Partitions::new(257).is_err());
    }
}
