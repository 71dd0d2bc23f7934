//! Drills for pure actions: the output depends on the input and nothing else.

use serde_json::Value;
use surefoot_kernel_core::Micros;
use surefoot_language::{Pure, PureCx};

use super::{Broken, Certificate, Verdict, World, in_time, step, times};

/// Enough for a clock that counts microseconds to tick, and for an unordered map to show its disorder.
const REPEATS: usize = 1_000;
const A_YEAR: Micros = Micros::from_secs(365 * 86_400);

/// The same input gives the same output: again and again, in another process's action, a year later.
///
/// What reads a clock that ticks more seldom than this drill takes is found only where `later` moves that clock.
///
/// # Errors
/// An output differs.
pub async fn repeats<W, A, I>(certificate: &Certificate<W, A, I>) -> Verdict
where
    A: Pure<Input = I>,
{
    in_time(A::NAME, async {
        let world = certificate.fresh().await;
        let first = once(&world)?;
        for repeat in 1..=REPEATS {
            same::<A>(&first, &once(&world)?, &format!("at repeat {repeat}"))?;
        }
        world.later(A_YEAR).await;
        same::<A>(&first, &once(&world)?, "a year later")
    })
    .await
}

/// It changes nothing.
///
/// # Errors
/// The world was changed.
pub async fn leaves_no_trace<W, A, I>(certificate: &Certificate<W, A, I>) -> Verdict
where
    A: Pure<Input = I>,
{
    in_time(A::NAME, async {
        let world = certificate.fresh().await;
        once(&world)?;
        match world.acted().await {
            0 => Ok(()),
            acted => Err(Broken::new(
                A::NAME,
                format!("is pure and changed the world {}: it has another class", times(acted)),
            )),
        }
    })
    .await
}

/// Output, or code and message of its stop.
fn once<W, A, I>(world: &World<'_, W, A, I>) -> Result<Value, Broken>
where
    A: Pure<Input = I>,
{
    let answer = world.action().run(&PureCx::new(step(1)), world.input());
    match answer {
        Ok(output) => serde_json::to_value(output).map_err(|wrong| {
            Broken::new(A::NAME, format!("has an output that is no JSON: {wrong}"))
        }),
        Err(stop) => Ok(Value::from(format!("{}: {}", stop.code(), stop.message()))),
    }
}

fn same<A: Pure>(first: &Value, other: &Value, when: &str) -> Verdict {
    if first == other {
        return Ok(());
    }
    Err(Broken::new(
        A::NAME,
        format!(
            "is pure and gives another output for the same input {when}: {first}, then {other}; \
             what reads a clock, chance or an order that changes is idempotent or transactional"
        ),
    ))
}
