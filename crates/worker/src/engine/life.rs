//! Liveness of the background loops, and what restarts them.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use surefoot_kernel_core::{Clock, Micros};

use super::pace::{Pause, minus};
use super::panics::caught;

/// A background loop as health shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopHealth {
    /// `claims`, `leases`, `recovery`, `schedules`, `sessions` or `wakes`.
    pub name: &'static str,
    /// How often it was restarted after a panic.
    pub restarts: u64,
    /// Why its last pass failed; none if it did not.
    pub failing: Option<String>,
    /// Since its last sign of life.
    pub silent_for: Duration,
}

/// The signs of life of one loop.
pub(crate) struct Life {
    name: &'static str,
    clock: Arc<dyn Clock>,
    restarts: AtomicU64,
    beat: AtomicI64,
    is_failing: AtomicBool,
    failing: Mutex<String>,
}

impl Life {
    pub(crate) fn new(name: &'static str, clock: Arc<dyn Clock>) -> Self {
        let beat = AtomicI64::new(clock.monotonic().get());
        Self {
            name,
            clock,
            restarts: AtomicU64::new(0),
            beat,
            is_failing: AtomicBool::new(false),
            failing: Mutex::default(),
        }
    }

    /// A pass went well.
    pub(crate) fn well(&self) {
        self.beat.store(self.clock.monotonic().get(), Ordering::Relaxed);
        if self.is_failing.swap(false, Ordering::Relaxed) {
            tracing::info!(name = self.name, "the loop works again");
        }
    }

    /// A pass failed. Logged when it begins, not each time.
    pub(crate) fn failed(&self, why: &dyn std::fmt::Display) {
        self.beat.store(self.clock.monotonic().get(), Ordering::Relaxed);
        *self.failing.lock().unwrap_or_else(PoisonError::into_inner) = why.to_string();
        if !self.is_failing.swap(true, Ordering::Relaxed) {
            tracing::warn!(name = self.name, %why, "a pass of the loop failed; it is tried again");
        }
    }

    pub(crate) fn health(&self) -> LoopHealth {
        let beat = Micros::new(self.beat.load(Ordering::Relaxed));
        let failing = self
            .is_failing
            .load(Ordering::Relaxed)
            .then(|| self.failing.lock().unwrap_or_else(PoisonError::into_inner).clone());
        LoopHealth {
            name: self.name,
            restarts: self.restarts.load(Ordering::Relaxed),
            failing,
            silent_for: minus(self.clock.monotonic(), beat).into(),
        }
    }

    /// Runs a loop until it ends by itself. One that panics is started again, each time later.
    pub(crate) async fn keep<F: Future<Output = ()>>(&self, mut start: impl FnMut() -> F) {
        let mut pause = Pause::new(Duration::from_millis(100), Duration::from_secs(10));
        loop {
            let began = self.clock.monotonic();
            let Err(panicked) = caught(start()).await else { return };
            self.restarts.fetch_add(1, Ordering::Relaxed);
            self.failed(&format_args!("it panicked: {}", panicked.0));
            if minus(self.clock.monotonic(), began) > Micros::from_secs(60) {
                pause = Pause::new(Duration::from_millis(100), Duration::from_secs(10));
            }
            tokio::time::sleep(pause.length()).await;
        }
    }
}
/// An error with what is said below it.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(below) = cause {
        text.push_str(": ");
        text.push_str(&below.to_string());
        cause = below.source();
    }
    text
}
