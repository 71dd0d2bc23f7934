//! Tells other processes, without keeping anybody waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use surefoot_kernel_core::{App, WakeBus};

/// What a bus may take; then it is given up, and the others scan.
const ANNOUNCE_WITHIN: Duration = Duration::from_secs(5);

/// Announces over a bus.
pub(super) struct Announcer {
    bus: Arc<dyn WakeBus>,
    app: App,
    /// One announcement is on its way, and has not been made yet.
    pending: Arc<AtomicBool>,
}

impl Announcer {
    pub(super) fn new(bus: Arc<dyn WakeBus>, app: App) -> Self {
        Self { bus, app, pending: Arc::default() }
    }

    /// In a task of its own; without a runtime nobody is told.
    pub(super) fn announce(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.pending.swap(true, Ordering::AcqRel) {
            return;
        }
        let (bus, app, pending) = (self.bus.clone(), self.app.clone(), self.pending.clone());
        runtime.spawn(async move {
            // What becomes ready from here on is another announcement.
            pending.store(false, Ordering::Release);
            let _ = tokio::time::timeout(ANNOUNCE_WITHIN, bus.announce(app.as_str())).await;
        });
    }
}
