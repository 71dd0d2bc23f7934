//! Connections whose users went away in the middle.

use std::pin::Pin;
use std::task::{Context, Poll};

use serde_json::json;
use sqlx::Row;
use surefoot_kernel_core::{LoadRequest, RenewRequest, RunStore, Scan, TxStore};
use surefoot_store_postgres::sqlx;

use crate::support::{LEASE, World, app, claim, create, load, next, outcome, session, step};

/// A future that is given up the `left`th time that it has to wait.
struct GiveUp<F> {
    inner: Pin<Box<F>>,
    left: usize,
}

impl<F: Future> Future for GiveUp<F> {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        if self.inner.as_mut().poll(cx).is_ready() {
            return Poll::Ready(true);
        }
        self.left = self.left.saturating_sub(1);
        if self.left == 0 { Poll::Ready(false) } else { Poll::Pending }
    }
}

/// Whether the future came to its end before it was dropped.
async fn drop_at<F: Future>(wait: usize, future: F) -> bool {
    GiveUp { inner: Box::pin(future), left: wait }.await
}

/// The driver's own pool hands the next borrower a connection on which the transaction of the one before is still to
/// begin.
#[tokio::test]
async fn a_begin_that_was_given_up_leaves_no_transaction_behind() {
    let world = World::with(|options| options.transactions(1)).await;
    let mut clock = world.database.raw().await;
    let mut given_up = 0;
    for round in 0..60 {
        let after = 1 + round % 6;
        given_up += u32::from(!drop_at(after, world.store.begin()).await);
        let row = sqlx::query("SELECT clock_timestamp()::text AS now").fetch_one(&mut clock).await;
        let before: String = row.unwrap().get("now");
        let mut tx = world.store.begin().await.unwrap();
        let newer = sqlx::query("SELECT now() >= $1::timestamptz AS newer").bind(before);
        let row = newer.fetch_one(&mut *tx).await.unwrap();
        assert!(row.get::<bool, _>("newer"), "round {round}: inside of an older transaction");
        tx.commit().await.unwrap();
    }
    assert!(given_up > 0, "some begins were given up");
    assert_eq!(world.store.lent(), (0, 0));
}

/// Whatever is dropped at whatever point: nothing is half written, and every connection is of use or replaced.
///
/// Covers field fault 69.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_are_dropped_leave_nothing_behind() {
    let world = World::with(|options| options.readers(1).transactions(1).writers(1)).await;
    let (run, store) = (world.claimed(1).await.remove(0), &world.store);
    let mut finished = 0;
    for round in 0..60 {
        let after = 1 + round % 12;
        let transaction = async {
            let tx = store.begin().await.unwrap();
            tx.commit().await.unwrap();
        };
        finished += u32::from(drop_at(after, transaction).await);
        finished += u32::from(drop_at(after, store.dry_run_create(create())).await);
        finished += u32::from(drop_at(after, store.run_claim(claim(1, next()))).await);
        let whole = LoadRequest { run: run.id, after: None };
        finished += u32::from(drop_at(after, store.run_load(whole)).await);
        let scan = Scan { app: app(), limit: 5 };
        finished += u32::from(drop_at(after, store.run_recover(scan)).await);
        let (session, runs) = (session(), vec![run.stamp()]);
        let renewal = RenewRequest { session, runs, lease: LEASE };
        finished += u32::from(drop_at(after, store.lease_renew(renewal)).await);
        finished += u32::from(drop_at(after, store.run_commit(outcome(&run, json!(1)))).await);
    }
    assert!(finished > 0, "some calls came to their end");
    store.begin().await.unwrap().commit().await.unwrap();
    let stored = load(store, run.id).await;
    assert_eq!(stored.journal.unwrap().len(), 1, "one of the commits, and no more");
    assert!(step(store, &stored.run).await.is_ok());
    assert_eq!(store.lent(), (0, 0));
}
