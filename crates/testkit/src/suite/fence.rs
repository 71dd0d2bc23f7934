//! The fence: an application's own transaction that no stale worker can commit.

#![expect(clippy::unwrap_used, reason = "assertions of the suite: a rule that fails panics")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use surefoot_kernel_core::{
    FenceError, Renewed, RunState, RunStore as _, TakeOverRequest, TxStore as _,
};

use super::StoreFactory;
use super::world::{LEASE, World, failed, succeeded};
use crate::plans::{idempotent, plan};

fn flow() -> surefoot_kernel_core::plan::Plan {
    plan(vec![idempotent("a")])
}

/// The holder of a run may write its own tables under the fence.
pub async fn a_fence_lets_the_holder_of_the_run_write<F: StoreFactory>(world: &World<F>) {
    let mut drive = world.running(flow()).await;
    let before = world.all_of(drive.run().id).await;
    let fence = world.store.fence(drive.run().id, drive.run().generation);
    let mut open = world.store.begin().await.unwrap();
    fence.hold(&mut open).await.unwrap();
    F::write_row(&mut open, "bolt", "1").await.unwrap();
    world.store.commit(open).await.unwrap();
    assert_eq!(F::read_row(&world.other, "bolt").await.as_deref(), Some("1"));
    assert_eq!(world.all_of(drive.run().id).await, before, "a fence is no write of the run");
    world.answer(&mut drive, succeeded(json!(1))).await;
}

/// A lapsed lease that nobody took over still fences.
pub async fn a_fence_looks_at_the_generation_not_at_the_time<F: StoreFactory>(world: &World<F>) {
    let drive = world.running(flow()).await;
    world.pass_secs(1_000).await;
    let fence = world.store.fence(drive.run().id, drive.run().generation);
    let mut open = world.store.begin().await.unwrap();
    fence.hold(&mut open).await.unwrap();
    // Holding it again on the same transaction is the same.
    fence.hold(&mut open).await.unwrap();
    world.store.commit(open).await.unwrap();
}

/// Covers behaviour 89.
/// Covers field fault 44.
pub async fn a_fence_refuses_whoever_does_not_hold_the_run<F: StoreFactory>(world: &World<F>) {
    let stale = world.running(flow()).await;
    let run = stale.run().id;
    world.pass_secs(121).await;
    world.rival_claim().await;
    let held = world.row(run).await;
    let refused = async |generation| {
        let mut open = world.store.begin().await.unwrap();
        let refused = world.store.fence(run, generation).hold(&mut open).await;
        assert!(matches!(refused, Err(FenceError::LeaseLost)), "{refused:?}");
    };
    refused(stale.run().generation).await;
    refused(held.generation + 1).await;
    let mut drive = world.drive(run).await;
    world.answer(&mut drive, failed(true)).await;
    assert_eq!(drive.run().state(), RunState::Queued);
    refused(drive.run().generation).await;
    let unknown = surefoot_kernel_core::RunId::from_bytes([9; 16]);
    let mut open = world.store.begin().await.unwrap();
    let refused = world.store.fence(unknown, 1).hold(&mut open).await;
    assert!(matches!(refused, Err(FenceError::LeaseLost)), "{refused:?}");
}

/// A canceled action writes nothing more under its fence.
pub async fn a_fence_refuses_once_cancel_was_requested<F: StoreFactory>(world: &World<F>) {
    let drive = world.running(flow()).await;
    world.cancel(drive.run().id).await;
    let mut open = world.store.begin().await.unwrap();
    let fence = world.store.fence(drive.run().id, drive.run().generation);
    let refused = fence.hold(&mut open).await;
    assert!(matches!(refused, Err(FenceError::Canceled)), "{refused:?}");
}

/// While a fence is held, the lease keeper neither writes nor waits.
pub async fn a_renewal_does_not_wait_for_a_fence<F: StoreFactory>(world: &World<F>) {
    let drive = world.running(flow()).await;
    let (run, stamp) = (drive.run().id, drive.stamp());
    for commits in [true, false] {
        let before = world.row(run).await;
        let mut open = world.store.begin().await.unwrap();
        world.store.fence(run, stamp.generation).hold(&mut open).await.unwrap();
        assert_eq!(world.renew(world.session, vec![stamp]).await, [(run, Renewed::FenceHeld)]);
        assert_eq!(world.row(run).await, before);
        if commits {
            world.store.commit(open).await.unwrap();
        } else {
            drop(open);
        }
        let renewed = world.renew(world.session, vec![stamp]).await;
        assert!(matches!(renewed[..], [(_, Renewed::Held { .. })]), "{renewed:?}");
    }
}

/// A takeover waits for the transaction that holds the fence: what it commits was written by the holder.
pub async fn a_takeover_waits_for_the_fence<F: StoreFactory>(world: &World<F>) {
    let drive = world.running(flow()).await;
    let run = drive.run().id;
    let mut open = world.store.begin().await.unwrap();
    world.store.fence(run, drive.run().generation).hold(&mut open).await.unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    let generation = drive.run().generation;
    let (store, session, done) = (world.other.clone(), world.session, is_done.clone());
    let takeover = tokio::spawn(async move {
        let request = TakeOverRequest { run, generation, session, lease: LEASE };
        let taken = store.run_take_over(request).await;
        done.store(true, Ordering::SeqCst);
        taken
    });
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    F::write_row(&mut open, "bolt", "1").await.unwrap();
    assert!(!is_done.load(Ordering::SeqCst), "a stale worker could commit behind the takeover");
    world.store.commit(open).await.unwrap();
    let taken = takeover.await.unwrap().unwrap().unwrap();
    assert_eq!(taken.generation, drive.run().generation + 1);
    assert_eq!(F::read_row(&world.store, "bolt").await.as_deref(), Some("1"));
    let mut open = world.store.begin().await.unwrap();
    let refused = world.store.fence(run, drive.run().generation).hold(&mut open).await;
    assert!(matches!(refused, Err(FenceError::LeaseLost)), "{refused:?}");
}
