//! Verbs: each on the revision that was looked at, each with a reason, each in the audit with who asked.

use serde_json::{Value, json};

use crate::client::Served;
use crate::world::World;

fn why() -> Value {
    json!({ "reason": "the bank says so" })
}

#[tokio::test]
async fn a_verb_needs_the_revision_that_was_looked_at() {
    let world = World::published().await;
    let run = world.failed().await;
    let served = Served::of(&world).await;
    let client = served.operator();
    let retry = format!("/runs/{run}/retry");
    assert_eq!(client.post(&retry, why()).await.refused(428), "revision-needed");
    for odd in ["7", "W/\"7\"", "\"7\", \"8\"", "\"x\"", "*"] {
        let refused = client.with("If-Match", odd).post(&retry, why()).await;
        assert_eq!(refused.refused(400), "bad-request", "{odd}");
    }
    let seen = world.revision(run).await;
    let stale = client.if_match(&json!(seen - 1)).post(&retry, why()).await;
    assert_eq!(stale.refused(412), "changed-since");
    assert_eq!((&stale.body["revision"], &stale.body["state"]), (&json!(seen), &json!("failed")));
    let before = world.audit().await.len();
    let done = client.if_match(&json!(seen)).post(&retry, why()).await;
    let tag = format!("\"{}\"", world.revision(run).await);
    assert_eq!(done.header("etag"), Some(&*tag));
    assert_eq!(done.done()["run"]["state"], "queued");
    // Twice is once.
    let again = client.if_match(&json!(seen)).post(&retry, why()).await;
    assert_eq!(again.refused(412), "changed-since");
    let audit = world.audit().await;
    assert_eq!(audit.len(), before + 1);
    let (verb, actor, reason) = &audit[0];
    assert_eq!([verb, actor, reason], ["retry", "bob", "the bank says so"]);
}

#[tokio::test]
async fn a_run_is_canceled_wherever_it_stands_if_that_is_what_was_asked() {
    let world = World::published().await;
    let run = world.emitted().await;
    let served = Served::of(&world).await;
    let client = served.operator().with("If-Match", "*");
    let done = client.post(&format!("/runs/{run}/cancel"), why()).await.done();
    assert_eq!((&done["outcome"], &done["run"]["state"]), (&json!("canceled"), &json!("canceled")));
    let done = client.post(&format!("/runs/{run}/cancel"), why()).await.done();
    assert_eq!(done["outcome"], "already_ended");
}

#[tokio::test]
async fn an_effect_is_settled_by_a_verdict_that_fits() {
    let world = World::published().await;
    let run = world.unknown().await;
    let served = Served::of(&world).await;
    let client = served.operator().if_match(&json!(world.revision(run).await));
    let resolve = format!("/runs/{run}/steps/steps.1/resolve");
    let with = |verdict: Value| json!({ "reason": "seen at the bank", "verdict": verdict });
    let unfit = with(json!({ "succeeded": { "output": { "no": 1 } } }));
    let refused = client.post(&resolve, unfit).await;
    assert_eq!(refused.refused(422), "unprocessable");
    assert_eq!(refused.body["code"], "OUTPUT_INVALID");
    let refused = client
        .post(&resolve, with(json!({ "failed": { "code": "no code", "message": "" } })))
        .await;
    assert_eq!(refused.refused(400), "bad-request");
    let elsewhere = format!("/runs/{run}/steps/steps.0/resolve");
    let refused = client.post(&elsewhere, with(json!({ "not_performed": {} }))).await;
    assert_eq!(refused.refused(409), "refused");
    let refused = client.post(&format!("/runs/{run}/retry"), why()).await;
    assert_eq!(refused.refused(409), "refused");
    let fits = with(json!({ "succeeded": { "output": { "id": "receipt 7" } } }));
    let done = client.post(&resolve, fits).await.done();
    assert_eq!(done["run"]["state"], "queued");
    let audit = served.viewer().get("/audit").await.done();
    assert_eq!(audit["audit"][0]["verdict"], "succeeded");
    assert_eq!(audit["audit"][0]["actor"], "bob");
}

#[tokio::test]
async fn a_run_is_given_up_with_its_effect_unexplained_only_if_that_is_accepted() {
    let world = World::published().await;
    let run = world.unknown().await;
    let served = Served::of(&world).await;
    let client = served.operator().if_match(&json!(world.revision(run).await));
    let abandon = format!("/runs/{run}/abandon");
    assert_eq!(client.post(&abandon, why()).await.refused(409), "refused");
    let accepted = json!({ "reason": "the bank is gone", "accept_unknown": true });
    let done = client.post(&abandon, accepted).await.done();
    assert_eq!(done["run"]["error"]["code"], "ABANDONED");
    let effects = served.viewer().get("/effects").await.done();
    assert_eq!(effects["effects"][0]["state"], "abandoned_unknown");
}

#[tokio::test]
async fn an_event_is_emitted_once_and_says_why_it_starts_nothing() {
    let world = World::published().await;
    let served = Served::of(&world).await;
    let client = served.operator();
    let event = json!({
        "scope": "berlin", "type": "inventory.stockLow", "data": { "item": "bolt", "n": 9007199254740993_i64 },
        "key": "bolt:7",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    });
    let first = client.post("/events", event.clone()).await.done();
    assert_eq!((&first["new"], &first["matched"]), (&json!(true), &json!(1)));
    let again = client.post("/events", event).await.done();
    assert_eq!((&again["new"], &again["runs"]), (&json!(false), &first["runs"]));
    let run = first["runs"][0].as_str().unwrap();
    let shown = served.viewer().get(&format!("/runs/{run}")).await.done();
    assert_eq!(shown["event"]["payload"]["data"]["n"], 9007199254740993_i64);
    let unheard = json!({ "scope": "berlin", "type": "inventory.stockLo" });
    let unheard = client.post("/events", unheard).await.done();
    assert!(unheard["why_nothing"].as_str().unwrap().contains("inventory.stockLow"));
    let odd = json!({ "scope": "berlin", "type": "a", "tracestate": "a=b" });
    assert_eq!(client.post("/events", odd).await.refused(400), "bad-request");
    let long = json!({ "scope": "berlin", "type": "a", "key": "k".repeat(501) });
    assert_eq!(client.post("/events", long).await.refused(400), "bad-request");
}

