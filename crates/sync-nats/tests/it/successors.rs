//! A holder that died between storing what follows and acknowledging what it held.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, HeaderMap};
use surefoot_sync_core::{
    Backoff, Coordinator as _, Delivery, Job, Jobs, Key, Receive, ResourceId, Settled, Verdict,
    WorkSettings,
};
use surefoot_testkit::coordination::eventually;
use surefoot_testkit::servers::{NATS_URL, given};

use crate::{connect, namespace};

async fn jobs() -> Arc<dyn Jobs> {
    let settings = WorkSettings {
        ack_wait: Duration::from_secs(1),
        stored_max_bytes: 1 << 24,
        backoff: Backoff::new(vec![Duration::from_millis(100)]),
        ..WorkSettings::new(ResourceId::new("mail").unwrap())
    };
    connect(&namespace()).await.jobs(settings).await.unwrap()
}

async fn one(jobs: &Arc<dyn Jobs>) -> Delivery {
    let request = Receive { max: 1, wait: Duration::from_secs(1) };
    eventually("a delivery", async || jobs.receive(request).await.unwrap().pop()).await
}

/// Nothing comes for longer than a delivery is held.
async fn nothing(jobs: &Arc<dyn Jobs>) {
    let request = Receive { max: 1, wait: Duration::from_secs(3) };
    assert_eq!(jobs.receive(request).await.unwrap(), []);
}

/// Stores the successor of a delivery, as its holder would, and goes no further.
async fn half_a_retry(delivery: &Delivery, schedule: Option<&str>) {
    let (subject, reply) = delivery.ticket.split_once(' ').unwrap();
    let place = reply.split('.').nth(5).unwrap();
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("Sync-V", "1"),
        ("Sync-Key", "a"),
        ("Sync-Attempt", "1"),
        ("Sync-Supersedes", place),
        ("Sync-Prev-Ack", reply),
    ] {
        headers.insert(name, value);
    }
    let mut target = subject.to_owned();
    if let Some(schedule) = schedule {
        headers.insert("Nats-Schedule", schedule);
        headers.insert("Nats-Schedule-Target", subject);
        target = subject.replace(".w.", ".d.");
    }
    let client: Client = async_nats::connect(given(NATS_URL).unwrap()).await.unwrap();
    let answer = client.request_with_headers(target, headers, "\"successor\"".into()).await;
    let answer = String::from_utf8(answer.unwrap().payload.to_vec()).unwrap();
    assert!(answer.contains("\"seq\""), "{answer}");
}

async fn submitted() -> (Arc<dyn Jobs>, Delivery) {
    let jobs = jobs().await;
    jobs.submit(Job::new(Key::new("a").unwrap(), &"first").unwrap()).await.unwrap();
    let delivery = one(&jobs).await;
    (jobs, delivery)
}

#[tokio::test]
async fn a_successor_that_comes_first_settles_its_predecessor() {
    let (jobs, held) = submitted().await;
    half_a_retry(&held, None).await;
    let next = one(&jobs).await;
    assert_eq!((&next.id, next.attempt), (&held.id, 2));
    assert_eq!(next.data, serde_json::json!("successor"));
    assert_eq!(jobs.settle(&next, Verdict::Done).await.unwrap(), Settled::Done);
    nothing(&jobs).await;
    assert_eq!(jobs.depth().await.unwrap().waiting, 0);
}

#[tokio::test]
async fn a_predecessor_that_comes_back_sees_its_successor() {
    let (jobs, held) = submitted().await;
    half_a_retry(&held, Some("@at 2100-01-01T00:00:00Z")).await;
    nothing(&jobs).await;
    let left = eventually("only the successor", async || {
        let depth = jobs.depth().await.unwrap();
        (depth.held == 0 && depth.waiting == 1).then_some(depth)
    });
    assert_eq!(left.await.dead, 0);
}

#[tokio::test]
async fn a_sweep_of_what_is_in_order_repairs_nothing() {
    let (jobs, held) = submitted().await;
    let later = Job::new(Key::new("b").unwrap(), &1).unwrap().after(Duration::from_secs(60));
    jobs.submit(later).await.unwrap();
    jobs.submit(Job::new(Key::new("c").unwrap(), &1).unwrap()).await.unwrap();
    assert_eq!(jobs.repair().await.unwrap(), 0);
    jobs.settle(&held, Verdict::Done).await.unwrap();
    assert_eq!(jobs.repair().await.unwrap(), 0);
    assert_eq!(jobs.depth().await.unwrap().waiting, 2);
}
