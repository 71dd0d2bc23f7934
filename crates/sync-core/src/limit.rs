//! Rate limits: so many in a period, for each key.

use std::collections::VecDeque;
use std::time::Duration;

use async_trait::async_trait;

use crate::{Key, SyncError};

/// So many requests in a period: never more in any stretch of time of that length, wherever it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    limit: u32,
    period: Duration,
}

/// Each request of a period is remembered.
const LIMIT_MAX: u32 = 100_000;

impl Rate {
    /// So many in a period.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] unless the limit is from 1 to 100,000, and the period from 1 ms to 30 days.
    pub fn new(limit: u32, period: Duration) -> Result<Self, SyncError> {
        let millis = period.as_millis();
        let day = 24 * 60 * 60 * 1_000;
        if (1..=LIMIT_MAX).contains(&limit) && (1..=30 * day).contains(&millis) {
            return Ok(Self { limit, period });
        }
        let why = format!("{limit} in {period:?} is not 1 to {LIMIT_MAX} in 1 ms to 30 days");
        Err(SyncError::InvalidOption { option: "rate", why })
    }

    /// How many in a period.
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// The period, in microseconds.
    #[must_use]
    pub fn period_us(&self) -> u64 {
        u64::try_from(self.period.as_micros()).unwrap_or(u64::MAX)
    }

    /// Decides about one request. `passed` holds when those of the last period went on, in microseconds, the oldest
    /// first; a request that goes on is added.
    pub fn decide(&self, passed: &mut VecDeque<u64>, now_us: u64) -> RateCheck {
        let period = self.period_us();
        // A clock that is set back is no later than what it has already said.
        let now = passed.back().map_or(now_us, |newest| now_us.max(*newest));
        while passed.front().is_some_and(|oldest| oldest.saturating_add(period) <= now) {
            passed.pop_front();
        }
        let until = |at: Option<&u64>| {
            let at = at.map_or(now, |at| at.saturating_add(period));
            Duration::from_micros(at.saturating_sub(now))
        };
        let used = u32::try_from(passed.len()).unwrap_or(u32::MAX);
        if used >= self.limit {
            let (retry_in, reset_in) = (until(passed.front()), until(passed.back()));
            return RateCheck { limited: true, remaining: 0, retry_in, reset_in };
        }
        passed.push_back(now);
        let remaining = self.limit - used - 1;
        let reset_in = until(passed.back());
        RateCheck { limited: false, remaining, retry_in: Duration::ZERO, reset_in }
    }
}

/// The answer about one request, which it counts unless it is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateCheck {
    /// It may not go on.
    pub limited: bool,
    /// How many more may come now.
    pub remaining: u32,
    /// When a limited request may come again; zero otherwise.
    pub retry_in: Duration,
    /// When all is free again, if nothing comes.
    pub reset_in: Duration,
}

/// What is answered while the server cannot be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenDown {
    /// The error, which says so.
    Fail,
    /// Requests go on as if there were no limit.
    Open,
    /// Requests are limited, for a second each.
    Closed,
}

/// Counts requests by key.
#[async_trait]
pub trait RateLimit: Send + Sync {
    /// Counts one request, if it may go on. Of two that come at once and could not both go on, one is limited.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`] within the limiter's own time limit.
    async fn check(&self, key: &Key) -> Result<RateCheck, SyncError>;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_whole_number_comes_at_once_and_is_free_again_a_period_later() {
        let rate = Rate::new(3, Duration::from_secs(2)).unwrap();
        let mut passed = VecDeque::new();
        let mut ask = |now| {
            let check = rate.decide(&mut passed, now);
            (check.limited, check.remaining, check.retry_in.as_millis(), check.reset_in.as_millis())
        };
        let start = 10_000_000;
        assert_eq!(ask(start), (false, 2, 0, 2_000));
        assert_eq!(ask(start + 500_000), (false, 1, 0, 2_000));
        assert_eq!(ask(start + 500_000), (false, 0, 0, 2_000));
        assert_eq!(ask(start + 600_000), (true, 0, 1_400, 1_900));
        assert_eq!(ask(start + 1_999_999), (true, 0, 0, 500));
        assert_eq!(ask(start + 2_000_000), (false, 0, 0, 2_000));
        assert_eq!(ask(start + 1_000_000), (true, 0, 500, 2_000), "the clock was set back");
        assert_eq!(ask(start + 60_000_000), (false, 2, 0, 2_000));
    }

    #[test]
    fn a_rate_that_cannot_be_is_refused() {
        for (limit, millis) in [(0, 1_000), (100_001, 1_000), (1, 0), (1, 31 * 86_400_000)] {
            assert!(Rate::new(limit, Duration::from_millis(millis)).is_err(), "{limit} {millis}");
        }
    }

    proptest! {
        /// Covers field fault 157.
        #[test]
        fn no_period_wherever_it_begins_has_more_than_the_limit(
            limit in 1_u32..20, period_ms in 1_u64..500, gaps in prop::collection::vec(0_u64..200_000, 1..200),
        ) {
            let rate = Rate::new(limit, Duration::from_millis(period_ms)).unwrap();
            let (mut now, mut kept, mut passed) = (1_u64, VecDeque::new(), Vec::new());
            for gap in gaps {
                now += gap;
                let check = rate.decide(&mut kept, now);
                prop_assert!(check.remaining < limit);
                prop_assert_eq!(check.limited, check.retry_in > Duration::ZERO);
                let in_period = |from: u64| passed.iter().filter(|at: &&u64| **at > from).count();
                let used = in_period(now.saturating_sub(rate.period_us()));
                // Exact: refused only if the period that ends now is full.
                prop_assert_eq!(check.limited, used >= usize::try_from(limit).unwrap());
                if !check.limited {
                    passed.push(now);
                }
            }
        }
    }
}