/// Covers field fault 99.
#[tokio::test]
async fn numbers_come_back_as_they_were_sent() {
    let world = World::published().await;
    let served = Served::of(&world).await;
    let client = served.operator();
    let numbers = "[3544790567247868102,-9223372036854775808,18446744073709551615,0.1,0.30000000000000004,1.0,1,-0.0]";
    let event = format!(
        r#"{{"scope": "berlin", "type": "inventory.stockLow", "data": {{"item": "bolt", "n": {numbers}}}}}"#
    );
    let emitted = client.send("POST", "/events", Some(&event)).await.done();
    let run = emitted["runs"][0].as_str().unwrap();
    let shown = served.viewer().get(&format!("/runs/{run}")).await.done();
    assert_eq!(shown["event"]["payload"]["data"]["n"].to_string(), numbers);
    let infinite = event.replace("0.1,", "1e400,");
    assert_eq!(client.send("POST", "/events", Some(&infinite)).await.refused(400), "bad-request");
}

#[tokio::test]
async fn what_is_switched_off_stays_so_and_another_live_version_is_a_conflict() {
    let world = World::published().await;
    let served = Served::of(&world).await;
    let client = served.operator();
    let off = json!({ "scope": "berlin", "activation": "stockLow", "reason": "inventory" });
    let done = client.post("/workflows/reorder/disable", off).await.done();
    assert_eq!(done["changed"], json!(["stockLow"]));
    assert!(world.emit("inventory.stockLow").await.is_empty());
    let other = json!({ "scope": "berlin", "version": 1, "seen": 7, "reason": "back" });
    let refused = client.post("/workflows/reorder/activate", other).await;
    assert_eq!(refused.refused(412), "changed-since");
    let missing = json!({ "scope": "berlin", "version": 9, "reason": "back" });
    let refused = client.post("/workflows/reorder/activate", missing).await;
    assert_eq!(refused.refused(404), "not-found");
}

#[tokio::test]
async fn each_failed_run_of_a_page_has_a_verdict() {
    let world = World::published().await;
    let run = world.failed().await;
    let served = Served::of(&world).await;
    let client = served.operator();
    let none = json!({ "reason": "mended", "code": "OTHER" });
    assert_eq!(client.post("/runs/retry", none).await.done()["verdicts"], json!([]));
    let all =
        json!({ "reason": "mended", "scope": "berlin", "workflow": "reorder", "since": "1h" });
    let verdicts = client.post("/runs/retry", all).await.done();
    let one = json!({ "run": run, "state": "queued", "refused": null });
    assert_eq!(verdicts["verdicts"], json!([one]));
}

#[tokio::test]
async fn runs_are_found_by_the_tags_of_their_event() {
    let world = World::published().await;
    let served = Served::of(&world).await;
    let client = served.operator();
    let event = |tags: Value| {
        json!({
            "scope": "berlin", "type": "inventory.stockLow", "data": { "item": "bolt" }, "tags": tags,
        })
    };
    let tagged = client.post("/events", event(json!(["urgent", "customer:42"]))).await.done();
    client.post("/events", event(json!([]))).await.done();
    let found = client.get("/runs?tag=customer%3A42").await.done();
    assert_eq!(found["runs"].as_array().unwrap().len(), 1);
    assert_eq!(found["runs"][0]["id"], tagged["runs"][0]);
    assert_eq!(client.get("/runs?tag=customer").await.done()["runs"], json!([]));
    let run = tagged["runs"][0].as_str().unwrap();
    let shown = client.get(&format!("/runs/{run}")).await.done();
    assert_eq!(shown["event"]["tags"], json!(["customer:42", "urgent"]));
    let odd = client.post("/events", event(json!(["two words"]))).await;
    assert_eq!(odd.status, 400);
}

/// Programs that are traced send the header by themselves; what the body names goes before it.
#[tokio::test]
async fn an_event_goes_on_in_the_trace_of_its_request() {
    let world = World::published().await;
    let served = Served::of(&world).await;
    let of = |digit: &str| format!("00-{}-00f067aa0ba902b7-01", digit.repeat(32));
    let start = |named: Option<String>| {
        let mut event = json!({
            "scope": "berlin", "type": "surefoot.start", "workflow": "reorder", "data": { "item": "bolt" },
        });
        if let Some(named) = named {
            event["traceparent"] = json!(named);
        }
        event
    };
    let trace_of = async |client: &crate::client::Client, named: Option<String>| {
        let emitted = client.post("/events", start(named)).await.done();
        let run = emitted["runs"][0].as_str().unwrap().to_owned();
        client.get(&format!("/runs/{run}")).await.done()["trace"].to_string()
    };
    let bare = served.operator();
    let traced = bare.with("traceparent", of("a"));
    assert!(trace_of(&traced, None).await.contains(&of("a")));
    assert!(trace_of(&traced, Some(of("b"))).await.contains(&of("b")));
    assert_eq!(trace_of(&bare, None).await, "null");
    assert_eq!(trace_of(&bare.with("traceparent", "nonsense"), None).await, "null");
}
