//! One run through actions of all four classes.

use serde_json::json;
use surefoot_kernel_core::RunState;

use crate::actions::{Actions, n};
use crate::plans::{act, act_on, saved};
use crate::world::World;

/// Covers behaviour 157.
#[tokio::test(start_paused = true)]
async fn a_run_goes_through_actions_of_every_class() {
    let actions = Actions::default()
        .compute(|config| Ok(json!(config["n"].as_i64().unwrap() * 2)))
        .book(|cx, config| {
            Box::pin(async move {
                cx.tx().table().insert("bolt".to_owned(), config["n"].to_string());
                Ok(config)
            })
        });
    let world = World::new(actions);
    let steps = vec![
        saved(act("compute", n(21)), "doubled"),
        act_on("book", "doubled", "n"),
        act_on("mail", "doubled", "n"),
        act_on("pay", "doubled", "n"),
    ];
    let run = world.start(steps).await;
    let worker = world.worker();
    assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
    assert_eq!(world.outputs(run).await, [json!(42), n(42), n(42), n(42)]);
    assert_eq!(world.store.inner.table_row("bolt").as_deref(), Some("42"));
    let calls: Vec<String> =
        world.log().lines().into_iter().filter(|line| !line.starts_with("key")).collect();
    assert_eq!(
        calls,
        [
            "compute.run {\"n\":21}",
            "book.authorize steps.1 #1",
            "book.cost",
            "book.run steps.1 #1",
            "mail.authorize steps.2 #1",
            "mail.cost",
            "mail.run steps.2 #1",
            "pay.authorize steps.3 #1",
            "pay.cost",
            "pay.run steps.3 #1",
        ]
    );
}
