//! Waits for the end of a run.

use std::future::Future;
use std::time::Duration;

use surefoot_kernel_core::{LoadRequest, Run, RunId, RunState, TxStore};

use super::Kernel;
use crate::AwaitError;
use crate::engine::pace::Pause;

/// How long nobody looks at a run that is held by this process, unless there is news.
const HELD_HERE: Duration = Duration::from_secs(1);

impl<S: TxStore> Kernel<S> {
    /// Waits until a run has ended, or needs a person, and returns it. Workers of this process are heard at once;
    /// the runs of others are looked at again and again, with pauses that grow to a second, in one question for all that
    /// are waited for here.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    /// There is no such run, or the store's word.
    pub async fn await_run(&self, run: RunId) -> Result<Run, AwaitError> {
        let hearing = self.local().hear_of(run);
        let mut pause = Pause::new(Duration::from_millis(20), Duration::from_secs(1));
        // A run that is held here is left here: whoever leaves it says so, and how.
        if self.local().holds(run) {
            wait(hearing.moved(), HELD_HERE).await;
        }
        loop {
            match hearing.left() {
                Some(left) if is_over(&left) => return Ok(left),
                Some(_) => {}
                None if self.looks().is_open((self.store(), self.app()), run).await? => {}
                None => {
                    let left = self.read(run).await?;
                    if is_over(&left) {
                        return Ok(left);
                    }
                }
            }
            wait(hearing.moved(), pause.length()).await;
        }
    }

    async fn read(&self, run: RunId) -> Result<Run, AwaitError> {
        // Only the row is wanted: no fact is behind the end of the journal.
        let request = LoadRequest { run, after: Some(i64::MAX.unsigned_abs()) };
        let stored = self.store().run_load(request).await?;
        match stored.filter(|stored| stored.run.origin.app == *self.app()) {
            Some(stored) => Ok(stored.run),
            None => Err(AwaitError::NotFound { run }),
        }
    }
}

/// Whether it goes on no more by itself.
fn is_over(run: &Run) -> bool {
    run.state().is_terminal() || run.state() == RunState::NeedsAttention
}

/// Until there is news, at the longest for so long.
async fn wait(news: impl Future<Output = ()>, most: Duration) {
    tokio::select! {
        biased;
        () = news => {}
        () = tokio::time::sleep(most) => {}
    }
}
