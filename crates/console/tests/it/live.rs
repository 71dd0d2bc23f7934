//! Live updates.

use serde_json::{Value, json};
use surefoot_operator::Cancel;

use crate::client::Served;
use crate::world::{World, succeeded};

fn whats(data: &Value) -> Vec<String> {
    let steps = data["steps"].as_array().unwrap().iter();
    steps
        .map(|it| format!("{} {}", it["step"].as_str().unwrap(), it["what"].as_str().unwrap()))
        .collect()
}

#[tokio::test]
async fn a_run_is_followed_to_its_end() {
    let world = World::published().await;
    let run = world.emitted().await;
    let served = Served::of(&world).await;
    let mut events = served.viewer().follow(&format!("/runs/{run}/live")).await;
    let (name, first) = events.next().await.unwrap();
    assert_eq!((&*name, &first["run"]["state"]), ("update", &json!("queued")));
    let (mut drive, _) = world.claimed(run).await;
    world.answered(&mut drive, "steps.0", succeeded(json!({}))).await;
    drive.to_call(&world.store).await.unwrap();
    let mut seen = Vec::new();
    while !seen.contains(&"steps.1 calling".to_owned()) {
        let (_, update) = events.next().await.unwrap();
        seen.extend(whats(&update));
    }
    assert_eq!(seen, ["steps.0 completed", "steps.1 calling"]);
    world.answered(&mut drive, "steps.1", crate::world::failed(false)).await;
    let mut last = events.next().await.unwrap();
    while last.0 != "end" {
        last = events.next().await.unwrap();
    }
    assert_eq!(last.1["run"]["state"], "failed");
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn a_stream_goes_on_where_it_was_lost() {
    let world = World::published().await;
    let run = world.failed().await;
    let served = Served::of(&world).await;
    let path = format!("/runs/{run}/live");
    let (_, all) = served.viewer().follow(&path).await.next().await.unwrap();
    assert_eq!(whats(&all), ["steps.0 failed"]);
    let seen = served.viewer().with("Last-Event-ID", &all["next"]);
    let (name, rest) = seen.follow(&path).await.next().await.unwrap();
    assert_eq!((&*name, whats(&rest)), ("end", Vec::new()));
}

#[tokio::test]
async fn a_list_is_sent_again_when_it_changes() {
    let world = World::published().await;
    let run = world.emitted().await;
    let served = Served::of(&world).await;
    let mut events = served.viewer().follow("/runs/live?scope=berlin&limit=10").await;
    let mut other = served.viewer().follow("/runs/live?scope=berlin&limit=10").await;
    for events in [&mut events, &mut other] {
        let (name, page) = events.next().await.unwrap();
        assert_eq!((&*name, &page["runs"][0]["state"]), ("runs", &json!("queued")));
    }
    let cancel = Cancel { run, seen: None, why: "not needed".to_owned() };
    world.operator.cancel(cancel).await.unwrap();
    for events in [&mut events, &mut other] {
        let (_, page) = events.next().await.unwrap();
        assert_eq!(page["runs"][0]["state"], "canceled");
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_followed() {
    let world = World::published().await;
    let served = Served::of(&world).await;
    let client = served.viewer();
    let missing = client.get("/runs/run_00000000000000000000000000000000/live").await;
    assert_eq!(missing.refused(404), "not-found");
    assert_eq!(client.get("/runs/live?scope=berln").await.refused(404), "not-found");
    assert_eq!(client.get("/runs/live?cursor=x").await.refused(400), "bad-request");
    assert_eq!(served.nobody().get("/runs/live").await.refused(401), "unauthorized");
}

#[tokio::test]
async fn a_server_that_ends_ends_its_streams() {
    let world = World::published().await;
    let run = world.emitted().await;
    let mut served = Served::of(&world).await;
    let mut events = served.viewer().follow(&format!("/runs/{run}/live")).await;
    events.next().await.unwrap();
    served.stop();
    assert_eq!(events.next().await, None);
    (&mut served.task).await.unwrap();
}
