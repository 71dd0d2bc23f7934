//! Drills for ambiguous actions: what may have happened can be asked for, and the answer is true.

use std::pin::pin;

use serde_json::Value;
use surefoot_kernel_core::Micros;
use surefoot_language::{Access, Ambiguous, Reconciled};

use super::hook::{Contexts, Says, up_to};
use super::{Broken, Certificate, PAUSES_MAX, Verdict, World, has_acted, in_time, step, times};

/// After an answer, `reconcile` says the same as `run`.
///
/// # Errors
/// It says something else, or `run` denies an effect that is there.
pub async fn answers<W, A, I, B>(certificate: &Certificate<W, A, I>) -> Verdict
where
    B: Contexts,
    A: Ambiguous<B, Input = I>,
{
    in_time(A::NAME, async {
        let world = certificate.fresh().await;
        let output = run::<_, _, _, B>(&world, 1).await?;
        acted::<A, _, _, B>(&world, 1, "when run once").await?;
        let found = judge::<_, _, _, B>(&world, 1, "after an answer").await?;
        match found {
            Some(found) if found != output => Err(Broken::new(
                A::NAME,
                format!("has another output in `reconcile` than in `run`: {found}, {output}"),
            )),
            _ => Ok(()),
        }
    })
    .await
}

/// Under another key it acts again.
///
/// # Errors
/// It does not.
pub async fn other_keys<W, A, I, B>(certificate: &Certificate<W, A, I>) -> Verdict
where
    B: Contexts,
    A: Ambiguous<B, Input = I>,
{
    in_time(A::NAME, async {
        let world = certificate.fresh().await;
        run::<_, _, _, B>(&world, 1).await?;
        run::<_, _, _, B>(&world, 2).await?;
        acted::<A, _, _, B>(&world, 2, "under two keys").await
    })
    .await
}

/// Wherever `run` is interrupted, `reconcile` finds out what it did.
///
/// # Errors
/// It says that it happened and it did not, or that it did not and it did: then the provider learns of the effect key
/// later than of the effect, or not at all.
pub async fn crashes<W, A, I, B>(certificate: &Certificate<W, A, I>) -> Verdict
where
    B: Contexts,
    A: Ambiguous<B, Input = I>,
{
    in_time(A::NAME, async {
        for pauses in 0..PAUSES_MAX {
            let world = certificate.fresh().await;
            let ended = {
                let (action, cx) = (world.action(), B::ambiguous_cx(step(1), Says::Yes));
                up_to(pin!(action.run(&cx, world.input())), pauses).await.is_some()
            };
            let place = format!("after a crash at pause {pauses}");
            judge::<_, _, _, B>(&world, 1, &place).await?;
            if ended {
                break;
            }
        }
        Ok(())
    })
    .await
}

/// Asking, again and at the same time, changes nothing.
///
/// # Errors
/// It acts.
pub async fn asks<W, A, I, B>(certificate: &Certificate<W, A, I>) -> Verdict
where
    B: Contexts,
    A: Ambiguous<B, Input = I>,
{
    in_time(A::NAME, async {
        let world = certificate.fresh().await;
        run::<_, _, _, B>(&world, 1).await?;
        for _ in 0..3 {
            ask::<_, _, _, B>(&world, 1).await?;
        }
        let (one, other) = tokio::join!(ask::<_, _, _, B>(&world, 1), ask::<_, _, _, B>(&world, 1));
        one.and(other)?;
        acted::<A, _, _, B>(&world, 1, "when run once and asked for; `reconcile` must not act")
            .await
    })
    .await
}

/// It knows nothing of a key that was never used, whatever was done under others.
///
/// # Errors
/// It says that it happened.
pub async fn unknown_keys<W, A, I, B>(certificate: &Certificate<W, A, I>) -> Verdict
where
    B: Contexts,
    A: Ambiguous<B, Input = I>,
{
    in_time(A::NAME, async {
        let world = certificate.fresh().await;
        for _ in 0..2 {
            if let Reconciled::Succeeded(_) = ask::<_, _, _, B>(&world, 2).await? {
                let what = "says of a key that was never used that its effect happened; \
                            `reconcile` has to ask for `cx.effect_key()`";
                return Err(Broken::new(A::NAME, what));
            }
            run::<_, _, _, B>(&world, 1).await?;
        }
        Ok(())
    })
    .await
}

