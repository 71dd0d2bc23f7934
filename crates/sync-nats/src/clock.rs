//! The server's clock, read from its answers: nobody else's decides when something is due.

use std::sync::{Mutex as StdMutex, PoisonError};

use surefoot_kernel_core::{Micros, Timestamp};
use tokio::time::Instant;

/// The server's time as of an answer, and on from there by the monotonic clock.
#[derive(Debug)]
pub(crate) struct ServerClock(StdMutex<(Timestamp, Instant)>);

impl ServerClock {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self(StdMutex::new((now, Instant::now())))
    }

    pub(crate) fn set(&self, now: Timestamp) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (now, Instant::now());
    }

    pub(crate) fn now(&self) -> Timestamp {
        let (now, at) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        now.plus(Micros::from(at.elapsed()))
    }
}

/// Microseconds since 1970 by this machine's clock.
pub(crate) fn local_now_us() -> i64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "the server tells its time only with what exists; this one only has to be later than years ago"
    )]
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(1, |since| Micros::from(since).get().max(1))
}
