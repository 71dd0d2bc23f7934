//! Turns of the committers and the lane of events: as many statements at once as there are committers.
//!
//! What waits for its turn grows, and the larger a batch, the less each of it costs; a statement more at a time would
//! only make all of them smaller. While the server is idle nobody waits.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Debug, Clone)]
pub(crate) struct Turns(Arc<Semaphore>);

/// Ends when it is dropped.
pub(crate) type Turn = OwnedSemaphorePermit;

impl Turns {
    pub(crate) fn new(at_once: usize) -> Self {
        Self(Arc::new(Semaphore::new(at_once)))
    }

    /// Waits for a turn, in the order in which they are asked for. Cancel safe.
    pub(crate) async fn next(&self) -> Option<Turn> {
        // Nobody closes the semaphore; a turn only makes batches larger.
        self.0.clone().acquire_owned().await.ok()
    }
}
