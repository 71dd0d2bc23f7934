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
        ("[]", "body"),
        (r#"{"scope": "berlin"}"#, "type"),
        (r#"{"scope": "berlin", "type": "a", "dat": 1}"#, "dat"),
        (r#"{"scope": "berlin", "type": "a", "type": "b"}"#, "/type"),
        (r#"{"scope": "berlin", "type": "a", "data": 99999999999999999999}"#, "/data"),
        (r#"{"scope": "berlin", "type": "a", "data": "\ud800"}"#, "body"),
        (r#"{"scope": "ber\u0000lin", "type": "a"}"#, "scope"),
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
    let large = format!("{{\"reason\": \"{}\"}}", "a".repeat(100_000));
    let any = client.with("If-Match", "*");
    let large = any.send("POST", "/runs/run_00000000000000000000000000000000/cancel", Some(&large));
    assert_eq!(large.await.refused(413), "too-large");
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
