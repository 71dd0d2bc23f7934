//! One question for everybody who waits for a run of somebody else: thousands may, and each looks again and again.

use std::sync::{Arc, Mutex, PoisonError};

use surefoot_kernel_core::{App, RunId, RunStore, StoreError};
use tokio::sync::oneshot;

/// Whether a run goes on, or why nobody knows.
type Said = Result<bool, Arc<StoreError>>;

/// Who looks, and what is asked for them.
#[derive(Default)]
pub(super) struct Looks {
    waiting: Mutex<Vec<(RunId, oneshot::Sender<Said>)>>,
    /// Held by whoever asks; what comes meanwhile is in the next question.
    asking: tokio::sync::Mutex<()>,
}

impl Looks {
    /// Whether the run goes on by itself. Cancel safe: whoever goes away while asking leaves the others to ask again.
    pub(super) async fn is_open(
        &self,
        (store, app): (&dyn RunStore, &App),
        run: RunId,
    ) -> Result<bool, StoreError> {
        loop {
            let (reply, mut answer) = oneshot::channel();
            self.waiting().push((run, reply));
            let said = tokio::select! {
                biased;
                said = &mut answer => said.ok(),
                _turn = self.asking.lock() => match answer.try_recv() {
                    Ok(said) => Some(said),
                    Err(_) => {
                        self.ask(store, app).await;
                        answer.try_recv().ok()
                    }
                },
            };
            if let Some(said) = said {
                return said.map_err(|error| StoreError::Unavailable(Box::new(Told(error))));
            }
        }
    }

    async fn ask(&self, store: &dyn RunStore, app: &App) {
        let asked = std::mem::take(&mut *self.waiting());
        let mut runs: Vec<RunId> = asked.iter().map(|(run, _)| *run).collect();
        runs.sort_unstable();
        runs.dedup();
        let open = store.run_open(app, &runs).await.map_err(Arc::new);
        for (run, reply) in asked {
            // Whoever asked may be gone.
            drop(reply.send(open.as_ref().map(|open| open.contains(&run)).map_err(Arc::clone)));
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<(RunId, oneshot::Sender<Said>)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the store said to all who waited.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Told(#[source] Arc<StoreError>);
