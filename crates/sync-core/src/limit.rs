//! Rate limits: so many in a period, for each key.

use std::time::Duration;

use async_trait::async_trait;

use crate::{Key, SyncError};

/// So many requests in a period. The whole number may come at once; then they become free one by one, evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    limit: u32,
    period: Duration,
}

impl Rate {
    /// So many in a period.
    ///
    /// # Errors
    /// [`SyncError::InvalidOption`] unless the limit is from 1 to a million, and the period from 1 ms to 30 days and
    /// at least a microsecond per request.
    pub fn new(limit: u32, period: Duration) -> Result<Self, SyncError> {
        let rate = Self { limit, period };
        let millis = period.as_millis();
        let day = 24 * 60 * 60 * 1_000;
        if (1..=1_000_000).contains(&limit)
            && (1..=30 * day).contains(&millis)
            && rate.interval_us() > 0
        {
            return Ok(rate);
        }
        let why = format!(
            "{limit} in {period:?} is not 1 to 1000000 in 1 ms to 30 days, at least 1 µs for each"
        );
        Err(SyncError::InvalidOption { option: "rate", why })
    }

    /// How many in a period.
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// Microseconds after which one more becomes free.
    #[must_use]
    pub fn interval_us(&self) -> u64 {
        let period = u64::try_from(self.period.as_micros()).unwrap_or(u64::MAX);
        period / u64::from(self.limit.max(1))
    }

    /// Decides about one request, by the generic cell rate algorithm. `full_at_us` is what the decision before left,
    /// 0 for none: the instant at which all is free again.
    #[must_use]
    pub fn decide(&self, full_at_us: u64, now_us: u64) -> RateDecision {
        let interval = self.interval_us();
        let whole = interval.saturating_mul(u64::from(self.limit));
        let from = full_at_us.max(now_us);
        let used_us = from.saturating_sub(now_us).saturating_add(interval);
        let reset = |full_at: u64| Duration::from_micros(full_at.saturating_sub(now_us));
        if used_us > whole {
            let check = RateCheck {
                limited: true,
                remaining: 0,
                retry_in: Duration::from_micros(used_us - whole),
                reset_in: reset(from),
            };
            return RateDecision { check, full_at_us: from };
        }
        let full_at_us = from.saturating_add(interval);
        let remaining = (whole - used_us).checked_div(interval).unwrap_or(0);
        let check = RateCheck {
            limited: false,
            remaining: u32::try_from(remaining).unwrap_or(u32::MAX),
            retry_in: Duration::ZERO,
            reset_in: reset(full_at_us),
        };
        RateDecision { check, full_at_us }
    }
}

/// What a limiter says about a request, and what it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateDecision {
    /// The answer.
    pub check: RateCheck,
    /// For the next decision.
    pub full_at_us: u64,
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
    fn the_whole_number_comes_at_once_and_then_one_by_one() {
        let rate = Rate::new(4, Duration::from_secs(2)).unwrap();
        let mut full_at = 0;
        let mut ask = |now| {
            let decision = rate.decide(full_at, now);
            full_at = decision.full_at_us;
            (decision.check.limited, decision.check.remaining, decision.check.retry_in.as_millis())
        };
        let start = 10_000_000;
        let first = [3, 2, 1, 0].map(|remaining| (false, remaining, 0));
        assert_eq!([(); 4].map(|()| ask(start)), first);
        assert_eq!(ask(start), (true, 0, 500));
        assert_eq!(ask(start + 400_000), (true, 0, 100));
        assert_eq!(ask(start + 500_000), (false, 0, 0));
        assert_eq!(ask(start + 60_000_000), (false, 3, 0));
    }

    #[test]
    fn a_rate_that_cannot_be_is_refused() {
        for (limit, millis) in [(0, 1_000), (1_000_001, 1_000), (1, 0), (1_000_000, 100)] {
            assert!(Rate::new(limit, Duration::from_millis(millis)).is_err(), "{limit} {millis}");
        }
    }

    proptest! {
        /// Covers field fault 157.
        #[test]
        fn never_more_than_the_limit_and_its_refill_go_on(
            limit in 1_u32..50, period_ms in 1_u64..5_000, gaps in prop::collection::vec(0_u64..200_000, 1..200),
        ) {
            let rate = Rate::new(limit, Duration::from_millis(period_ms)).unwrap();
            let (mut now, mut full_at, mut passed) = (1_u64, 0, 0_u64);
            for gap in gaps {
                now += gap;
                let decision = rate.decide(full_at, now);
                full_at = decision.full_at_us;
                passed += u64::from(!decision.check.limited);
                prop_assert!(passed <= u64::from(limit) + (now - 1) / rate.interval_us());
                prop_assert!(decision.check.remaining < limit);
                prop_assert_eq!(decision.check.limited, decision.check.retry_in > Duration::ZERO);
            }
        }
    }
}
