//! The rules that every coordination primitive keeps, as tests that any adapter runs.
//!
//! [`coordination_suite!`](crate::coordination_suite) expands to one test per rule for a [`Coordinator`], and
//! [`rate_limit_suite!`](crate::rate_limit_suite) for a [`RateLimit`]. Time is tokio's: paused for what is in memory,
//! real for a server. A rule waits for conditions, never for a machine to be fast.

pub mod care;
pub mod declarations;
pub mod groups;
pub mod jobs;
pub mod limits;
mod list;
pub mod locks;
pub mod presence;
pub mod queues;
pub mod schedules;
pub mod topics;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use surefoot_sync_core::{
    Backoff, Coordinator, Delivery, Inventory, Jobs, Key, Rate, RateLimit, Receive, ResourceId,
    Submitted, Work, WorkId, WorkSettings,
};
use tokio::time::Instant;

/// Makes coordinators of one kind, one empty place per value.
pub trait CoordinationFactory: Sized + Send + Sync + 'static {
    /// What is tested.
    type Coordinator: Coordinator + Inventory + 'static;

    /// Runs a rule on a runtime whose time suits the adapter.
    fn run(rule: impl Future<Output = ()>);

    /// A new, empty place.
    fn fresh() -> impl Future<Output = Self> + Send;

    /// A handle on the place: each call gives what another process would have.
    fn handle(&self) -> impl Future<Output = Self::Coordinator> + Send;
}

/// Makes rate limits of one kind.
pub trait RateLimitFactory: Sized + Send + Sync + 'static {
    /// What is tested.
    type Limit: RateLimit + 'static;

    /// Runs a rule on a runtime whose time suits the adapter.
    fn run(rule: impl Future<Output = ()>);

    /// A limit that nobody has counted against.
    fn fresh(rate: Rate) -> impl Future<Output = Self> + Send;

    /// A handle on it: each call gives what another process would have.
    fn handle(&self) -> impl Future<Output = Self::Limit> + Send;
}

/// How often a condition is looked at, and how often at most.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const LOOKS_MAX: usize = 3_000;

/// Waits until a look finds something.
///
/// # Panics
/// After a minute.
#[expect(clippy::panic, reason = "a rule that fails panics")]
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..LOOKS_MAX {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    panic!("{what}: not within {:?}", LOOK_EVERY * 3_000)
}

#[expect(clippy::unwrap_used, reason = "names of the suite are names")]
fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

#[expect(clippy::unwrap_used, reason = "names of the suite are names")]
fn id(name: &str) -> ResourceId {
    ResourceId::new(name).unwrap()
}

/// Few attempts, short waits, and little room, so that rules take little of them on a real server.
fn quick(name: &str) -> WorkSettings {
    WorkSettings {
        attempts_max: 3,
        backoff: Backoff::new(vec![Duration::from_millis(50)]),
        stored_max_bytes: 1 << 24,
        ..WorkSettings::new(id(name))
    }
}

/// Held for a short time, for rules about what happens when it is over.
fn fleeting(name: &str) -> WorkSettings {
    WorkSettings { ack_wait: Duration::from_secs(1), ..quick(name) }
}

/// Passes time in short steps, doing something at each, and tells whether no step took long. Where the machine stood
/// still for longer than a rule allows, the rule is tried once more.
async fn steadily(span: Duration, most: Duration, mut step: impl AsyncFnMut()) -> bool {
    let until = Instant::now() + span;
    let mut steady = true;
    while Instant::now() < until {
        let began = Instant::now();
        step().await;
        tokio::time::sleep(LOOK_EVERY).await;
        steady &= began.elapsed() < most;
    }
    steady
}

/// Takes one delivery, waiting for it.
async fn one(work: &(impl Work + ?Sized)) -> Delivery {
    eventually("a delivery", async || {
        let request = Receive { max: 1, wait: Duration::from_millis(500) };
        work.receive(request).await.ok()?.pop()
    })
    .await
}

/// What is there at once, and within a moment.
#[expect(clippy::unwrap_used, reason = "a rule that fails panics")]
async fn rest(work: &(impl Work + ?Sized), max: usize) -> Vec<Delivery> {
    work.receive(Receive { max, wait: Duration::from_millis(200) }).await.unwrap()
}

#[expect(clippy::unwrap_used, reason = "a rule that fails panics")]
async fn submit(jobs: &Arc<dyn Jobs>, name: &str) -> Submitted {
    let job = surefoot_sync_core::Job::new(key(name), &json!({ "of": name })).unwrap();
    jobs.submit(job).await.unwrap()
}

fn stored(submitted: &Submitted) -> Option<&WorkId> {
    match submitted {
        Submitted::Stored(id) => Some(id),
        Submitted::Duplicate(_) | Submitted::Joined(_) => None,
    }
}

/// More bytes than the default limit.
fn large() -> Value {
    Value::String("x".repeat(200 * 1024))
}
