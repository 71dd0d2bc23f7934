//! A lock that expires, with a fence that only grows.

use std::time::Duration;

use async_trait::async_trait;

use crate::{Key, ResourceId, SyncError};

/// How a set of locks is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MutexSettings {
    /// Which set.
    pub id: ResourceId,
    /// How long a lock is held without being extended: whole seconds, at least one.
    pub ttl: Duration,
}

impl MutexSettings {
    /// Held for 10 s.
    #[must_use]
    pub fn new(id: ResourceId) -> Self {
        Self { id, ttl: Duration::from_secs(10) }
    }

    /// Held for so long.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] unless it is whole seconds, from one second to a day.
    pub fn ttl(mut self, ttl: Duration) -> Result<Self, SyncError> {
        let whole = ttl.subsec_nanos() == 0 && (1..=86_400).contains(&ttl.as_secs());
        if !whole {
            let why = format!("{ttl:?} is not a number of whole seconds from 1 to 86400");
            return Err(SyncError::InvalidOption { option: "ttl", why });
        }
        self.ttl = ttl;
        Ok(self)
    }
}

/// A lock that is held, as far as its holder knows. The server's clock alone decides when it ends.
///
/// It stops nobody who was paused past its end: hand [`fence`](Self::fence) to the write that it protects, and have
/// the write refuse a smaller one (`WHERE fence < $fence`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// What is locked.
    pub resource: Key,
    /// Larger than that of every holder before; it stays while the lock is extended.
    pub fence: u64,
    /// What the adapter knows the present state of the lock by.
    pub revision: u64,
    /// Of this holder.
    pub token: String,
}

/// Locks that expire. Never the source of truth of a domain.
#[async_trait]
pub trait Mutex: Send + Sync {
    /// As it was declared.
    fn settings(&self) -> &MutexSettings;

    /// Takes the lock if it is free; `None` if somebody holds it. Cancel safe but for a lock that nobody knows of,
    /// which expires.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`] when it is not known whether it was taken; then it expires.
    async fn try_acquire(&self, resource: &Key) -> Result<Option<Lock>, SyncError>;

    /// Holds the lock for its whole time again, with the same fence; `None` if it is not the holder's any more.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    async fn extend(&self, lock: &Lock) -> Result<Option<Lock>, SyncError>;

    /// Gives the lock up; `false` if it was not the holder's any more.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`]; then it expires.
    async fn release(&self, lock: &Lock) -> Result<bool, SyncError>;
}
