//! Work that the server lost sight of, and holders that die more often than they may.

use std::sync::Arc;
use std::time::Duration;

use surefoot_sync_core::{
    Coordinator as _, DeadPage, Job, Jobs, Key, Receive, ResourceId, Verdict, WorkSettings,
};
use surefoot_testkit::coordination::eventually;
use surefoot_testkit::servers::{NATS_URL, given};

use crate::{connect, namespace};

async fn jobs(namespace: &surefoot_sync_core::Namespace) -> Arc<dyn Jobs> {
    let settings = WorkSettings {
        ack_wait: Duration::from_secs(1),
        attempts_max: 3,
        stored_max_bytes: 1 << 24,
        ..WorkSettings::new(ResourceId::new("mail").unwrap())
    };
    connect(namespace).await.jobs(settings).await.unwrap()
}

async fn submit(jobs: &Arc<dyn Jobs>, name: &str) {
    jobs.submit(Job::new(Key::new(name).unwrap(), &name).unwrap()).await.unwrap();
}

/// The server's consumer is moved past messages that nobody has seen: they lie where it looks no more.
async fn strand(namespace: &surefoot_sync_core::Namespace, behind: u64) {
    let client = async_nats::connect(given(NATS_URL).unwrap()).await.unwrap();
    let subject = format!("$JS.API.CONSUMER.RESET.{namespace}_JOB_mail.work");
    let body = format!("{{\"seq\":{behind}}}");
    let answer = client.request(subject, body.into()).await.unwrap();
    let answer = String::from_utf8_lossy(&answer.payload).into_owned();
    assert!(!answer.contains("\"error\""), "{answer}");
}

/// Covers field fault 147.
#[tokio::test]
async fn work_that_the_server_never_hands_out_is_found_and_done() {
    let namespace = namespace();
    let jobs = jobs(&namespace).await;
    for name in ["a", "b", "c"] {
        submit(&jobs, name).await;
    }
    // The first place is not theirs.
    strand(&namespace, 4).await;
    let request = Receive { max: 10, wait: Duration::from_millis(500) };
    let seen = jobs.receive(request).await.unwrap();
    let keys = |all: &[surefoot_sync_core::Delivery]| {
        all.iter().filter_map(|it| it.key.clone()).map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(keys(&seen), ["c"], "a and b are stranded");
    jobs.settle(&seen[0], Verdict::Done).await.unwrap();
    assert_eq!(jobs.depth().await.unwrap().waiting, 2);
    assert_eq!(jobs.repair().await.unwrap(), 2);
    let mut found = Vec::new();
    while found.len() < 2 {
        let more = jobs.receive(request).await.unwrap();
        for delivery in &more {
            assert_eq!(delivery.attempt, 1);
            jobs.settle(delivery, Verdict::Done).await.unwrap();
        }
        found.extend(keys(&more));
    }
    found.sort();
    assert_eq!(found, ["a", "b"]);
    assert_eq!(jobs.repair().await.unwrap(), 0);
    let depth = jobs.depth().await.unwrap();
    assert_eq!((depth.waiting, depth.held, depth.dead), (0, 0, 0));
}

/// Covers field faults 127, 147.
#[tokio::test]
async fn work_whose_holders_die_more_often_than_they_may_is_a_dead_letter_and_not_invisible() {
    let namespace = namespace();
    let first = jobs(&namespace).await;
    submit(&first, "a").await;
    submit(&first, "b").await;
    // Each holder dies between receipt and settlement, and another one comes.
    let request = Receive { max: 10, wait: Duration::from_secs(2) };
    let mut attempts = Vec::new();
    let letters = eventually("the dead letters", async || {
        let doomed = jobs(&namespace).await;
        attempts.extend(doomed.receive(request).await.unwrap().iter().map(|it| it.attempt));
        let letters = doomed.dead_list(DeadPage::default()).await.unwrap();
        (letters.len() == 2).then_some(letters)
    })
    .await;
    attempts.sort_unstable();
    assert_eq!(attempts, [1, 1, 2, 2, 3, 3]);
    for letter in letters {
        assert_eq!((letter.attempts, letter.reason.as_str()), (3, Verdict::HOLDER_LOST));
    }
    eventually("nothing left", async || {
        let depth = first.depth().await.unwrap();
        (depth.waiting + depth.held == 0).then_some(())
    })
    .await;
    assert_eq!(first.repair().await.unwrap(), 0);
}
