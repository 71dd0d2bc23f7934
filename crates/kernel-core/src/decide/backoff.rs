//! Delays: pure functions of a policy, a count and a seed.

use sha2::{Digest, Sha256};

use crate::plan::RetryPolicy;
use crate::{Micros, RunId};

/// The first delay of the release backoff.
pub const RELEASE_BACKOFF_FIRST: Micros = Micros::from_secs(5);
/// No delay of the release backoff is longer, jitter included.
pub const RELEASE_BACKOFF_MAX: Micros = Micros::from_secs(300);
/// No provider's `retry_after` is honoured beyond this.
const RETRY_AFTER_MAX: Micros = Micros::from_secs(86_400);

/// The kernel's release backoff: 5 s doubling to 300 s, ±20 % jitter from a hash of (run, failures).
#[must_use]
pub fn release_backoff(run: RunId, failures: u32) -> Micros {
    backoff(&RetryPolicy::default(), run, failures)
}

/// The delay after the `failures`th bad execution in a row, from 1. The cap holds after the jitter.
pub(super) fn backoff(policy: &RetryPolicy, run: RunId, failures: u32) -> Micros {
    if policy.first == Micros::ZERO {
        // Nothing grows out of nothing; a factor that has grown to infinity would make it no number.
        return Micros::ZERO;
    }
    let exponent = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
    let cap = policy.max.get() as f64;
    let grown = policy.first.get() as f64 * policy.factor.max(1.0).powi(exponent);
    let delay = grown.min(cap) * jitter(run, failures);
    // A float beyond i64 saturates in the cast; growth to infinity is capped, and no factor is zero: never a NaN.
    Micros::new(delay.min(cap) as i64)
}

/// The same, but not before what the provider asked for.
pub(crate) fn retry_delay(
    policy: &RetryPolicy,
    run: RunId,
    failures: u32,
    retry_after: Option<Micros>,
) -> Micros {
    let asked = retry_after.unwrap_or(Micros::ZERO).min(RETRY_AFTER_MAX);
    backoff(policy, run, failures).max(asked)
}

/// Between 0.8 and 1.2, the same for the same run and count.
fn jitter(run: RunId, failures: u32) -> f64 {
    let mut hash = Sha256::new();
    hash.update(run.to_bytes());
    hash.update(failures.to_be_bytes());
    let digest = hash.finalize();
    let unit = f64::from(u16::from_be_bytes([digest[0], digest[1]])) / f64::from(u16::MAX);
    0.8 + 0.4 * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers behaviour 92.
    #[test]
    fn release_backoff_doubles_within_its_jitter_and_never_passes_its_cap() {
        for seed in 0..=255 {
            let run = RunId::from_bytes([seed; 16]);
            for (failures, seconds) in
                [(1, 5), (2, 10), (3, 20), (4, 40), (5, 80), (6, 160), (7, 300), (8, 300)]
            {
                let delay = release_backoff(run, failures).get();
                assert!(delay >= seconds * 800_000, "{failures}: {delay}");
                assert!(delay <= (seconds * 1_200_000).min(300_000_000), "{failures}: {delay}");
                assert_eq!(delay, release_backoff(run, failures).get());
            }
            assert!(release_backoff(run, u32::MAX) <= RELEASE_BACKOFF_MAX);
        }
    }

    #[test]
    fn no_delay_grows_to_none_whatever_the_factor() {
        let run = RunId::from_bytes([1; 16]);
        for (first, factor) in [(0, 1e308), (0, 2.0), (1, 1e308), (5, f64::MAX)] {
            let first = Micros::from_secs(first);
            let policy = RetryPolicy { first, factor, ..RetryPolicy::default() };
            for failures in [1, 2, 3, 50, u32::MAX] {
                let delay = retry_delay(&policy, run, failures, None);
                assert!((Micros::ZERO..=policy.max).contains(&delay), "{failures}: {delay:?}");
                assert_eq!(delay == Micros::ZERO, first == Micros::ZERO, "{factor}, {failures}");
            }
        }
    }

    #[test]
    fn a_provider_may_ask_for_more_time_but_not_for_ever() {
        let run = RunId::from_bytes([1; 16]);
        let policy = RetryPolicy::default();
        let hour = Micros::from_secs(3600);
        assert_eq!(retry_delay(&policy, run, 1, Some(hour)), hour);
        assert_eq!(retry_delay(&policy, run, 1, None), release_backoff(run, 1));
        let week = Micros::from_secs(7 * 86_400);
        assert_eq!(retry_delay(&policy, run, 1, Some(week)), RETRY_AFTER_MAX);
    }
}
