//! How full a stream is. The server makes room by removing the oldest, so it must never have to.

use std::sync::{Mutex as StdMutex, PoisonError};
use std::time::Duration;

use surefoot_sync_core::SyncError;
use tokio::time::Instant;

use super::NatsWork;
use crate::declare;

/// How old the server's word about its bytes may be.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// What the server adds to a message, at most.
const OVERHEAD_BYTES: u64 = 512;

/// The server's word, and what was stored from here since.
#[derive(Debug)]
pub(super) struct Fill {
    known: StdMutex<Known>,
    /// Nine tenths of what may be stored; the rest is for work that is tried again.
    full_at_bytes: u64,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    bytes: u64,
    at: Instant,
}

impl Fill {
    pub(super) fn new(bytes: u64, stored_max_bytes: u64) -> Self {
        let known = StdMutex::new(Known { bytes, at: Instant::now() });
        Self { known, full_at_bytes: stored_max_bytes / 10 * 9 }
    }

    fn set(&self, bytes: u64) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) =
            Known { bytes, at: Instant::now() };
    }

    fn add(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(OVERHEAD_BYTES);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.bytes = known.bytes.saturating_add(bytes);
    }

    fn known(&self) -> Known {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NatsWork {
    /// Refuses new work where there is no room for it; looks again where room may have been made.
    pub(super) async fn check_room(&self, bytes: usize) -> Result<(), SyncError> {
        let known = self.fill.known();
        if known.at.elapsed() >= LOOK_EVERY || known.bytes >= self.fill.full_at_bytes {
            let info = declare::stream_info(&self.api, &self.stream).await?;
            self.clock.set(info.now);
            self.fill.set(info.bytes);
        }
        if self.fill.known().bytes >= self.fill.full_at_bytes {
            return Err(SyncError::StoreFull { resource: self.resource.clone() });
        }
        self.fill.add(bytes);
        Ok(())
    }
}
