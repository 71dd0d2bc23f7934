//! What is not understood is refused, with problem details for every status.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{OPERATOR, PATIENCE, Served, console, with_tokens};
use crate::world::World;

#[tokio::test]
async fn a_parameter_that_is_not_known_or_not_well_formed_is_refused() {
    let world = World::published().await;
    let served = Served::of(&world).await;
    let client = served.viewer();
    for (path, says) in [
        ("/runs?stat=failed", "stat"),
        ("/runs?state=faild", "state"),
        ("/runs?state=", "state"),
        ("/runs?limit=0", "limit"),
        ("/runs?limit=1001", "limit"),
        ("/runs?limit=ten", "limit"),
        ("/runs?limit=1&limit=2", "limit"),
        ("/runs?cursor=nonsense", "cursor"),
        ("/runs?since=yesterday", "since"),
        ("/runs?parent=evt_00000000000000000000000000000000", "parent"),
        ("/runs?tag=", "tag"),
        ("/runs?tag=a%20b", "tag"),
        ("/runs?tag=a%00b", "tag"),
        (&format!("/runs?tag={}", "t".repeat(201)), "tag"),
        ("/events?type=", "type"),
        ("/events?type=a%00b", "type"),
        (&format!("/events?type={}", "t".repeat(201)), "type"),
        ("/events?scope=a%00b", "scope"),
        ("/runs?cursor=a%00b", "cursor"),
        ("/runs?app=%ff", "UTF-8"),
        ("/runs?app=%2", "hexadecimal"),
        ("/runs?scope=", "scope"),
        ("/runs/run_1", "run_1"),
        ("/runs/evt_00000000000000000000000000000000", "evt_"),
        ("/runs/%ff", "UTF-8"),
        ("/doctor?app=shop", "no query parameters"),
        ("/effects?older_than=old", "older_than"),
        ("/events?status=lost", "dead_lettered"),
        ("/workflows/reorder/versions", "scope"),
        ("/diff?before=x&after=y", "before"),
    ] {
        let refused = client.get(path).await;
        assert_eq!(refused.refused(400), "bad-request", "{path}");
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains(says), "{path}: {detail}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_known_or_cannot_be_kept_is_refused_with_its_place() {
    let world = World::published().await;
    let served = Served::of(&world).await;
    let client = served.operator();
    for (body, says) in [
        ("", "body"),
        ("nonsense", "body"),
        ("[]", "no JSON object"),
        (r#"["shop", "berlin", "a"]"#, "no JSON object"),
        (r#"{"scope": "berlin"}"#, "type"),
        (r#"{"scope": "berlin", "type": "a", "dat": 1}"#, "dat"),
        (r#"{"scope": "berlin", "type": "a", "type": "b"}"#, "/type"),
        (r#"{"scope": "berlin", "type": "a", "data": 99999999999999999999}"#, "/data"),
        (r#"{"scope": "berlin", "type": "a", "data": "\ud800"}"#, "body"),
        (r#"{"scope": "ber\u0000lin", "type": "a"}"#, "scope"),
        (r#"{"scope": "berlin", "type": "a\u0000"}"#, "type"),
        (r#"{"scope": "berlin", "type": "a", "key": "\u0000"}"#, "key"),
        (r#"{"scope": "berlin", "type": "a", "tags": ["a\u0000"]}"#, "tag"),
        (r#"{"scope": "berlin", "type": "a", "tags": [""]}"#, "tag"),
        (r#"{"scope": "berlin", "type": "a", "deferred": "no"}"#, "deferred"),
    ] {
        let refused = client.send("POST", "/events", Some(body)).await;
        assert_eq!(refused.refused(400), "bad-request", "{body}");
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains(says), "{body}: {detail}");
    }
    let any = client.with("If-Match", "*");
    let blank =
        any.post("/runs/run_00000000000000000000000000000000/cancel", json!({ "reason": "  " }));
    assert_eq!(blank.await.refused(400), "bad-request");
}

#[tokio::test]
async fn nul_is_refused_by_the_name_of_its_field_and_kept_in_payloads() {
    let world = World::published().await;
    let served = Served::of(&world).await;
    let client = served.operator();
    for (kind, key, says) in [("a\0", "b", "kind"), ("a", "\0", "key")] {
        let signal = json!({ "scope": "berlin", "kind": kind, "key": key });
        let refused = client.post("/signals", signal).await;
        assert_eq!(refused.refused(400), "bad-request");
        assert!(refused.body["detail"].as_str().unwrap().contains(says), "{}", refused.body);
    }
    let off = json!({ "scope": "berlin", "activation": "a\0", "reason": "enough" });
    let refused = client.post("/workflows/reorder/disable", off).await;
    assert_eq!(refused.refused(400), "bad-request");
    assert!(refused.body["detail"].as_str().unwrap().contains("activation"), "{}", refused.body);
    let kept = json!({ "scope": "berlin", "type": "a", "data": { "text": "a\0b" } });
    client.post("/events", kept).await.done();
}

/// A list of the members in their order is taken for an object by what reads it.
#[tokio::test]
async fn a_list_is_taken_for_no_object() {
    let world = World::published().await;
    let run = world.unknown().await;
    let served = Served::of(&world).await;
    let client = served.operator().if_match(&json!(world.revision(run).await));
    let resolve = format!("/runs/{run}/steps/steps.1/resolve");
    for body in [
        json!(["why", { "not_performed": {} }]),
        json!({ "reason": "why", "verdict": { "not_performed": [] } }),
        json!({ "reason": "why", "verdict": { "succeeded": [{ "id": "r" }] } }),
        json!({ "reason": "why", "verdict": { "failed": [null, "no"] } }),
        json!({ "reason": "why", "verdict": [] }),
    ] {
        let refused = client.post(&resolve, body.clone()).await;
        assert_eq!(refused.refused(400), "bad-request", "{body}");
    }
    let cancel = format!("/runs/{run}/cancel");
    assert_eq!(client.post(&cancel, json!(["why"])).await.refused(400), "bad-request");
}

#[tokio::test]
async fn a_repeated_key_says_that_its_tags_are_left_out() {
    let world = World::published().await;
    let served = Served::of(&world).await;
    let client = served.operator();
    let event = |tags: &[&str]| json!({ "scope": "berlin", "type": "a", "key": "7", "tags": tags });
    assert_eq!(client.post("/events", event(&["one"])).await.done()["same_tags"], true);
    assert_eq!(client.post("/events", event(&["one"])).await.done()["same_tags"], true);
    let other = client.post("/events", event(&["one", "two"])).await.done();
    assert_eq!((&other["new"], &other["same_tags"]), (&json!(false), &json!(false)));
}

#[tokio::test]
async fn pages_too_have_problem_details_where_there_is_no_page() {
    let world = World::published().await;
    let served = Served::of(&world).await;
    for path in ["/api/v2", "/api/v2/runs", "/api", "/api/v1x"] {
        for client in [served.nobody(), served.operator()] {
            let refused = client.anywhere("GET", path, None).await;
            assert_eq!(refused.refused(404), "not-found", "{path}");
        }
    }
    for (method, path) in
        [("POST", "/runs"), ("DELETE", "/"), ("PUT", "/metrics"), ("GET", "/sign-out")]
    {
        let refused = served.operator().anywhere(method, path, None).await;
        assert_eq!(refused.refused(405), "method-not-allowed", "{method} {path}");
        assert!(refused.header("allow").is_some(), "{method} {path}");
    }
}

#[tokio::test]
async fn a_head_that_is_too_large_has_problem_details() {
    let world = World::published().await;
    let served = Served::of(&world).await;
    let many = (0..70).fold(served.viewer(), |client, it| client.with(&format!("X-{it}"), it));
    assert_eq!(many.get("/runs").await.refused(431), "head-too-large");
    let long = served.viewer().with("X-Long", "x".repeat(40_000));
    assert_eq!(long.get("/runs").await.refused(431), "head-too-large");
    let path = format!("/runs?tag={}", "t".repeat(40_000));
    assert_eq!(served.viewer().get(&path).await.refused(431), "head-too-large");
}

#[tokio::test]
async fn a_form_that_is_no_text_is_refused() {
    let world = World::published().await;
    let run = world.failed().await;
    let served = Served::of(&world).await;
    let (before, path) = (world.audit().await.len(), format!("/runs/{run}/act"));
    let form = |reason: &str| format!("deed=retry&revision={{}}&reason={reason}");
    let revision = world.revision(run).await.to_string();
    for reason in ["%ff", "a%"] {
        let body = form(reason).replace("{}", &revision);
        let refused = served.operator().anywhere("POST", &path, Some(&body)).await;
        assert_eq!(refused.status, 400, "{}", refused.body);
    }
    assert_eq!(world.audit().await.len(), before);
    let body = form("a+reason").replace("{}", &revision);
    assert_eq!(served.operator().anywhere("POST", &path, Some(&body)).await.status, 303);
}

/// An old link still leads to its page, and nobody takes a list for a filtered one.
#[tokio::test]
async fn a_page_says_what_of_its_address_it_does_not_know() {
    let world = World::published().await;
    world.emitted().await;
    let served = Served::of(&world).await;
    for (path, left_out) in [
        ("/runs?stat=failed", "stat=failed"),
        ("/runs?tag=a%20b", "tag=a b"),
        ("/runs?scope=berlin&scope=paris", "scope=paris"),
        ("/events?kind=low", "kind=low"),
        ("/?since=1h", "since=1h"),
        ("/audit?actor=ann", "actor=ann"),
        ("/workflows?x=1", "x=1"),
        ("/effects?x=1", "x=1"),
        ("/signals?x=1", "x=1"),
        ("/schedules?x=1", "x=1"),
        ("/runs?scope=%ff", "UTF-8"),
    ] {
        let page = served.viewer().anywhere("GET", path, None).await;
        assert_eq!(page.status, 200, "{path}");
        let text = page.body.as_str().unwrap();
        assert!(text.contains("is not known here and was left out"), "{path}");
        assert!(text.contains(left_out), "{path}: {text}");
    }
    let page =
        served.viewer().anywhere("GET", "/runs?state=failed&state=queued&done=x", None).await;
    assert!(!page.body.as_str().unwrap().contains("was left out"));
}

#[tokio::test]
async fn a_misspelt_place_is_no_empty_list() {
    let world = World::published().await;
    world.emitted().await;
    let served = Served::of(&world).await;
    for list in ["runs", "events", "signals", "effects", "workflows", "audit", "timeline"] {
        for place in ["scope=nope", "app=nope"] {
            let path = format!("/{list}?{place}");
            let refused = served.viewer().get(&path).await;
            assert_eq!(refused.refused(404), "not-found", "{path}");
        }
    }
    let event = json!({ "app": "nope", "scope": "berlin", "type": "inventory.stockLow" });
    let refused = served.operator().post("/events", event).await;
    assert_eq!(refused.refused(404), "not-found");
    assert!(refused.body["detail"].as_str().unwrap().contains("it holds shop"), "{}", refused.body);
    // Pages say so too, and show what they fell back to.
    for page in ["/runs", "/events", "/signals", "/effects", "/workflows", "/audit", "/schedules"] {
        let path = format!("{page}?scope=nope");
        let text = served.viewer().anywhere("GET", &path, None).await.body.to_string();
        assert!(text.contains("nothing is known of it"), "{path}: {text}");
        let path = format!("{page}?app=nope");
        let text = served.viewer().anywhere("GET", &path, None).await.body.to_string();
        assert!(text.contains("left out: app=nope"), "{path}: {text}");
    }
}

#[tokio::test]
async fn a_path_that_is_no_text_is_answered_like_any_that_leads_nowhere() {
    let world = World::published().await;
    let served = Served::of(&world).await;
    for (method, path) in [
        ("GET", "/runs/%ff"),
        ("GET", "/runs/%ff/raw/inputs"),
        ("POST", "/runs/%ff/act"),
        ("POST", "/events/%ff/redrive"),
        ("GET", "/versions/%ff"),
    ] {
        let answer = served.operator().anywhere(method, path, Some("")).await;
        assert_eq!(answer.status, 303, "{path}: {}", answer.body);
        assert_eq!(answer.header("location"), Some("/?unknown=page"), "{path}");
        // A stranger hears no more of it than of any other page.
        let answer = served.nobody().anywhere(method, path, Some("")).await;
        let next = answer.header("location").unwrap_or_default();
        assert!(next.starts_with("/sign-in"), "{path}: {next}");
    }
    assert_eq!(served.viewer().anywhere("GET", "/assets/%ff", None).await.status, 404);
    assert_eq!(served.viewer().get("/runs/%ff").await.refused(400), "bad-request");
}

#[tokio::test]
async fn each_status_has_problem_details() {
    let world = World::published().await;
    let served = Served::of(&world).await;
    let client = served.operator();
    assert_eq!(client.get("/nothing").await.refused(404), "not-found");
    assert_eq!(client.get("").await.refused(404), "not-found");
    let missing = client.get("/runs/run_00000000000000000000000000000000").await;
    assert_eq!(missing.refused(404), "not-found");
    for (method, path) in [
        ("DELETE", "/runs"),
        ("POST", "/health"),
        ("PUT", "/runs/run_1"),
        ("PATCH", "/openapi.json"),
    ] {
        let refused = client.send(method, path, Some("{}")).await;
        assert_eq!(refused.refused(405), "method-not-allowed", "{method} {path}");
        assert!(refused.header("allow").unwrap().contains("GET"), "{method} {path}");
    }
    let refused = client.get("/runs/run_00000000000000000000000000000000/cancel").await;
    assert_eq!(
        (refused.refused(405), refused.header("allow")),
        ("method-not-allowed", Some("POST"))
    );
    let text = client.with("Content-Type", "text/plain").post("/events", json!({})).await;
    assert_eq!(text.refused(415), "unsupported-media-type");
    for (name, value) in [
        ("Content-Type", "application/json; charset=latin1"),
        ("Content-Type", "application/json;charset=\"utf-16\""),
        ("Content-Encoding", "gzip"),
        ("Content-Encoding", "identity, br"),
    ] {
        let refused = client.with(name, value).post("/events", json!({})).await;
        assert_eq!(refused.refused(415), "unsupported-media-type", "{name}: {value}");
    }
    let plain = client.with("Content-Type", "Application/JSON; charset=\"UTF-8\"");
    let plain = plain.with("Content-Encoding", "identity").post("/events", json!({})).await;
    assert_eq!(plain.refused(400), "bad-request");
    let large = format!("{{\"reason\": \"{}\"}}", "a".repeat(100_000));
    let any = client.with("If-Match", "*");
    let large = any.send("POST", "/runs/run_00000000000000000000000000000000/cancel", Some(&large));
    assert_eq!(large.await.refused(413), "too-large");
    let form = served.nobody().with("Content-Type", "application/x-www-form-urlencoded");
    let large = format!("token={}", "a".repeat(100_000));
    assert_eq!(form.anywhere("POST", "/sign-in", Some(&large)).await.status, 413);
    // Whoever claims to send much is not waited for.
    let claims = client.with("Content-Length", 1_u64 << 40);
    let claimed = claims.send("POST", "/events", Some("{"));
    assert_eq!(claimed.await.refused(413), "too-large");
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let world = World::published().await;
    let console = console(&world, with_tokens()).answer_within(Duration::from_millis(200));
    let served = Served::on(console, Default::default()).await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let head = format!(
        "POST /api/v1/events HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {OPERATOR}\r\nContent-Type: application/json\r\n\
         Content-Length: 1000\r\nConnection: close\r\n\r\n{{\"scope\":"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut text = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut text)).await.unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.starts_with("HTTP/1.1 408 "), "{text}");
    assert!(text.contains("urn:surefoot:problem:timeout"), "{text}");
}
