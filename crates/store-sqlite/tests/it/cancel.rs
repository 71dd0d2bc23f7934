//! Futures that are dropped at any await: nothing is left open, nobody is locked out.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use surefoot_kernel_core::{
    EventStore, LoadRequest, OperatorStore, RunFilter, RunStore, Scan, TxStore,
};

use crate::support::{World, app, claim, emit, load, next, order, outcome, step};

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
pub(crate) async fn drop_at<F: Future>(wait: usize, future: F) -> bool {
    GiveUp { inner: Box::pin(future), left: wait }.await
}

/// Covers field fault 69.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_are_dropped_anywhere_leave_the_store_usable() {
    let world = World::published().await;
    let store = &world.store;
    let run = world.claimed(1).await.remove(0);
    let mut finished = 0_u32;
    for round in 0..300_usize {
        let wait = 1 + round % 30;
        finished += u32::from(drop_at(wait, store.begin()).await);
        finished += u32::from(
            drop_at(wait, async {
                let mut tx = store.begin().await.unwrap();
                store.event_emit_in(&mut tx, emit(order())).await.unwrap();
                tx.commit().await.unwrap();
            })
            .await,
        );
        finished += u32::from(drop_at(wait, store.event_emit(emit(order()))).await);
        finished += u32::from(drop_at(wait, store.run_claim(claim(1, next()))).await);
        let whole = LoadRequest { run: run.id, after: None };
        finished += u32::from(drop_at(wait, store.run_load(whole)).await);
        let list = RunFilter { app: Some(app()), limit: 5, ..RunFilter::default() };
        finished += u32::from(drop_at(wait, store.run_list(list)).await);
        let scan = Scan { app: app(), limit: 5 };
        finished += u32::from(drop_at(wait, store.run_recover(scan)).await);
        finished += u32::from(drop_at(wait, store.run_commit(outcome(&run, 1.into()))).await);
    }
    assert!(finished > 0, "some calls came to their end");
    // Everybody gets a turn, and every connection is where it belongs.
    let tx = store.begin().await.unwrap();
    tx.commit().await.unwrap();
    let stored = load(store, run.id).await;
    assert_eq!(stored.journal.unwrap().len(), 1, "one of the commits, and no more");
    assert!(step(store, &stored.run).await.is_ok());
    assert_eq!(store.lent(), (0, 0));
}

#[tokio::test]
async fn a_dropped_transaction_is_rolled_back_before_the_next_begins() {
    let world = World::published().await;
    for _ in 0..50 {
        let mut tx = world.store.begin().await.unwrap();
        let emission = world.store.event_emit_in(&mut tx, emit(order())).await.unwrap();
        drop(tx);
        let next = world.store.begin().await.unwrap();
        let gone = LoadRequest { run: emission.runs[0], after: None };
        assert!(world.store.run_load(gone).await.unwrap().is_none());
        next.commit().await.unwrap();
    }
    assert_eq!(world.store.lent(), (0, 0));
}
