//! What becomes true when the surrounding transaction commits.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use surefoot_kernel_core::TxStore;
use surefoot_kernel_core::plan::Footprint;

use super::Kernel;

/// What became true when the surrounding transaction committed. Readable at once.
///
/// Call [`AfterCommit::committed`] then: it wakes workers. Dropping it is safe: the scan finds the rest within a
/// second. After a rollback, drop it.
#[must_use = "call `.committed()` after the transaction's commit, so that workers wake at once"]
pub struct AfterCommit<T> {
    value: T,
    wake: Arc<dyn Fn() + Send + Sync>,
}

/// Who has something to do after a commit.
pub(super) enum Tell {
    Nobody,
    Claimers,
    Recovery,
    Footprint(Footprint),
}

impl<T> AfterCommit<T> {
    /// The transaction has committed: wakes workers.
    pub fn committed(self) -> T {
        (self.wake)();
        self.value
    }
}

impl<T> Deref for AfterCommit<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for AfterCommit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AfterCommit").field(&self.value).finish()
    }
}

impl<S: TxStore> Kernel<S> {
    pub(super) fn after_commit<T>(&self, value: T, tell: Tell) -> AfterCommit<T> {
        let kernel = self.clone();
        AfterCommit { value, wake: Arc::new(move || kernel.tell(&tell)) }
    }

    pub(super) fn tell(&self, tell: &Tell) {
        match tell {
            Tell::Nobody => {}
            Tell::Claimers => self.local().wake(false),
            Tell::Recovery => self.local().wake(true),
            Tell::Footprint(footprint) => self.local().learn(footprint),
        }
    }
}
