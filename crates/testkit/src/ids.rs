//! Ids that are the same in every run of a test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use surefoot_kernel_core::{EventId, Ids, SessionId, VersionId};

/// Counts: each id is larger than the one before. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct SeqIds(Arc<AtomicU64>);

impl SeqIds {
    /// From the first id on.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ids that no other one made by this has, in this process: for several that write to one store.
    #[must_use]
    pub fn apart() -> Self {
        static MADE: AtomicU64 = AtomicU64::new(1);
        let made = MADE.fetch_add(1, Ordering::SeqCst);
        Self(Arc::new(AtomicU64::new(made << 32)))
    }

    /// The count stands in the first six bytes, which the ids of runs keep of their event's.
    fn next(&self) -> [u8; 16] {
        let count = self.0.fetch_add(1, Ordering::SeqCst).saturating_add(1);
        let mut bytes = [0; 16];
        for (byte, counted) in bytes.iter_mut().zip(count.to_be_bytes().into_iter().skip(2)) {
            *byte = counted;
        }
        bytes
    }
}

impl Ids for SeqIds {
    fn event(&self) -> EventId {
        EventId::from_bytes(self.next())
    }

    fn version(&self) -> VersionId {
        VersionId::from_bytes(self.next())
    }

    fn session(&self) -> SessionId {
        SessionId::from_bytes(self.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_and_clones_count_together() {
        let ids = SeqIds::new();
        let (first, second) = (ids.event(), ids.clone().event());
        assert!(first < second);
        assert_eq!(SeqIds::new().event(), first);
    }
}
