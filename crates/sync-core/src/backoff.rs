//! How long to wait before trying again.

use std::time::Duration;

use crate::SyncError;

/// Waits by attempt: a list whose last value repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backoff(Vec<Duration>);

impl Backoff {
    /// From a list; an empty one waits not at all.
    #[must_use]
    pub fn new(delays: Vec<Duration>) -> Self {
        Self(delays)
    }

    /// The wait after an attempt failed; the first attempt is 1.
    #[must_use]
    pub fn after(&self, attempt: u32) -> Duration {
        let at = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        self.0.get(at).or(self.0.last()).copied().unwrap_or_default()
    }

    /// The list, in milliseconds.
    #[must_use]
    pub fn millis(&self) -> Vec<u128> {
        self.0.iter().map(Duration::as_millis).collect()
    }
}

/// 1 s, 5 s, 30 s, 120 s, and 120 s ever after.
impl Default for Backoff {
    fn default() -> Self {
        Self([1, 5, 30, 120].map(Duration::from_secs).to_vec())
    }
}

/// Retries inside a process: exponential, with full jitter, bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    attempts_max: u32,
    first: Duration,
    most: Duration,
}

/// Five attempts, the first included; waits up to 200 ms, 400 ms, 800 ms and so on, 10 s at most.
impl Default for RetryPolicy {
    fn default() -> Self {
        let (first, most) = (Duration::from_millis(200), Duration::from_secs(10));
        Self { attempts_max: 5, first, most }
    }
}

impl RetryPolicy {
    /// So many attempts, the first included.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] for none.
    pub fn attempts(mut self, most: u32) -> Result<Self, SyncError> {
        if most == 0 {
            let why = "at least one attempt is made".to_owned();
            return Err(SyncError::InvalidOption { option: "attempts", why });
        }
        self.attempts_max = most;
        Ok(self)
    }

    /// The longest wait after the first attempt, and the longest of all. The wait doubles in between.
    #[must_use]
    pub fn waits(mut self, first: Duration, most: Duration) -> Self {
        (self.first, self.most) = (first, most.max(first));
        self
    }

    /// The wait after a failed attempt, the first being 1; `None` when that was the last. `chance` is from 0 to 1 and
    /// picks the wait between nothing and the longest. What the other side asked for (`retry_after`) is waited for
    /// whole, however long.
    #[must_use]
    pub fn after(
        &self,
        attempt: u32,
        chance: f64,
        retry_after: Option<Duration>,
    ) -> Option<Duration> {
        if attempt >= self.attempts_max {
            return None;
        }
        let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
        let most = self.first.saturating_mul(doubled).min(self.most);
        let chance = if chance.is_finite() { chance.clamp(0.0, 1.0) } else { 1.0 };
        Some(retry_after.unwrap_or_else(|| most.mul_f64(chance)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_wait_of_a_list_repeats() {
        let seconds = |attempt| Backoff::default().after(attempt).as_secs();
        assert_eq!([0, 1, 2, 3, 4, 5, 9].map(seconds), [1, 1, 5, 30, 120, 120, 120]);
        assert_eq!(Backoff::new(vec![]).after(3), Duration::ZERO);
    }

    #[test]
    fn retries_double_up_to_a_bound_and_end() {
        let policy = RetryPolicy::default().attempts(40).unwrap();
        let most = |attempt| policy.after(attempt, 1.0, None).unwrap().as_millis();
        assert_eq!([1, 2, 3, 7, 39].map(most), [200, 400, 800, 10_000, 10_000]);
        assert_eq!(policy.after(40, 1.0, None), None);
        assert_eq!(policy.after(1, 0.0, None), Some(Duration::ZERO));
        assert!(policy.after(1, f64::NAN, None).is_some());
        let asked = Duration::from_secs(90);
        assert_eq!(policy.after(1, 0.5, Some(asked)), Some(asked));
        assert_eq!(policy.after(40, 0.5, Some(asked)), None);
        assert!(RetryPolicy::default().attempts(0).is_err());
    }
}
