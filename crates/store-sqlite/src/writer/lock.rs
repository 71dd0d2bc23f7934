//! The write lock of a file: who of this process asks for it next, and how to wait for other processes.

use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::SqliteTransactionManager;
use sqlx::{SqlSafeStr, SqliteConnection};
use sqlx_core::transaction::TransactionManager;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use surefoot_kernel_core::Timestamp;

/// Whose turn it is to ask for the write lock: inside one process nobody spins, and the order is fair.
#[derive(Debug, Clone)]
pub(crate) struct Turn(Arc<Semaphore>);

impl Turn {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }

    /// Waits for the turn; it ends when the answer is dropped. Cancel safe.
    pub(crate) async fn take(&self) -> Option<OwnedSemaphorePermit> {
        // Nobody closes the semaphore; without a turn the lock itself still keeps writers apart.
        self.0.clone().acquire_owned().await.ok()
    }
}

pub(crate) async fn begin_immediate(conn: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let statement = "BEGIN IMMEDIATE".into_sql_str();
    SqliteTransactionManager::begin(conn, Some(statement)).await
}

/// Pauses between two tries for a lock that another process holds: short, and random, so that processes that wait
/// together do not stay in step.
#[derive(Debug)]
pub(crate) struct Pause {
    seed: u64,
    tries: u64,
}

impl Pause {
    pub(crate) fn new(now: Timestamp) -> Self {
        let process = u64::from(std::process::id());
        Self { seed: now.micros().unsigned_abs() ^ process.rotate_left(32) | 1, tries: 0 }
    }

    pub(crate) fn reset(&mut self) {
        self.tries = 0;
    }

    /// Half a millisecond to three, and up to eight after many tries.
    pub(crate) fn next(&mut self) -> Duration {
        self.tries = self.tries.saturating_add(1);
        // xorshift64
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        let span = if self.tries < 20 { 2_500 } else { 7_500 };
        Duration::from_micros(500 + self.seed % span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_short_and_differ() {
        let mut pause = Pause::new(Timestamp::from_micros(1));
        let pauses: Vec<Duration> = (0..100).map(|_| pause.next()).collect();
        assert!(pauses.iter().all(|it| *it >= Duration::from_micros(500)));
        assert!(pauses.iter().all(|it| *it < Duration::from_millis(8)));
        let distinct: std::collections::HashSet<_> = pauses.iter().collect();
        assert!(distinct.len() > 50, "{}", distinct.len());
    }
}
