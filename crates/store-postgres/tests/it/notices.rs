//! Notices between processes: on a line that falls silent, and how many of them there are.

use std::time::Duration;
use surefoot_testkit::ClaimRows as _;

use surefoot_kernel_core::{EventStore, WakeBus};
use surefoot_store_postgres::{PostgresStore, sqlx};

use crate::published::{claim, emit, order, published};
use crate::support::step;
use crate::wire::Wired;

async fn listeners(wired: &Wired) -> i64 {
    use sqlx::Row;
    let listeners = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND query LIKE 'LISTEN%'";
    let mut conn = wired.world.database.raw().await;
    sqlx::query(listeners).fetch_one(&mut conn).await.unwrap().get(0)
}

/// The line on which a process listens stays open, and nothing comes through any more: it is asked after a while, and
/// replaced. Meanwhile the worker's scan finds what there is.
///
/// Covers field fault 71.
#[tokio::test]
async fn a_silent_line_is_noticed_and_replaced() {
    let wired = Wired::of(published().await).await;
    let bus = wired.store.wake_bus();
    // The first time, since the line may have missed anything before it was there.
    bus.heard("inventory").await;
    while listeners(&wired).await == 0 {
        tokio::task::yield_now().await;
    }
    wired.proxy.hush();
    wired.world.store.wake_bus().announce("inventory").await;
    let waiting = tokio::spawn({
        let bus = bus.clone();
        async move { bus.heard("inventory").await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished(), "nothing comes through");
    // The time until it is asked, and until no answer is an answer, is not waited for.
    tokio::time::pause();
    for _ in 0..40 {
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::task::yield_now().await;
    }
    tokio::time::resume();
    tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap().unwrap();
    // And on the new line it hears again.
    let heard = tokio::spawn(async move { bus.heard("inventory").await });
    while !heard.is_finished() {
        wired.world.store.wake_bus().announce("inventory").await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The server notifies one session after the other, under a lock of the whole database: commits carry no notice, and many
/// announcements are few messages.
///
/// Covers field fault 81.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_carry_no_notice_and_announcements_go_together() {
    let wired = Wired::of(published().await).await;
    let store: &PostgresStore = &wired.store;
    for _ in 0..20 {
        store.event_emit(emit(order())).await.unwrap();
        let run = store.claim_rows(claim(1)).await.remove(0);
        step(store, &run).await.unwrap();
    }
    let notices = || wired.proxy.seen().iter().filter(|it| *it == "-- meta/notify").count();
    assert_eq!(notices(), 0, "a commit notifies");
    let bus = store.wake_bus();
    for nth in 0..1_000 {
        bus.announce(&format!("app {}", nth % 10)).await;
    }
    while notices() == 0 {
        tokio::task::yield_now().await;
    }
    assert!(notices() < 50, "{} messages", notices());
}
