//! Drills for idempotent actions: safe to repeat under the effect key.

use std::pin::pin;

use surefoot_language::Idempotent;

use super::hook::{Contexts, Says, is_done, up_to};
use super::{Broken, Certificate, PAUSES_MAX, Verdict, World, has_acted, in_time, step};

const SAY_WHO: &str = "hand `cx.effect_key()` to whoever does the work, who has to know it again";

/// However often it runs under one key, in however many processes, it acts once.
///
/// # Errors
/// It acts twice, not at all, or a repeat fails.
pub async fn repeats<W, A, I, B>(certificate: &Certificate<W, A, I>) -> Verdict
where
    B: Contexts,
    A: Idempotent<B, Input = I>,
{
    in_time(A::NAME, async {
        let world = certificate.fresh().await;
        for runs in 1..=3 {
            once::<_, _, _, B>(&world, 1).await?;
            acted::<A, _, _, B>(&world, 1, &format!("when run {runs} times under one key")).await?;
        }
        Ok(())
    })
    .await
}

/// Under another key it acts again: another step of another run wants its own effect.
///
/// # Errors
/// It does not.
pub async fn other_keys<W, A, I, B>(certificate: &Certificate<W, A, I>) -> Verdict
where
    B: Contexts,
    A: Idempotent<B, Input = I>,
{
    in_time(A::NAME, async {
        let world = certificate.fresh().await;
        once::<_, _, _, B>(&world, 1).await?;
        once::<_, _, _, B>(&world, 2).await?;
        acted::<A, _, _, B>(&world, 2, "under two keys").await
    })
    .await
}

/// Wherever it is interrupted, the next attempt brings the effect to one.
///
/// # Errors
/// The effect is there twice, or is lost.
pub async fn crashes<W, A, I, B>(certificate: &Certificate<W, A, I>) -> Verdict
where
    B: Contexts,
    A: Idempotent<B, Input = I>,
{
    in_time(A::NAME, async {
        for pauses in 0..PAUSES_MAX {
            let world = certificate.fresh().await;
            let ended = {
                let (action, cx) = (world.action(), B::idempotent_cx(step(1), Says::Yes));
                up_to(pin!(action.run(&cx, world.input())), pauses).await.is_some()
            };
            once::<_, _, _, B>(&world, 1).await?;
            let place = format!("after a crash at pause {pauses} and another attempt");
            acted::<A, _, _, B>(&world, 1, &place).await?;
            if ended {
                break;
            }
        }
        Ok(())
    })
    .await
}

/// Two workers that run it under one key at the same time, one of them ahead by any number of pauses, act once.
///
/// # Errors
/// The effect is there twice, or a later attempt fails.
pub async fn duplicates<W, A, I, B>(certificate: &Certificate<W, A, I>) -> Verdict
where
    B: Contexts,
    A: Idempotent<B, Input = I>,
{
    in_time(A::NAME, async {
        for ahead in 0..PAUSES_MAX {
            let world = certificate.fresh().await;
            let ended = {
                let (one, other) = (world.action(), world.action());
                let cx = B::idempotent_cx(step(1), Says::Yes);
                let mut first = pin!(one.run(&cx, world.input()));
                let ended = up_to(first.as_mut(), ahead).await.is_some();
                let second = other.run(&cx, world.input());
                // Either may fail and be tried again: what counts is what they did.
                if ended {
                    drop(second.await);
                } else {
                    let _ = tokio::join!(first, second);
                }
                ended
            };
            once::<_, _, _, B>(&world, 1).await?;
            let place = format!("with a duplicate behind by {ahead} pauses");
            acted::<A, _, _, B>(&world, 1, &place).await?;
            if ended {
                break;
            }
        }
        Ok(())
    })
    .await
}

/// One that names its store does nothing once its fence refuses. Others have no fence, and pass.
///
/// # Errors
/// It acts all the same.
pub async fn lost_lease<W, A, I, B>(certificate: &Certificate<W, A, I>) -> Verdict
where
    B: Contexts,
    A: Idempotent<B, Input = I>,
{
    if !B::IS_FENCED {
        return Ok(());
    }
    in_time(A::NAME, async {
        let world = certificate.fresh().await;
        let cx = B::idempotent_cx(step(1), Says::LeaseLost);
        drop(world.action().run(&cx, world.input()).await);
        let why =
            "after its lease was lost; call `cx.heartbeat_in(&mut tx)` before the first write";
        acted::<A, _, _, B>(&world, 0, why).await
    })
    .await
}

async fn once<W, A, I, B>(world: &World<'_, W, A, I>, key: u8) -> Verdict
where
    B: Contexts,
    A: Idempotent<B, Input = I>,
{
    let cx = B::idempotent_cx(step(key), Says::Yes);
    let answer = world.action().run(&cx, world.input()).await;
    is_done(answer).map_err(|wrong| Broken::new(A::NAME, format!("does not succeed here: {wrong}")))
}

async fn acted<A, W, I, B>(world: &World<'_, W, A, I>, expected: u64, when: &str) -> Verdict
where
    B: Contexts,
    A: Idempotent<B>,
{
    let cure = |acted| {
        if acted > expected && expected > 0 { format!("; {SAY_WHO}") } else { String::new() }
    };
    has_acted(A::NAME, world, expected, |acted| format!("{when}{}", cure(acted))).await
}
