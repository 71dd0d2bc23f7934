//! Topics: a retained stream that many read, each at its own pace.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use surefoot_kernel_core::Timestamp;

use crate::{Key, ResourceId, SyncError};

/// How a topic is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSettings {
    /// Which topic.
    pub id: ResourceId,
    /// How long messages are kept. 7 days.
    pub retention: Duration,
    /// How much is kept, in bytes; the oldest makes room. 1 GiB.
    pub stored_max_bytes: u64,
    /// For how long an idempotency key is recognised. 120 s.
    pub dedupe_window: Duration,
    /// Largest data with its envelope, in bytes. 128 KiB.
    pub payload_max_bytes: usize,
}

impl TopicSettings {
    /// The defaults.
    #[must_use]
    pub fn new(id: ResourceId) -> Self {
        Self {
            id,
            retention: Duration::from_secs(7 * 86_400),
            stored_max_bytes: 1 << 30,
            dedupe_window: Duration::from_secs(120),
            payload_max_bytes: 128 * 1024,
        }
    }

    /// Of the topic in which stands what people did: a year, 16 MiB.
    ///
    /// # Errors
    /// None; the name is one.
    pub fn journal() -> Result<Self, SyncError> {
        let id = ResourceId::new("surefoot.journal")?;
        let (retention, stored_max_bytes) = (Duration::from_secs(365 * 86_400), 16 << 20);
        Ok(Self { retention, stored_max_bytes, ..Self::new(id) })
    }

    /// Checks all settings; adapters do so before they create anything.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] for the first that cannot be.
    pub fn check(&self) -> Result<(), SyncError> {
        let bad = |option, why: &str| Err(SyncError::InvalidOption { option, why: why.to_owned() });
        let least = Duration::from_millis(100);
        if self.retention < Duration::from_secs(1) {
            return bad("retention", "it is at least a second");
        }
        if self.dedupe_window < least || self.dedupe_window > self.retention {
            return bad("dedupe_window", "it is from 100 ms to the retention");
        }
        if !(1_024..=32 << 20).contains(&self.payload_max_bytes) {
            return bad("payload_max_bytes", "it is from 1 KiB to 32 MiB");
        }
        if self.stored_max_bytes < 1 << 12 || i64::try_from(self.stored_max_bytes).is_err() {
            return bad("stored_max_bytes", "it is at least 4 KiB");
        }
        Ok(())
    }
}

/// A place in one topic: behind a message. It is of no use in another topic, nor in one that was made anew.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cursor {
    incarnation: u64,
    seq: u64,
}

impl Cursor {
    /// For adapters.
    #[must_use]
    pub const fn new(incarnation: u64, seq: u64) -> Self {
        Self { incarnation, seq }
    }

    /// The sequence number of the message it stands behind; 0 is the beginning.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        self.seq
    }

    /// Where reading goes on in a topic that holds some messages and began with others.
    ///
    /// # Errors
    /// [`SyncError::CursorMismatch`], [`SyncError::RetentionGap`].
    pub fn next_in(&self, extent: &Extent) -> Result<u64, SyncError> {
        if self.incarnation != extent.incarnation || self.seq > extent.last_seq {
            return Err(SyncError::CursorMismatch);
        }
        let requested = self.seq.saturating_add(1);
        if requested < extent.first_seq {
            let first_available = extent.first_seq;
            return Err(SyncError::RetentionGap { requested, first_available });
        }
        Ok(requested)
    }
}

/// What a topic holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Another one in each topic that is created.
    pub incarnation: u64,
    /// The first message that is kept; of an empty topic the one that comes next.
    pub first_seq: u64,
    /// The last message, kept or not.
    pub last_seq: u64,
}

/// `sx1.` and two numbers in hex.
impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sx1.{:016x}.{:x}", self.incarnation, self.seq)
    }
}

impl FromStr for Cursor {
    type Err = SyncError;

    fn from_str(text: &str) -> Result<Self, SyncError> {
        let parse = || {
            let (incarnation, seq) = text.strip_prefix("sx1.")?.split_once('.')?;
            let hex = |text: &str| {
                let plain = text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
                u64::from_str_radix(text, 16).ok().filter(|_| plain)
            };
            Some(Self { incarnation: hex(incarnation)?, seq: hex(seq)? })
        };
        parse().ok_or(SyncError::CursorMismatch)
    }
}

/// A message to publish.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicEvent {
    /// Whose it is.
    pub tenant: Key,
    /// What readers get.
    pub data: Value,
    /// Two messages with one key inside the dedupe window are one.
    pub idempotency_key: Option<Key>,
}

