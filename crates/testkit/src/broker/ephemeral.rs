//! Ephemeral state in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use surefoot_sync_core::{
    Change, EntryKey, Ephemeral, EphemeralSettings, Extent, GONE_FOR, Key, ReadTopic, ResourceId,
    Snapshot, SyncError, WatchCursor, Watched,
};
use tokio::time::Instant;

use super::Shared;

pub(super) type Entries = BTreeMap<ResourceId, Set>;

#[derive(Debug, Default)]
pub(super) struct Set {
    last_seq: u64,
    entries: BTreeMap<EntryKey, Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    seq: u64,
    /// `None` is known to be gone.
    value: Option<Value>,
    until: Instant,
}

impl Set {
    fn put(&mut self, key: EntryKey, value: Option<Value>, until: Instant) {
        self.last_seq += 1;
        self.entries.insert(key, Entry { seq: self.last_seq, value, until });
    }

    /// Entries whose time is over are gone, and after a while that is forgotten.
    fn expire(&mut self) {
        let now = Instant::now();
        let over: Vec<EntryKey> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.until <= now)
            .map(|(key, _)| key.clone())
            .collect();
        for key in over {
            let Some(entry) = self.entries.remove(&key) else { continue };
            if entry.value.is_some() && entry.until + GONE_FOR > now {
                self.put(key, None, entry.until + GONE_FOR);
            }
        }
    }

    fn live(&self, key: &EntryKey) -> Option<&Value> {
        self.entries.get(key)?.value.as_ref()
    }

    fn extent(&self) -> Extent {
        Extent { incarnation: 1, first_seq: 1, last_seq: self.last_seq }
    }
}

#[derive(Debug)]
pub(super) struct MemoryEphemeral {
    shared: Arc<Shared>,
    settings: EphemeralSettings,
}

impl MemoryEphemeral {
    pub(super) fn new(shared: Arc<Shared>, settings: EphemeralSettings) -> Self {
        Self { shared, settings }
    }

    fn with<R>(&self, change: impl FnOnce(&mut Set) -> R) -> R {
        let mut data = self.shared.data();
        let set = data.entries.entry(self.settings.id.clone()).or_default();
        set.expire();
        change(set)
    }

    fn until(&self) -> Instant {
        Instant::now() + self.settings.ttl
    }
}

#[async_trait]
impl Ephemeral for MemoryEphemeral {
    fn settings(&self) -> &EphemeralSettings {
        &self.settings
    }

    async fn upsert(&self, entry: &EntryKey, value: Value) -> Result<(), SyncError> {
        self.settings.check_value(&value)?;
        self.with(|set| set.put(entry.clone(), Some(value), self.until()));
        self.shared.changed.notify_waiters();
        Ok(())
    }

    async fn touch(&self, entry: &EntryKey) -> Result<bool, SyncError> {
        Ok(self.with(|set| {
            let Some(value) = set.live(entry).cloned() else { return false };
            set.put(entry.clone(), Some(value), self.until());
            true
        }))
    }

    async fn delete(&self, entry: &EntryKey) -> Result<bool, SyncError> {
        let was_live = self.with(|set| {
            let was_live = set.live(entry).is_some();
            set.put(entry.clone(), None, Instant::now() + GONE_FOR);
            was_live
        });
        self.shared.changed.notify_waiters();
        Ok(was_live)
    }

    async fn snapshot(&self, tenant: &Key, prefix: &str) -> Result<Snapshot, SyncError> {
        let now = self.shared.timestamp();
        self.with(|set| {
            let own = set.entries.iter().filter(|(entry, _)| {
                entry.tenant == *tenant && entry.key.as_str().starts_with(prefix)
            });
            let live = own.filter_map(|(at, entry)| Some((at.key.clone(), entry.value.clone()?)));
            let entries: Vec<(Key, Value)> = live.collect();
            let limit = self.settings.entries_max;
            if entries.len() > limit {
                return Err(SyncError::SnapshotOverflow { limit });
            }
            Ok(Snapshot { entries, cursor: WatchCursor::at_end_of(&set.extent(), now) })
        })
    }

    async fn watch(
        &self,
        tenant: &Key,
        after: &WatchCursor,
        request: ReadTopic,
    ) -> Result<Watched, SyncError> {
        let deadline = Instant::now() + request.wait;
        loop {
            let notified = self.shared.changed.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let now = self.shared.timestamp();
            let (changes, cursor, next) = {
                let read = self.with(|set| {
                    let from = after.next_in(&set.extent(), now)?;
                    let own = set.entries.iter().filter(|(at, _)| at.tenant == *tenant);
                    let mut new: Vec<_> = own.filter(|(_, entry)| entry.seq >= from).collect();
                    new.sort_by_key(|(_, entry)| entry.seq);
                    let changes = new.into_iter().map(|(at, entry)| match &entry.value {
                        Some(value) => Change::Upserted(at.key.clone(), value.clone()),
                        None => Change::Gone(at.key.clone()),
                    });
                    let changes: Vec<Change> = changes.collect();
                    let next = set.entries.values().map(|entry| entry.until).min();
                    Some((changes, WatchCursor::at_end_of(&set.extent(), now), next))
                });
                let Some(read) = read else { return Ok(Watched::ResyncRequired) };
                read
            };
            if !changes.is_empty() || Instant::now() >= deadline {
                return Ok(Watched::Changes(changes, cursor));
            }
            let until = next.map_or(deadline, |next| next.min(deadline));
            let _ = tokio::time::timeout_at(until, notified).await;
        }
    }
}
