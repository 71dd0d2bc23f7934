//! Time that moves only when a test says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use surefoot_kernel_core::{Clock, Micros, Timestamp};

/// A shared clock that stands still until it is moved. Clones are the same clock.
///
/// It is the clock of record of a [`MemoryStore`](crate::MemoryStore), and a process's [`Clock`] for everything
/// else: its wall time may go back, its monotonic time never does.
#[derive(Debug, Clone)]
pub struct VirtualClock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    wall: AtomicI64,
    monotonic: AtomicI64,
}

impl Default for VirtualClock {
    /// Starts at 2026-01-01T00:00:00Z.
    fn default() -> Self {
        Self::at(Timestamp::from_micros(1_767_225_600_000_000))
    }
}

impl VirtualClock {
    /// Starts at an instant.
    #[must_use]
    pub fn at(start: Timestamp) -> Self {
        let wall = AtomicI64::new(start.micros());
        Self(Arc::new(Inner { wall, monotonic: AtomicI64::new(0) }))
    }

    /// The instant that it shows.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.wall.load(Ordering::SeqCst))
    }

    /// Moves it forward.
    pub fn advance(&self, span: Micros) {
        self.set(self.now().plus(span));
    }

    /// Sets it, also backwards. Monotonic time moves by what is gained, and never back.
    pub fn set(&self, at: Timestamp) {
        let before = self.0.wall.swap(at.micros(), Ordering::SeqCst);
        let gained = at.since(Timestamp::from_micros(before));
        self.0.monotonic.fetch_add(gained.get(), Ordering::SeqCst);
    }
}

impl Clock for VirtualClock {
    fn wall(&self) -> Timestamp {
        self.now()
    }

    fn monotonic(&self) -> Micros {
        Micros::new(self.0.monotonic.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_time_may_go_back_and_monotonic_time_never_does() {
        let clock = VirtualClock::at(Timestamp::from_micros(100));
        let same = clock.clone();
        clock.advance(Micros::new(50));
        assert_eq!((same.now().micros(), same.monotonic().get()), (150, 50));
        same.set(Timestamp::from_micros(20));
        assert_eq!((clock.now().micros(), clock.monotonic().get()), (20, 50));
        clock.advance(Micros::new(5));
        assert_eq!((clock.wall().micros(), clock.monotonic().get()), (25, 55));
    }
}