impl TopicEvent {
    /// A message of a tenant.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] if the data cannot be JSON.
    pub fn new(tenant: Key, data: &impl Serialize) -> Result<Self, SyncError> {
        let data = serde_json::to_value(data)
            .map_err(|error| SyncError::InvalidOption { option: "data", why: error.to_string() })?;
        Ok(Self { tenant, data, idempotency_key: None })
    }

    /// Recognised by a key when it is published again.
    #[must_use]
    pub fn idempotency_key(mut self, key: Key) -> Self {
        self.idempotency_key = Some(key);
        self
    }
}

/// What became of a message that was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPublished {
    /// Behind the message.
    pub cursor: Cursor,
    /// It was published before.
    pub duplicate: bool,
}

/// A message that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicMessage {
    /// Behind this message: where reading goes on.
    pub cursor: Cursor,
    /// Whose it is.
    pub tenant: Key,
    /// What was published.
    pub data: Value,
    /// When it was stored, by the server's clock.
    pub at: Timestamp,
}

impl TopicMessage {
    /// What was published, as a type.
    ///
    /// # Errors
    /// [`SyncError::Corrupt`] if it is none.
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, SyncError> {
        T::deserialize(&self.data).map_err(|error| SyncError::Corrupt {
            what: format!("the data behind {}", self.cursor),
            why: error.to_string(),
        })
    }
}

/// A message as it passes by.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveMessage {
    /// Behind this message.
    pub cursor: Cursor,
    /// Whose it is.
    pub tenant: Key,
    /// What was published.
    pub data: Value,
}

/// Messages as they pass by, from when it was asked for: whatever is missed is missed.
#[async_trait]
pub trait LiveMessages: Send {
    /// The next one; `None` when the connection has been closed. Cancel safe.
    async fn next(&mut self) -> Option<LiveMessage>;
}

/// How much to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadTopic {
    /// At most so many.
    pub max: usize,
    /// How long to wait for the first one.
    pub wait: Duration,
}

/// One topic.
#[async_trait]
pub trait Topic: Send + Sync {
    /// As it was declared.
    fn settings(&self) -> &TopicSettings;

    /// Stores a message, durably. Not cancel safe in that it may be stored; repeating it with its key is safe.
    ///
    /// # Errors
    /// [`SyncError::PayloadTooLarge`], [`SyncError::Unavailable`].
    async fn publish(&self, event: TopicEvent) -> Result<EventPublished, SyncError>;

    /// Behind the last message: whoever begins here reads what comes from now on.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn head(&self) -> Result<Cursor, SyncError>;

    /// Behind what is not kept any more: whoever begins here reads all that is kept.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn tail(&self) -> Result<Cursor, SyncError>;

    /// What is stored from now on, to whoever listens just then. Best effort: a listener that is too slow, or not
    /// connected, misses messages and is not told.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn live(&self) -> Result<Box<dyn LiveMessages>, SyncError>;

    /// What follows a place, without any message missing in between, of all tenants. Nothing of it is kept by the
    /// server, so many may read, and a call can be dropped at any time: cancel safe.
    ///
    /// # Errors
    /// [`SyncError::CursorMismatch`], [`SyncError::RetentionGap`] if what follows is not kept any more,
    /// [`SyncError::Unavailable`].
    async fn read(
        &self,
        after: &Cursor,
        request: ReadTopic,
    ) -> Result<Vec<TopicMessage>, SyncError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers behaviour 203.
    #[test]
    fn a_cursor_is_of_one_topic_and_survives_as_text() {
        let cursor = Cursor::new(0xfeed, 41);
        assert_eq!(cursor.to_string().parse::<Cursor>().unwrap(), cursor);
        let texts = ["", "sx1", "sx1.1", "sx2.1.1", "sx1.+1.1", "sx1.1.G", "sx1.1.1.1", "sx1..1"];
        for text in texts {
            let error = text.parse::<Cursor>();
            assert!(matches!(error, Err(SyncError::CursorMismatch)), "{text}");
        }
        let extent = Extent { incarnation: 0xfeed, first_seq: 40, last_seq: 50 };
        assert_eq!(cursor.next_in(&extent).unwrap(), 42);
        assert_eq!(Cursor::new(0xfeed, 50).next_in(&extent).unwrap(), 51);
        for other in [Cursor::new(0xbee, 41), Cursor::new(0xfeed, 51)] {
            assert!(matches!(other.next_in(&extent), Err(SyncError::CursorMismatch)));
        }
        let gap = Cursor::new(0xfeed, 20).next_in(&extent).unwrap_err();
        assert!(matches!(gap, SyncError::RetentionGap { requested: 21, first_available: 40 }));
        assert_eq!(Cursor::new(0xfeed, 39).next_in(&extent).unwrap(), 40);
    }
}
