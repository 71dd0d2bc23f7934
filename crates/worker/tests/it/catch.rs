//! What fails for good, and is handled by the workflow itself.

use surefoot_kernel_core::{Fact, RunState};
use surefoot_language::{Access, Stop};

use crate::actions::{Actions, n};
use crate::plans::{act, act_on, caught};
use crate::world::World;

#[tokio::test(start_paused = true)]
async fn a_transaction_that_failed_is_rolled_back_and_its_catch_goes_on() {
    let world = World::new(
        Actions::default()
            .book(|_, _| Box::pin(async { Err(Stop::fail("NO_SHELF", "no such shelf")) })),
    );
    let steps = vec![
        caught(act("book", n(1)), vec![act_on("mail", "error", "why"), act("pay", n(2))]),
        act("compute", n(3)),
    ];
    let run = world.start(steps).await;
    world.worker().run_one().await.unwrap();
    assert_eq!(world.state(run).await, RunState::Succeeded);
    assert_eq!(world.log().count("book.run"), 1);
    let outputs = world.outputs(run).await;
    assert_eq!(outputs[0]["why"]["message"], "no such shelf");
    assert_eq!(outputs[1..], [n(2), n(3)]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_and_a_panic_are_caught() {
    let may = |action: &'static str, _| async move {
        Ok(if action == "pay" { Access::denied("not you") } else { Access::Allowed })
    };
    let actions = Actions::default().may(may).mail(|_, _| async { panic!("a defect") });
    let world = World::new(actions);
    let steps = vec![
        caught(act("pay", n(1)), vec![act_on("compute", "error", "why")]),
        caught(act("mail", n(1)), vec![act_on("compute", "error", "why")]),
    ];
    let run = world.start(steps).await;
    world.worker().run_one().await.unwrap();
    assert_eq!(world.state(run).await, RunState::Succeeded);
    let outputs = world.outputs(run).await;
    assert_eq!(outputs[0]["why"]["code"], "FORBIDDEN");
    assert_eq!(outputs[1]["why"]["code"], "ACTION_ERROR");
    assert_eq!(world.log().count("pay.run"), 0, "refused before any effect");
    let marks = world.facts(run).await.into_iter();
    assert_eq!(marks.filter(|fact| matches!(fact, Fact::CallMarked { .. })).count(), 0);
}
