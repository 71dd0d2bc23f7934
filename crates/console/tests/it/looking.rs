//! Lists and details.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use surefoot_kernel_core::{Command, Event};
use surefoot_operator::EmitEvent;
use surefoot_testkit::Drive;

use crate::client::{Served, console, open};
use crate::world::{SCOPE, World, app};

/// So many runs of different items.
async fn emitted(world: &World, items: std::ops::Range<u32>) {
    for item in items {
        let data = json!({ "item": item.to_string() });
        let event = Event::new("inventory.stockLow", data);
        let emit = EmitEvent { app: app(), scope: SCOPE.into(), event };
        world.operator.emit(&world.ids, emit).await.unwrap();
    }
}

fn ids(page: &Value) -> Vec<String> {
    let runs = page["runs"].as_array().unwrap().iter();
    runs.map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn pages_neither_repeat_nor_skip_while_runs_are_added() {
    let world = World::published().await;
    emitted(&world, 0..25).await;
    let served = Served::of(&world).await;
    let client = served.viewer();
    let mut seen = Vec::new();
    let mut page = client.get("/runs?limit=10").await.done();
    let first = ids(&page);
    loop {
        seen.extend(ids(&page));
        let Some(next) = page["next"].as_str().map(str::to_owned) else { break };
        emitted(&world, 100..103).await;
        page = client.get(&format!("/runs?limit=10&cursor={next}")).await.done();
    }
    assert_eq!(seen.len(), 25);
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 25);
    assert_eq!(seen[..10], first[..]);
}

#[tokio::test]
async fn a_filter_filters_and_a_list_of_states_is_separated_by_commas() {
    let world = World::published().await;
    let failed = world.failed().await;
    emitted(&world, 0..2).await;
    let served = Served::of(&world).await;
    let client = served.viewer();
    let of = async |query: &str| ids(&client.get(&format!("/runs?{query}")).await.done());
    assert_eq!(of("state=failed").await, [failed.to_string()]);
    assert_eq!(of("state=failed,queued").await.len(), 3);
    assert_eq!(of("state=succeeded").await.len(), 0);
    assert_eq!(of("app=shop&scope=berlin&workflow=reorder&mode=execute&since=1h").await.len(), 3);
    assert_eq!(of("mode=dry_run").await.len(), 0);
    assert_eq!(of(&format!("parent={failed}")).await.len(), 0);
    let refused = client.get("/runs?scope=berln").await;
    assert_eq!(refused.refused(404), "not-found");
}

/// Three mails at once.
const ALL: &str = "steps:\n  - runWorkflows: { workflow: one, each: [1, 2, 3], parallel: 2 }\n";
const ONE: &str = "steps:\n  - mail: {}\n";

/// Covers behaviour 182.
#[tokio::test]
async fn children_are_left_out_unless_they_or_their_parent_are_asked_for() {
    let world = World::published().await;
    world.publish("one", ONE).await;
    world.publish("all", ALL).await;
    let event = Event::start("all", json!({}));
    let emit = EmitEvent { app: app(), scope: SCOPE.into(), event };
    let parent = world.operator.emit(&world.ids, emit).await.unwrap().runs[0];
    world.claim_all().await;
    let mut drive = Drive::load(&world.store, parent).await.unwrap();
    let command = drive.advance(&world.store).await.unwrap();
    let Some(Command::Spawn(spawn)) = command else { panic!("{command:?}") };
    drive.spawn(&world.store, spawn).await.unwrap();
    let served = Served::of(&world).await;
    let client = served.viewer();
    let of = async |query: &str| ids(&client.get(&format!("/runs?{query}")).await.done());
    assert_eq!(of("children=false").await, [parent.to_string()]);
    assert_eq!(of("").await, [parent.to_string()]);
    assert_eq!(of(&format!("parent={parent}")).await.len(), 3);
    assert_eq!(of(&format!("children=true&parent={parent}")).await.len(), 3);
    assert_eq!(of("children=true").await.len(), 4);
    for odd in ["children=0", "children=no", "children=", "children=FALSE"] {
        assert_eq!(client.get(&format!("/runs?{odd}")).await.refused(400), "bad-request", "{odd}");
    }
    let odd = client.get(&format!("/runs?children=false&parent={parent}")).await;
    assert_eq!(odd.refused(400), "bad-request");
}

#[tokio::test]
async fn what_the_command_line_prints_is_what_is_answered() {
    let world = World::published().await;
    let run = world.unknown().await;
    let served = Served::of(&world).await;
    let client = served.viewer();
    let operator = world.operator.clone();
    let explained = client.get(&format!("/runs/{run}/explain")).await;
    assert_eq!(explained.header("etag"), Some(&*format!("\"{}\"", world.revision(run).await)));
    let explained = explained.done();
    assert_eq!(explained, serde_json::to_value(operator.explain(run).await.unwrap()).unwrap());
    let shown = client.get(&format!("/runs/{run}")).await.done();
    assert_eq!(shown, serde_json::to_value(operator.show(run).await.unwrap()).unwrap());
}

#[tokio::test]
async fn steps_and_journal_come_in_pages() {
    let world = World::published().await;
    let run = world.unknown().await;
    let served = Served::of(&world).await;
    let client = served.viewer();
    let all = client.get(&format!("/runs/{run}/steps")).await.done();
    assert_eq!((&all["total"], &all["next"]), (&json!(2), &Value::Null));
    let one = client.get(&format!("/runs/{run}/steps?limit=1")).await.done();
    assert_eq!((&one["steps"][0], &one["next"]), (&all["steps"][0], &json!("1")));
    let two = client.get(&format!("/runs/{run}/steps?limit=1&cursor=1")).await.done();
    assert_eq!((&two["steps"][0], &two["next"]), (&all["steps"][1], &Value::Null));
    for cursor in ["x", "-1", "01", "99999999999999999999"] {
        let refused = client.get(&format!("/runs/{run}/steps?cursor={cursor}")).await;
        assert_eq!(refused.refused(400), "bad-request");
    }
    let all = client.get(&format!("/runs/{run}/journal")).await.done();
    let all = all["entries"].as_array().unwrap();
    let (mut paged, mut next) = (Vec::new(), Some("0".to_owned()));
    while let Some(cursor) = next {
        let path = format!("/runs/{run}/journal?limit=2&cursor={cursor}");
        let page = client.get(&path).await.done();
        paged.extend(page["entries"].as_array().unwrap().clone());
        next = page["next"].as_str().map(str::to_owned);
    }
    assert_eq!(&paged, all);
}

#[tokio::test]
async fn without_a_token_loopback_is_open_and_health_is_told_of_each_app() {
    let world = World::published().await;
    let served = Served::on(console(&world, open()), Default::default()).await;
    let health = served.nobody().get("/health").await.done();
    assert_eq!(health["apps"][0]["app"], "shop");
    assert_eq!(served.nobody().get("/health?app=shp").await.refused(404), "not-found");
}
