//! Waits for the end of a run.

use std::time::Duration;

use surefoot_kernel_core::{LoadRequest, Run, RunId, RunState, TxStore};

use super::Kernel;
use crate::AwaitError;
use crate::engine::pace::Pause;

impl<S: TxStore> Kernel<S> {
    /// Waits until a run has ended, or needs a person, and returns it. Workers of this process are heard at once;
    /// the runs of others are looked at again and again, with pauses that grow to a second.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    /// There is no such run, or the store's word.
    pub async fn await_run(&self, run: RunId) -> Result<Run, AwaitError> {
        let hearing = self.local().hear_of(run);
        let mut pause = Pause::new(Duration::from_millis(20), Duration::from_secs(1));
        loop {
            let left = hearing.left().notified();
            tokio::pin!(left);
            left.as_mut().enable();
            // Only the row is wanted: no fact is behind the end of the journal.
            let request = LoadRequest { run, after: Some(i64::MAX.unsigned_abs()) };
            let stored = self.store().run_load(request).await?;
            let Some(stored) = stored.filter(|stored| stored.run.origin.app == *self.app()) else {
                return Err(AwaitError::NotFound { run });
            };
            let state = stored.run.state();
            if state.is_terminal() || state == RunState::NeedsAttention {
                return Ok(stored.run);
            }
            tokio::select! {
                biased;
                () = left => {}
                () = tokio::time::sleep(pause.length()) => {}
            }
        }
    }
}
