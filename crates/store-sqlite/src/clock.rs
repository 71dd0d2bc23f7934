//! The store's clock: the clock of record.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use surefoot_kernel_core::{Micros, Timestamp};

/// Wall clock of this machine in microseconds; SQLite's own has milliseconds only. Every process on one file reads
/// the same clock.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoreClock {
    offset: Arc<AtomicI64>,
}

impl StoreClock {
    pub(crate) const fn new(offset: Arc<AtomicI64>) -> Self {
        Self { offset }
    }

    /// Moves it on, for everybody who shares it.
    pub(crate) fn advance(&self, span: Micros) {
        self.offset.fetch_add(span.get(), Ordering::SeqCst);
    }

    #[expect(clippy::disallowed_methods, reason = "the store's clock is the clock of record")]
    pub(crate) fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let micros = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(micros.saturating_add(self.offset.load(Ordering::SeqCst)))
    }
}
