//! Who is let in, and what is refused before anybody is asked.

use axum::{Extension, Router};
use serde_json::json;
use surefoot_console::{Access, Console, Identity, Role, ServeError, Server};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::client::{OPERATOR, Served, VIEWER, console, open, with_tokens};
use crate::world::World;

/// Every operation that acts, its path filled in.
fn acting(run: &str) -> Vec<String> {
    let document = Console::openapi();
    let paths = document["paths"].as_object().unwrap().iter();
    let acting = paths.filter(|(_, methods)| methods.get("post").is_some());
    let filled = acting.map(|(path, _)| {
        path.trim_start_matches("/api/v1")
            .replace("{run}", run)
            .replace("{step}", "steps.1")
            .replace("{event}", &run.replace("run_", "evt_"))
            .replace("{workflow}", "reorder")
    });
    filled.collect()
}

#[tokio::test]
async fn without_a_token_that_is_known_nothing_is_told() {
    let world = World::published().await;
    let run = world.failed().await;
    let served = Served::of(&world).await;
    let shown = format!("/runs/{run}");
    let refused = served.nobody().get(&shown).await;
    assert_eq!(refused.refused(401), "unauthorized");
    assert_eq!(refused.header("www-authenticate"), Some("Bearer realm=\"surefoot\""));
    for wrong in [
        "Bearer",
        "Bearer x",
        "Basic YTpi",
        &format!("Bearer {VIEWER}x"),
        &format!("Token {VIEWER}"),
    ] {
        let refused = served.nobody().with("Authorization", wrong).get(&shown).await;
        assert_eq!(refused.refused(401), "unauthorized", "{wrong}");
    }
    for path in acting(&run.to_string()) {
        let refused = served.nobody().post(&path, json!({ "reason": "why" })).await;
        assert_eq!(refused.refused(401), "unauthorized", "{path}");
    }
    served.viewer().get(&shown).await.done();
}

#[tokio::test]
async fn a_viewer_changes_nothing() {
    let world = World::published().await;
    let run = world.unknown().await;
    let (before, audit) = (world.row(run).await, world.audit().await);
    let served = Served::of(&world).await;
    let client = served.viewer().with("If-Match", "*");
    for path in acting(&run.to_string()) {
        let refused = client.post(&path, json!({ "reason": "why" })).await;
        assert_eq!(refused.refused(403), "forbidden", "{path}");
    }
    assert_eq!(world.row(run).await, before);
    assert_eq!(world.audit().await, audit);
}

#[tokio::test]
async fn a_page_of_another_site_changes_nothing() {
    let world = World::published().await;
    let run = world.unknown().await;
    let before = world.row(run).await;
    let served = Served::on(console(&world, open()), Default::default()).await;
    let client = served.nobody().with("If-Match", "*");
    for path in acting(&run.to_string()) {
        for (name, value) in [
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Site", "same-site"),
            ("Origin", "https://evil.example"),
            ("Origin", "null"),
        ] {
            let refused = client.with(name, value).post(&path, json!({ "reason": "why" })).await;
            assert_eq!(refused.refused(403), "forbidden", "{path} {name}: {value}");
        }
        // What a form of another site can send is no JSON.
        let form = client.with("Content-Type", "text/plain");
        let refused = form.post(&path, json!({ "reason": "why" })).await;
        assert!([400, 415].contains(&refused.status), "{path}: {}", refused.body);
    }
    assert_eq!(world.row(run).await, before);
}

#[tokio::test]
async fn without_a_token_only_loopback_names_are_answered() {
    let world = World::published().await;
    let served = Served::on(console(&world, open()), Default::default()).await;
    for name in ["evil.example", "evil.example:80", "127.0.0.1.evil.example"] {
        let refused = served.nobody().with("Host", name).get("/runs").await;
        assert_eq!(refused.refused(421), "misdirected", "{name}");
    }
    served.nobody().with("Host", "localhost:7878").get("/runs").await.done();
}

#[tokio::test]
async fn what_says_where_a_request_comes_from_is_said_once() {
    let world = World::published().await;
    let served = Served::of(&world).await;
    for (name, value) in
        [("Host", "localhost"), ("Origin", "http://localhost"), ("Sec-Fetch-Site", "same-origin")]
    {
        let once = served.operator().with(name, value);
        assert_ne!(once.get("/runs").await.status, 400, "{name}");
        let refused = once.with(name, "evil.example").get("/runs").await;
        assert_eq!(refused.refused(400), "bad-request", "{name}");
        assert!(refused.body["detail"].as_str().unwrap().contains(name), "{}", refused.body);
    }
}

#[tokio::test]
async fn a_cookie_looks_and_does_not_act_by_the_api() {
    let world = World::published().await;
    let run = world.failed().await;
    let served = Served::of(&world).await;
    let client = served.nobody().with("Cookie", format!("surefoot_token={OPERATOR}"));
    client.get("/runs").await.done();
    let act = client.if_match(&json!(world.revision(run).await));
    let refused = act.post(&format!("/runs/{run}/retry"), json!({ "reason": "why" })).await;
    assert_eq!(refused.refused(403), "forbidden");
}

#[tokio::test]
async fn nothing_listens_beyond_loopback_without_a_token() {
    let world = World::new();
    for beyond in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let address = beyond.parse().unwrap();
        let refused = Server::bind(console(&world, open()), address).await.err().unwrap();
        assert!(matches!(refused, ServeError::Unguarded { .. }), "{refused}");
        let said = refused.to_string();
        assert!(said.contains("127.0.0.1") && said.contains("tokens"), "{said}");
    }
    let _ =
        Server::bind(console(&world, with_tokens()), "0.0.0.0:0".parse().unwrap()).await.unwrap();
}

#[tokio::test]
async fn an_application_that_does_not_say_who_asks_lets_nobody_in() {
    let world = World::published().await;
    let served = Served::on(console(&world, Access::Application), Default::default()).await;
    assert_eq!(served.operator().get("/runs").await.refused(401), "unauthorized");
}

#[tokio::test]
async fn an_application_mounts_it_under_a_path_and_an_authentication_of_its_own() {
    let world = World::published().await;
    let router = console(&world, Access::Application).router();
    let eve = Identity::new("eve", Role::Viewer).unwrap();
    let app = Router::new().nest("/ops", router).layer(Extension(eve));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async { axum::serve(listener, app).await });
    for (line, status) in [
        ("GET /ops/api/v1/runs", "HTTP/1.1 200 "),
        ("POST /ops/api/v1/runs/retry", "HTTP/1.1 403 "),
        ("GET /ops/api/v1/nothing", "HTTP/1.1 404 "),
        ("GET /api/v1/runs", "HTTP/1.1 404 "),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("{line} HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert!(text.starts_with(status), "{line}: {text}");
    }
    serving.abort();
}

#[tokio::test]
async fn behind_tls_the_cookie_is_for_tls_only() {
    let world = World::published().await;
    let served = Served::of(&world).await;
    for (origin, is_secure) in [("https://shop.example", true), ("http://shop.example", false)] {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        let body = format!("token={VIEWER}");
        let request = format!(
            "POST /sign-in HTTP/1.1\r\nHost: shop.example\r\nOrigin: {origin}\r\nSec-Fetch-Site: same-origin\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let cookie = text.lines().find(|line| line.starts_with("set-cookie: ")).unwrap_or(&text);
        assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
        assert_eq!(cookie.contains("; Secure"), is_secure, "{cookie}");
    }
}
