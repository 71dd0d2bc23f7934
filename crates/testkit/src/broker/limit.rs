//! A rate limit in memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use async_trait::async_trait;
use surefoot_sync_core::{Key, Rate, RateCheck, RateLimit, SyncError};
use tokio::time::Instant;

/// Counts in this process only; clones count together.
#[derive(Debug, Clone)]
pub struct MemoryRateLimit {
    rate: Rate,
    start: Instant,
    /// When requests of the last period went on, by key.
    passed: Arc<StdMutex<BTreeMap<Key, VecDeque<u64>>>>,
}

impl MemoryRateLimit {
    /// Nothing is counted yet.
    ///
    /// Must be called in a tokio runtime with time.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        Self { rate, start: Instant::now(), passed: Arc::default() }
    }
}

#[async_trait]
impl RateLimit for MemoryRateLimit {
    async fn check(&self, key: &Key) -> Result<RateCheck, SyncError> {
        let now_us = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        let period = self.rate.period_us();
        passed.retain(|_, all| all.back().is_some_and(|at| at.saturating_add(period) > now_us));
        Ok(self.rate.decide(passed.entry(key.clone()).or_default(), now_us))
    }
}
