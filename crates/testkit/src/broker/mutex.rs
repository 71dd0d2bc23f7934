//! Locks in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use surefoot_sync_core::{Key, Lock, Mutex, MutexSettings, ResourceId, SyncError};
use tokio::time::Instant;

use super::Shared;

#[derive(Debug, Default)]
pub(super) struct Mutexes {
    /// One sequence for all: fences never fall.
    last: u64,
    held: BTreeMap<(ResourceId, Key), Held>,
}

#[derive(Debug, Clone)]
struct Held {
    lock: Lock,
    until: Instant,
}

#[derive(Debug)]
pub(super) struct MemoryMutex {
    shared: Arc<Shared>,
    settings: MutexSettings,
}

impl MemoryMutex {
    pub(super) fn new(shared: Arc<Shared>, settings: MutexSettings) -> Self {
        Self { shared, settings }
    }

    fn place(&self, resource: &Key) -> (ResourceId, Key) {
        (self.settings.id.clone(), resource.clone())
    }
}

#[async_trait]
impl Mutex for MemoryMutex {
    fn settings(&self) -> &MutexSettings {
        &self.settings
    }

    async fn try_acquire(&self, resource: &Key) -> Result<Option<Lock>, SyncError> {
        let now = Instant::now();
        let mutexes = &mut self.shared.data().mutexes;
        let place = self.place(resource);
        if mutexes.held.get(&place).is_some_and(|held| held.until > now) {
            return Ok(None);
        }
        mutexes.last += 1;
        let (fence, token) = (mutexes.last, mutexes.last.to_string());
        let lock = Lock { resource: resource.clone(), fence, revision: fence, token };
        mutexes.held.insert(place, Held { lock: lock.clone(), until: now + self.settings.ttl });
        Ok(Some(lock))
    }

    async fn extend(&self, lock: &Lock) -> Result<Option<Lock>, SyncError> {
        let now = Instant::now();
        let mutexes = &mut self.shared.data().mutexes;
        let Some(held) = mutexes.held.get_mut(&self.place(&lock.resource)) else { return Ok(None) };
        if held.until <= now || held.lock.revision != lock.revision {
            return Ok(None);
        }
        mutexes.last += 1;
        held.lock.revision = mutexes.last;
        held.until = now + self.settings.ttl;
        Ok(Some(held.lock.clone()))
    }

    async fn release(&self, lock: &Lock) -> Result<bool, SyncError> {
        let mutexes = &mut self.shared.data().mutexes;
        let place = self.place(&lock.resource);
        let Some(held) = mutexes.held.get(&place) else { return Ok(false) };
        if held.lock.revision != lock.revision {
            return Ok(false);
        }
        let live = held.until > Instant::now();
        mutexes.held.remove(&place);
        Ok(live)
    }
}
