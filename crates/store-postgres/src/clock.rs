//! The store's clock: the clock of record.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use surefoot_kernel_core::{Micros, Timestamp};

/// The database's clock, so that every worker reads the same one; and what a test has added to it.
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

    /// The store's time, by what `surefoot.clock()` says.
    pub(crate) fn at(&self, database: i64) -> Timestamp {
        Timestamp::from_micros(database.saturating_add(self.offset()))
    }

    /// For statements that read the clock themselves.
    pub(crate) fn offset(&self) -> i64 {
        self.offset.load(Ordering::SeqCst)
    }
}