/// One that is not guarded has nothing to say before its call.
///
/// # Errors
/// Its `authorize` or its `cost` has, and is never asked.
pub async fn guards<W, A, I, B>(certificate: &Certificate<W, A, I>) -> Verdict
where
    B: Contexts,
    A: Ambiguous<B, Input = I>,
{
    if A::GUARDED {
        return Ok(());
    }
    in_time(A::NAME, async {
        let world = certificate.fresh().await;
        let (action, input) = (world.action(), world.input());
        let unasked = |hook: &str| {
            let what =
                format!("has a word to say in `{hook}`, and is not `GUARDED`: it is never asked");
            Err(Broken::new(A::NAME, what))
        };
        match action.authorize(&step(1), &input).await {
            Ok(Access::Allowed) if action.cost(&input).is_none() => Ok(()),
            Ok(Access::Allowed) => unasked("cost"),
            Ok(Access::Denied { .. }) | Err(_) => unasked("authorize"),
        }
    })
    .await
}

async fn run<W, A, I, B>(world: &World<'_, W, A, I>, key: u8) -> Result<Value, Broken>
where
    B: Contexts,
    A: Ambiguous<B, Input = I>,
{
    let cx = B::ambiguous_cx(step(key), Says::Yes);
    let before = world.acted().await;
    match world.action().run(&cx, world.input()).await {
        Ok(output) => serde_json::to_value(output).map_err(|wrong| {
            Broken::new(A::NAME, format!("has an output that is no JSON: {wrong}"))
        }),
        Err(stop) => {
            let denied = !stop.may_have_acted() && world.acted().await > before;
            let what =
                if denied { "denies an effect that is there" } else { "does not succeed here" };
            Err(Broken::new(A::NAME, format!("{what}: {}", stop.message())))
        }
    }
}

async fn ask<W, A, I, B>(world: &World<'_, W, A, I>, key: u8) -> Result<Reconciled<Value>, Broken>
where
    B: Contexts,
    A: Ambiguous<B, Input = I>,
{
    let cx = B::ambiguous_cx(step(key), Says::Yes);
    let found = world.action().reconcile(&cx, world.input()).await;
    let found = found.map_err(|stop| {
        Broken::new(A::NAME, format!("cannot be asked here: {}", stop.message()))
    })?;
    found
        .try_map(serde_json::to_value)
        .map_err(|wrong| Broken::new(A::NAME, format!("has an output that is no JSON: {wrong}")))
}

/// Asks what became of the effect, and compares the answer with the world. The output, if there is one.
async fn judge<W, A, I, B>(
    world: &World<'_, W, A, I>,
    key: u8,
    when: &str,
) -> Result<Option<Value>, Broken>
where
    B: Contexts,
    A: Ambiguous<B, Input = I>,
{
    let mut found = ask::<_, _, _, B>(world, key).await?;
    // That nobody knows of it proves nothing until the time for it is over.
    if found == Reconciled::NotFound && world.later(Micros::from(A::SETTLE_AFTER)).await {
        found = ask::<_, _, _, B>(world, key).await?;
    }
    let acted = world.acted().await;
    let lies = |what: &str| {
        Err(Broken::new(A::NAME, format!("{what} {when}: the world was changed {}", times(acted))))
    };
    match (acted, found) {
        (0 | 1, Reconciled::Unknown { .. })
        | (0, Reconciled::NotFound | Reconciled::Failed { .. }) => Ok(None),
        (1, Reconciled::Succeeded(output)) => Ok(Some(output)),
        (0, Reconciled::Succeeded(_)) => lies("says in `reconcile` that it happened"),
        (1, Reconciled::NotFound) => lies(
            "is not found in `reconcile` (the provider has to learn of `cx.effect_key()` together \
             with the effect; if it answers with a delay, let it pass in `later`, within \
             `SETTLE_AFTER`)",
        ),
        (1, Reconciled::Failed { .. }) => lies("says in `reconcile` that it was refused"),
        (_, _) => lies("acted more than once"),
    }
}

async fn acted<A, W, I, B>(world: &World<'_, W, A, I>, expected: u64, when: &str) -> Verdict
where
    B: Contexts,
    A: Ambiguous<B>,
{
    has_acted(A::NAME, world, expected, |_| when.to_owned()).await
}
