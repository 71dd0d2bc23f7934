//! Rate limits: exact, whoever asks.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use std::time::Duration;

use surefoot_sync_core::{Rate, RateLimit as _};

use super::{RateLimitFactory, eventually, key};

/// Slow enough that nothing becomes free while a rule looks.
fn slow(limit: u32) -> Rate {
    Rate::new(limit, Duration::from_secs(3_600)).unwrap()
}

/// It goes down by one for each, and a refused one costs nothing.
pub async fn the_request_that_is_asked_about_is_counted<F: RateLimitFactory>() {
    let limits = F::fresh(slow(3)).await;
    let limit = limits.handle().await;
    let mut remaining = Vec::new();
    for _ in 0..3 {
        let check = limit.check(&key("ada")).await.unwrap();
        assert!(!check.limited && check.retry_in.is_zero());
        remaining.push(check.remaining);
    }
    assert_eq!(remaining, [2, 1, 0]);
    let mut waits = Vec::new();
    for _ in 0..5 {
        let check = limits.handle().await.check(&key("ada")).await.unwrap();
        assert!(check.limited && check.remaining == 0);
        assert!(check.reset_in >= check.retry_in);
        waits.push(check.retry_in);
    }
    let first = Duration::from_secs(3_600);
    assert!(waits.iter().all(|wait| *wait <= first && !wait.is_zero()), "{waits:?}");
    assert!(waits.is_sorted_by(|one, two| one >= two), "a refused request counted: {waits:?}");
}

/// When the time that it names has passed, the request goes on.
pub async fn a_limited_request_says_when_to_come_again_and_may_then<F: RateLimitFactory>() {
    let limits = F::fresh(Rate::new(2, Duration::from_secs(1)).unwrap()).await;
    let limit = limits.handle().await;
    let refused = eventually("a refusal", async || {
        let check = limit.check(&key("ada")).await.unwrap();
        check.limited.then_some(check)
    });
    let refused = refused.await;
    assert!(refused.retry_in <= Duration::from_secs(1));
    tokio::time::sleep(refused.retry_in + Duration::from_millis(5)).await;
    assert!(!limit.check(&key("ada")).await.unwrap().limited);
}

/// Covers field fault 157.
pub async fn many_at_once_get_exactly_the_limit<F: RateLimitFactory>() {
    let limits = F::fresh(slow(25)).await;
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let limit = limits.handle().await;
        asking.spawn(async move {
            let mut passed = 0;
            for _ in 0..10 {
                passed += u32::from(!limit.check(&key("ada")).await.unwrap().limited);
            }
            passed
        });
    }
    assert_eq!(asking.join_all().await.iter().sum::<u32>(), 25);
}

/// Also where the characters are odd.
pub async fn keys_do_not_count_for_each_other<F: RateLimitFactory>() {
    let limits = F::fresh(slow(1)).await;
    let limit = limits.handle().await;
    for name in super::jobs::ODD_KEYS {
        assert!(!limit.check(&key(name)).await.unwrap().limited, "{name:?}");
        assert!(limit.check(&key(name)).await.unwrap().limited, "{name:?}");
    }
}
