//! Pauses: growing ones, and jitter that is no randomness.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use surefoot_kernel_core::{Micros, SessionId};

/// Spreads what many workers do at the same rhythm. Seeded by the session, so no two workers share a sequence.
#[derive(Debug)]
pub(crate) struct Jitter(AtomicU64);

impl Jitter {
    pub(crate) fn of(session: SessionId) -> Self {
        let seed = session.to_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(AtomicU64::new(seed))
    }

    /// From 0 up to 1.
    fn unit(&self) -> f64 {
        // The finaliser of splitmix64 over a counter.
        let step = 0x9e37_79b9_7f4a_7c15_u64;
        let mut bits = self.0.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((bits ^ (bits >> 31)) >> 11) as f64) / ((1_u64 << 53) as f64)
    }

    /// Between 80 % and 100 % of a span.
    pub(crate) fn shorten(&self, span: Micros) -> Duration {
        Duration::from(span).mul_f64(0.8 + 0.2 * self.unit())
    }

    /// Anywhere inside a span.
    pub(crate) fn within(&self, span: Micros) -> Duration {
        Duration::from(span).mul_f64(self.unit())
    }
}

/// A pause that doubles up to a limit.
#[derive(Debug, Clone)]
pub(crate) struct Pause {
    next: Duration,
    max: Duration,
}

impl Pause {
    pub(crate) const fn new(first: Duration, max: Duration) -> Self {
        Self { next: first, max }
    }

    /// For a store that cannot be reached.
    pub(crate) const fn store() -> Self {
        Self::new(Duration::from_millis(50), Duration::from_secs(2))
    }

    /// The next length; it doubles.
    pub(crate) fn length(&mut self) -> Duration {
        let length = self.next;
        self.next = length.saturating_mul(2).min(self.max);
        length
    }
}

/// The sum of two spans, or of an instant of monotonic time and a span.
pub(crate) const fn plus(a: Micros, b: Micros) -> Micros {
    Micros::new(a.get().saturating_add(b.get()))
}

/// How much later `a` is than `b`; zero if it is not.
pub(crate) const fn minus(a: Micros, b: Micros) -> Micros {
    Micros::new(a.get().saturating_sub(b.get()))
}

/// A part of a span.
pub(crate) const fn part(span: Micros, of: i64) -> Micros {
    Micros::new(span.get() / of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_inside_its_span_and_differs_between_sessions() {
        let one = Jitter::of(SessionId::from_bytes([1; 16]));
        let other = Jitter::of(SessionId::from_bytes([2; 16]));
        let second = Micros::from_secs(1);
        for _ in 0..1_000 {
            let shortened = one.shorten(second);
            assert!(shortened >= Duration::from_millis(800) && shortened <= Duration::from_secs(1));
            assert!(one.within(second) < Duration::from_secs(1));
        }
        assert_ne!(one.within(second), other.within(second));
    }

    #[test]
    fn pauses_double_up_to_their_limit() {
        let mut pause = Pause::new(Duration::from_millis(10), Duration::from_millis(35));
        let lengths: Vec<_> = (0..4).map(|_| pause.length().as_millis()).collect();
        assert_eq!(lengths, [10, 20, 35, 35]);
    }
}
