//! Claims for tests that look at nothing but the rows.

#![expect(clippy::unwrap_used, reason = "tests, for which an error of the store is the end")]

use std::future::Future;

use surefoot_kernel_core::{ClaimRequest, Run, RunStore};

/// [`RunStore::run_claim`], of which only the rows are of interest.
pub trait ClaimRows: RunStore {
    /// The rows of the runs that were claimed.
    ///
    /// # Panics
    /// If the store has an error.
    fn claim_rows(&self, request: ClaimRequest) -> impl Future<Output = Vec<Run>> + Send {
        async {
            let claimed = self.run_claim(request).await.unwrap();
            claimed.into_iter().map(|stored| stored.run).collect()
        }
    }
}

impl<S: RunStore + ?Sized> ClaimRows for S {}
