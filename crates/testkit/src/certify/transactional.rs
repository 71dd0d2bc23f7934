//! Drills for transactional actions: all work goes through the given transaction.

use std::pin::pin;

use surefoot_kernel_core::TxStore;
use surefoot_language::{Detached, Transactional, TransactionalCx};

use super::hook::{is_done, up_to};
use super::{Broken, OnStore, PAUSES_MAX, Verdict, World, in_time, step, times};

/// What it did is there once the transaction is committed: once, or never by an action that only reads.
///
/// # Errors
/// It is there more often.
pub async fn commits<W, A, I, S>(certificate: &OnStore<W, A, I, S>) -> Verdict
where
    S: TxStore,
    A: Transactional<S::Tx, Input = I>,
{
    in_time(A::NAME, async {
        let world = certificate.certificate.fresh().await;
        in_transaction(certificate, &world, Ends::Commit).await?;
        let done = world.acted().await.min(1);
        acted::<A, _, _, _>(&world, done, "after one commit").await
    })
    .await
}

/// What it did is gone once the transaction is rolled back.
///
/// # Errors
/// Something stays: it was done outside of the transaction.
pub async fn rolls_back<W, A, I, S>(certificate: &OnStore<W, A, I, S>) -> Verdict
where
    S: TxStore,
    A: Transactional<S::Tx, Input = I>,
{
    in_time(A::NAME, async {
        let world = certificate.certificate.fresh().await;
        in_transaction(certificate, &world, Ends::Rollback).await?;
        acted::<A, _, _, _>(&world, 0, "after a rollback; all its work has to go through `cx.tx()`")
            .await
    })
    .await
}

/// Wherever it is interrupted, nothing stays, and the next attempt does all.
///
/// # Errors
/// Something stays, or the next attempt does something else.
pub async fn crashes<W, A, I, S>(certificate: &OnStore<W, A, I, S>) -> Verdict
where
    S: TxStore,
    A: Transactional<S::Tx, Input = I>,
{
    in_time(A::NAME, async {
        let undisturbed = certificate.certificate.fresh().await;
        in_transaction(certificate, &undisturbed, Ends::Commit).await?;
        let done = undisturbed.acted().await;
        for pauses in 0..PAUSES_MAX {
            let world = certificate.certificate.fresh().await;
            let ended = in_transaction(certificate, &world, Ends::Crash(pauses)).await?;
            let place = format!("after a crash at pause {pauses}");
            acted::<A, _, _, _>(&world, 0, &place).await?;
            in_transaction(certificate, &world, Ends::Commit).await?;
            acted::<A, _, _, _>(&world, done, &format!("{place} and another attempt")).await?;
            if ended {
                break;
            }
        }
        Ok(())
    })
    .await
}

#[derive(Clone, Copy)]
enum Ends {
    Commit,
    Rollback,
    /// The process dies when the action has paused so often, at the latest before the commit.
    Crash(usize),
}

/// Whether the action came to its end.
async fn in_transaction<W, A, I, S>(
    certificate: &OnStore<W, A, I, S>,
    world: &World<'_, W, A, I>,
    ends: Ends,
) -> Result<bool, Broken>
where
    S: TxStore,
    A: Transactional<S::Tx, Input = I>,
{
    let store = (certificate.store)(&world.world);
    let failed = |wrong: String| Broken::new(A::NAME, format!("does not succeed here: {wrong}"));
    let mut open = store.begin().await.map_err(|wrong| failed(wrong.to_string()))?;
    let action = world.action();
    let mut cx = TransactionalCx::new(step(1), &mut *open, &Detached);
    let pauses = if let Ends::Crash(pauses) = ends { pauses } else { usize::MAX };
    let answer = up_to(pin!(action.run(&mut cx, world.input())), pauses).await;
    let Some(answer) = answer else { return Ok(false) };
    is_done(answer).map_err(failed)?;
    if let Ends::Commit = ends {
        store.commit(open).await.map_err(|wrong| failed(wrong.to_string()))?;
    }
    Ok(true)
}

async fn acted<A, W, I, Tx>(world: &World<'_, W, A, I>, expected: u64, when: &str) -> Verdict
where
    Tx: Send + 'static,
    A: Transactional<Tx>,
{
    let acted = world.acted().await;
    if acted == expected {
        return Ok(());
    }
    let what = format!("changed the world {} instead of {} {when}", times(acted), times(expected));
    Err(Broken::new(A::NAME, what))
}
