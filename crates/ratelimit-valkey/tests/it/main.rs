//! The rate limit on a real server, and without it.

#![expect(clippy::unwrap_used, reason = "a test that fails panics")]

mod clocks;
mod processes;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use surefoot_ratelimit_valkey::ValkeyRateLimit;
use surefoot_sync_core::{Key, Namespace, Rate, RateLimit as _, ResourceId, SyncError, WhenDown};
use surefoot_testkit::coordination::{RateLimitFactory, eventually};
use surefoot_testkit::servers::{VALKEY_URL, Valkey as Server, given};

const SLOW: Duration = Duration::from_millis(1_500);

fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

fn limit(url: &str, id: &str, rate: Rate) -> ValkeyRateLimit {
    let namespace = Namespace::new("test").unwrap();
    let id = ResourceId::new(id).unwrap();
    ValkeyRateLimit::new(url, &namespace, &id, rate).unwrap()
}

fn hourly(count: u32) -> Rate {
    Rate::new(count, Duration::from_secs(3_600)).unwrap()
}

struct Valkey {
    id: String,
    rate: Rate,
}

impl RateLimitFactory for Valkey {
    type Limit = ValkeyRateLimit;

    fn run(rule: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(rule);
    }

    async fn fresh(rate: Rate) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self { id: format!("{}-{count}", std::process::id()), rate }
    }

    async fn handle(&self) -> ValkeyRateLimit {
        // A busy machine is no reason to fail.
        let patient = Duration::from_secs(30);
        limit(&given(VALKEY_URL).unwrap(), &self.id, self.rate).time_limit(patient).unwrap()
    }
}

surefoot_testkit::rate_limit_suite!(valkey, crate::Valkey);

#[tokio::test]
async fn without_a_server_the_policy_answers_within_the_time_limit() {
    // A port of which nobody listens: it was free a moment ago, and is bound without accepting.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}/0", silent.local_addr().unwrap());
    let limit = limit(&url, "down", hourly(3)).time_limit(Duration::from_millis(50)).unwrap();
    let error = limit.check(&key("ada")).await.unwrap_err();
    assert!(matches!(error, SyncError::Unavailable { .. }), "{error}");
    let open = limit.clone().when_down(WhenDown::Open).check(&key("ada")).await.unwrap();
    assert!(!open.limited && open.remaining == 3);
    let closed = limit.clone().when_down(WhenDown::Closed).check(&key("ada")).await.unwrap();
    assert!(closed.limited && !closed.retry_in.is_zero());
}

/// One that takes three times the default to say its first word.
#[tokio::test]
async fn a_slow_server_has_as_long_as_the_time_limit_says() {
    let (url, _) = clocks::proxy(clocks::address(&given(VALKEY_URL).unwrap()), SLOW);
    let id = format!("slow-{}", std::process::id());
    let hasty = limit(&url, &id, hourly(1));
    let error = hasty.check(&key("ada")).await.unwrap_err();
    assert!(matches!(error, SyncError::Unavailable { .. }), "{error}");
    let patient = hasty.time_limit(Duration::from_secs(60)).unwrap();
    assert!(!patient.check(&key("ada")).await.unwrap().limited, "the first one that counts");
    let never = patient.time_limit(Duration::ZERO).unwrap_err();
    assert!(matches!(never, SyncError::InvalidOption { option: "time_limit", .. }), "{never}");
}

#[tokio::test]
async fn a_limit_comes_back_with_its_server() {
    let mut server = Server::given().unwrap().start().unwrap();
    let limit = limit(server.url(), "restart", hourly(1));
    eventually("an answer", async || limit.check(&key("ada")).await.ok()).await;
    server.kill().unwrap();
    let down = async || limit.check(&key("ada")).await.err();
    assert!(matches!(eventually("an error", down).await, SyncError::Unavailable { .. }));
    server.restart().unwrap();
    // It is empty now, its scripts included.
    let check = eventually("an answer", async || limit.check(&key("bob")).await.ok()).await;
    assert!(!check.limited);
}

#[test]
fn what_is_no_url_is_refused_without_repeating_it() {
    let namespace = Namespace::new("test").unwrap();
    let id = ResourceId::new("a").unwrap();
    let url = "http://user:secret@host";
    let error = ValkeyRateLimit::new(url, &namespace, &id, hourly(1)).unwrap_err().to_string();
    assert!(error.contains("redis://") && !error.contains("secret"), "{error}");
}
