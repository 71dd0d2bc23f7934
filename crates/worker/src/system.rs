//! The one place where time and chance come from. Everything else takes them from the ports.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use surefoot_kernel_core::{Clock, EventId, Ids, Micros, SessionId, Timestamp, VersionId};
use uuid::Uuid;

/// The clocks of this machine.
#[derive(Debug, Clone)]
pub struct SystemClock {
    origin: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the port's implementation")]
    fn wall(&self) -> Timestamp {
        // A clock before 1970 is a machine without a clock: it serves logs only, so zero will do.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(Micros::from(since).get())
    }

    fn monotonic(&self) -> Micros {
        self.origin.elapsed().into()
    }
}

/// Ids that sort by the time they were made (UUID version 7).
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemIds;

impl SystemIds {
    #[expect(clippy::disallowed_methods, reason = "this is the port's implementation")]
    fn bytes() -> [u8; 16] {
        Uuid::now_v7().into_bytes()
    }
}

impl Ids for SystemIds {
    fn event(&self) -> EventId {
        EventId::from_bytes(Self::bytes())
    }

    fn version(&self) -> VersionId {
        VersionId::from_bytes(Self::bytes())
    }

    fn session(&self) -> SessionId {
        SessionId::from_bytes(Self::bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_sort_by_time() {
        let ids: Vec<_> = (0..1_000).map(|_| SystemIds.event()).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn monotonic_time_starts_at_zero_and_does_not_go_back() {
        let clock = SystemClock::default();
        let first = clock.monotonic();
        assert!(first < Micros::from_secs(60) && clock.monotonic() >= first);
        assert!(clock.wall() > Timestamp::from_micros(1_700_000_000_000_000));
    }
}
