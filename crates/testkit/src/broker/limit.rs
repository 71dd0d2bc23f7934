//! A rate limit in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use async_trait::async_trait;
use surefoot_sync_core::{Key, Rate, RateCheck, RateLimit, SyncError};
use tokio::time::Instant;

/// Counts in this process only; clones count together.
#[derive(Debug, Clone)]
pub struct MemoryRateLimit {
    rate: Rate,
    start: Instant,
    /// When all is free again, by key; what is free already is forgotten.
    full_at_us: Arc<StdMutex<BTreeMap<Key, u64>>>,
}

impl MemoryRateLimit {
    /// Nothing is counted yet.
    ///
    /// Must be called in a tokio runtime with time.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        Self { rate, start: Instant::now(), full_at_us: Arc::default() }
    }
}

#[async_trait]
impl RateLimit for MemoryRateLimit {
    async fn check(&self, key: &Key) -> Result<RateCheck, SyncError> {
        let now_us = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mut full_at_us = self.full_at_us.lock().unwrap_or_else(PoisonError::into_inner);
        full_at_us.retain(|_, full_at| *full_at > now_us);
        let before = full_at_us.get(key).copied().unwrap_or(0);
        let decision = self.rate.decide(before, now_us);
        full_at_us.insert(key.clone(), decision.full_at_us);
        Ok(decision.check)
    }
}
