//! Ephemeral state: entries that expire unless they are kept up, such as who is present.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use surefoot_kernel_core::Timestamp;

use crate::{Extent, Key, ReadTopic, ResourceId, SyncError};

/// How a set of entries is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EphemeralSettings {
    /// Which set.
    pub id: ResourceId,
    /// How long an entry stays without being kept up: whole seconds. 30 s.
    pub ttl: Duration,
    /// Largest value, in bytes. 4 KiB.
    pub value_max_bytes: usize,
    /// The most entries that a snapshot may have. 10,000.
    pub entries_max: usize,
}

impl EphemeralSettings {
    /// The defaults.
    #[must_use]
    pub fn new(id: ResourceId) -> Self {
        let ttl = Duration::from_secs(30);
        Self { id, ttl, value_max_bytes: 4 * 1024, entries_max: 10_000 }
    }

    /// Checks all settings; adapters do so before they create anything.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] for the first that cannot be.
    pub fn check(&self) -> Result<(), SyncError> {
        let bad = |option, why: &str| Err(SyncError::InvalidOption { option, why: why.to_owned() });
        if self.ttl.subsec_nanos() != 0 || !(1..=86_400).contains(&self.ttl.as_secs()) {
            return bad("ttl", "it is whole seconds, from 1 to 86400");
        }
        if !(16..=1 << 20).contains(&self.value_max_bytes) {
            return bad("value_max_bytes", "it is from 16 bytes to 1 MiB");
        }
        if !(1..=1_000_000).contains(&self.entries_max) {
            return bad("entries_max", "it is from 1 to 1000000");
        }
        Ok(())
    }

    /// Checks a value.
    ///
    /// # Errors
    /// [`SyncError::PayloadTooLarge`].
    pub fn check_value(&self, value: &Value) -> Result<(), SyncError> {
        let (bytes, limit_bytes) = (value.to_string().len(), self.value_max_bytes);
        if bytes <= limit_bytes {
            return Ok(());
        }
        Err(SyncError::PayloadTooLarge { bytes, limit_bytes })
    }
}

/// How long it is known that an entry is gone. Whoever looks away for longer begins anew.
pub const GONE_FOR: Duration = Duration::from_secs(60);

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryKey {
    /// Whose it is.
    pub tenant: Key,
    /// Its key among those of the tenant.
    pub key: Key,
}

impl fmt::Display for EntryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.key, self.tenant)
    }
}

/// Up to where changes are known, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchCursor {
    incarnation: u64,
    seq: u64,
    at: Timestamp,
}

impl WatchCursor {
    /// For adapters: everything up to the end of what is there.
    #[must_use]
    pub const fn at_end_of(extent: &Extent, now: Timestamp) -> Self {
        Self { incarnation: extent.incarnation, seq: extent.last_seq, at: now }
    }

    /// Where changes go on; `None` if some may have been missed.
    #[must_use]
    pub fn next_in(&self, extent: &Extent, now: Timestamp) -> Option<u64> {
        let fits = self.incarnation == extent.incarnation && self.seq <= extent.last_seq;
        let fresh = Duration::from(now.since(self.at)) < GONE_FOR;
        (fits && fresh).then(|| self.seq.saturating_add(1))
    }
}

/// What is there at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// By key.
    pub entries: Vec<(Key, Value)>,
    /// Where watching goes on.
    pub cursor: WatchCursor,
}

/// A change of one entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// It is this now.
    Upserted(Key, Value),
    /// It was deleted, or has expired. It may be one that was never seen.
    Gone(Key),
}

/// What a watcher is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Watched {
    /// What changed, each entry as it is by now, and where watching goes on. Empty when nothing did.
    Changes(Vec<Change>, WatchCursor),
    /// Something may have been missed: take a new snapshot.
    ResyncRequired,
}

/// A set of entries.
#[async_trait]
pub trait Ephemeral: Send + Sync {
    /// As it was declared.
    fn settings(&self) -> &EphemeralSettings;

    /// Sets an entry, for its time from now. Repeatable.
    ///
    /// # Errors
    /// [`SyncError::PayloadTooLarge`], [`SyncError::Unavailable`].
    async fn upsert(&self, entry: &EntryKey, value: Value) -> Result<(), SyncError>;

    /// Keeps an entry as it is for its time from now; `false` if it is gone. Where somebody sets it at the same moment,
    /// the new value stays.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn touch(&self, entry: &EntryKey) -> Result<bool, SyncError>;

    /// Removes an entry; `false` if it was gone.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn delete(&self, entry: &EntryKey) -> Result<bool, SyncError>;

    /// The entries of a tenant whose keys begin with a text, which may be empty. Cancel safe.
    ///
    /// # Errors
    /// [`SyncError::SnapshotOverflow`], [`SyncError::Unavailable`].
    async fn snapshot(&self, tenant: &Key, prefix: &str) -> Result<Snapshot, SyncError>;

    /// What changed of a tenant behind a cursor, waiting for it. Cancel safe.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn watch(
        &self,
        tenant: &Key,
        after: &WatchCursor,
        request: ReadTopic,
    ) -> Result<Watched, SyncError>;
}

#[cfg(test)]
mod tests {
    use surefoot_kernel_core::Micros;

    use super::*;

    #[test]
    fn a_watcher_that_looked_away_for_too_long_begins_anew() {
        let extent = |incarnation, last_seq| Extent { incarnation, first_seq: 1, last_seq };
        let start = Timestamp::from_micros(1_000_000_000);
        let cursor = WatchCursor::at_end_of(&extent(7, 40), start);
        let soon = start.plus(Micros::from_secs(59));
        assert_eq!(cursor.next_in(&extent(7, 50), soon), Some(41));
        assert_eq!(cursor.next_in(&extent(7, 40), soon), Some(41));
        assert_eq!(cursor.next_in(&extent(7, 50), start.plus(Micros::from_secs(60))), None);
        assert_eq!(cursor.next_in(&extent(8, 50), soon), None, "made anew");
        assert_eq!(cursor.next_in(&extent(7, 39), soon), None, "set back");
    }
}
