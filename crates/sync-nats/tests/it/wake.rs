//! The wake bus.

use std::sync::Arc;
use std::time::Duration;

use surefoot_kernel_core::WakeBus as _;
use surefoot_testkit::coordination::eventually;

use crate::{connect, namespace};

#[tokio::test]
async fn an_announcement_is_heard_by_others_of_the_app_and_not_by_oneself() {
    let namespace = namespace();
    let (one, two) = (connect(&namespace).await.wake_bus(), connect(&namespace).await.wake_bus());
    let (one, two) = (Arc::new(one), Arc::new(two));
    let other_app = tokio::spawn({
        let two = two.clone();
        async move { two.heard("bank").await }
    });
    let own = tokio::spawn({
        let one = one.clone();
        async move { one.heard("shop").await }
    });
    // Until the other listens, what is announced is lost, and that is all right.
    eventually("the announcement", async || {
        one.announce("shop").await;
        tokio::time::timeout(Duration::from_millis(100), two.heard("shop")).await.ok()
    })
    .await;
    assert!(!own.is_finished() && !other_app.is_finished());
    two.announce("shop").await;
    own.await.unwrap();
    other_app.abort();
}

#[tokio::test]
async fn many_announcements_are_few_messages_and_the_last_is_told() {
    let namespace = namespace();
    let (one, two) = (connect(&namespace).await.wake_bus(), connect(&namespace).await.wake_bus());
    let url = surefoot_testkit::servers::given(surefoot_testkit::servers::NATS_URL).unwrap();
    let client = async_nats::connect(url).await.unwrap();
    let mut messages = client.subscribe(format!("{namespace}.wake.shop")).await.unwrap();
    client.flush().await.unwrap();
    let began = tokio::time::Instant::now();
    for _ in 0..1_000 {
        one.announce("shop").await;
    }
    let most = began.elapsed().as_millis() / 5 + 2;
    let quiet = Duration::from_millis(500);
    let mut count = 0;
    while tokio::time::timeout(quiet, futures_util::StreamExt::next(&mut messages)).await.is_ok() {
        count += 1;
    }
    assert!((1..=most).contains(&count), "{count} of at most {most}");
    // An app whose name has odd characters is an app.
    eventually("the announcement", async || {
        one.announce("a.b *>").await;
        tokio::time::timeout(Duration::from_millis(100), two.heard("a.b *>")).await.ok()
    })
    .await;
}
