//! A store behind a proxy that loses and delays what it is told to, and the same data without it.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use sqlx::{PgConnection, Row};
use surefoot_store_postgres::{PostgresOptions, PostgresStore, sqlx};
use surefoot_testkit::servers::{Fate, PostgresProxy, Trap};
use tokio::task::spawn_blocking;

use crate::support::World;

/// What the proxy does with a COMMIT, or with a statement that is a transaction of its own, that leaves its client in
/// doubt.
pub(crate) const DOUBTS: [Fate; 3] = [Fate::LoseRequest, Fate::LoseAnswer, Fate::ComeLate];

pub(crate) struct Wired {
    /// What is there, and who looks at it.
    pub(crate) world: World,
    pub(crate) proxy: PostgresProxy,
    /// The store behind the proxy.
    pub(crate) store: PostgresStore,
}

impl Wired {
    pub(crate) async fn new() -> Self {
        Self::of(World::new().await).await
    }

    pub(crate) async fn of(world: World) -> Self {
        Self::with(world, |options| options).await
    }

    pub(crate) async fn with(
        world: World,
        change: impl FnOnce(PostgresOptions) -> PostgresOptions,
    ) -> Self {
        let proxy = world.database.proxy();
        let options = world.database.through(&proxy).clock_offset(world.offset.clone());
        let store = PostgresStore::open_with(change(options)).await.unwrap();
        Self { world, proxy, store }
    }
}

/// Begins a call and comes back while it waits for its answer: what it asks for stands in its queue.
pub(crate) async fn begun<F: Future>(call: F) -> Pin<Box<F>> {
    let mut call = Box::pin(call);
    let waits = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_pending())).await;
    assert!(waits, "answered at once");
    call
}

/// Until the proxy has caught what it was to catch.
pub(crate) async fn caught(trap: &Trap) {
    let trap = trap.clone();
    assert!(spawn_blocking(move || trap.is_caught()).await.unwrap(), "nothing was caught");
}

/// Until the server has answered what was caught, after it was let go.
pub(crate) async fn settled(trap: &Trap) {
    trap.release();
    let trap = trap.clone();
    assert!(spawn_blocking(move || trap.is_settled()).await.unwrap(), "the server did not answer");
}

/// Until so many sessions of the database wait for a lock.
pub(crate) async fn until_waiting(conn: &mut PgConnection, sessions: i64) {
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    for _ in 0..60_000 {
        let row = sqlx::query(waiting).fetch_one(&mut *conn).await.unwrap();
        if row.get::<i64, _>(0) >= sessions {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("nobody waits for a lock");
}
