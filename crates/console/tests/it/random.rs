//! Requests that nobody would write: never a failure of the server, never a status that is not described.

use proptest::prelude::*;
use proptest::strategy::Union;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;
use surefoot_console::Console;
use tokio::runtime::Builder;

use crate::client::{Client, Served};
use crate::world::World;

/// Words that mean something somewhere, and some that mean nothing.
fn words(known: Vec<String>) -> impl Strategy<Value = String> + Clone {
    prop_oneof![
        4 => proptest::sample::select(known),
        2 => "[ -~]{0,12}",
        1 => "\\PC{0,6}",
        1 => proptest::sample::select(vec!["%00", "%", "*", "../..", "null", "-1", "99999999999999999999", "'", "\u{202e}"])
            .prop_map(str::to_owned),
    ]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("\\PC{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Percent-encoded, but for what a request line cannot hold anyway.
fn encoded(text: &str) -> String {
    let each = text.bytes().map(|byte| {
        let plain = byte.is_ascii_alphanumeric() || b"-._~%*".contains(&byte);
        if plain { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    });
    each.collect()
}

#[derive(Debug, Clone)]
struct Request {
    method: String,
    path: String,
    tag: Option<String>,
    body: Option<Value>,
}

/// A request to an operation, right in parts.
fn to(path: &str, method: &str, operation: &Value, known: &[String]) -> BoxedStrategy<Request> {
    let word = words(known.to_vec());
    let holes = path.matches('{').count();
    let names = |place: &str| {
        let parameters = operation["parameters"].as_array().unwrap().iter();
        let named =
            parameters.filter(|it| it["in"] == place).map(|it| it["name"].as_str().unwrap());
        named.map(str::to_owned).chain(["odd".to_owned()]).collect::<Vec<_>>()
    };
    let fields: Vec<String> =
        ["reason", "scope", "type", "data", "key", "kind", "verdict", "version", "workflow"]
            .map(str::to_owned)
            .to_vec();
    let text = word.clone().prop_map(Value::from);
    let value = prop_oneof![3 => text, 2 => json()];
    let body = proptest::collection::btree_map(proptest::sample::select(fields), value, 0..6)
        .prop_map(|map| Value::Object(map.into_iter().collect()));
    let body = prop_oneof![4 => body.prop_map(Some), 1 => json().prop_map(Some), 1 => Just(None)];
    let query =
        proptest::collection::vec((proptest::sample::select(names("query")), word.clone()), 0..3);
    let tag = proptest::option::of(prop_oneof![
        Just("*".to_owned()),
        (0_u64..6).prop_map(|revision| format!("\"{revision}\"")),
        "[ -~]{0,8}",
    ]);
    let (path, method) = (path.trim_start_matches("/api/v1").to_owned(), method.to_uppercase());
    let filled = proptest::collection::vec(word, holes..=holes);
    (filled, query, tag, body)
        .prop_map(move |(filled, query, tag, body)| {
            let mut filled = filled.iter();
            let parts = path.split('/').map(|part| {
                if part.starts_with('{') {
                    encoded(filled.next().unwrap())
                } else {
                    part.to_owned()
                }
            });
            let mut path = parts.collect::<Vec<_>>().join("/");
            for (nth, (name, value)) in query.iter().enumerate() {
                path += &format!("{}{name}={}", if nth == 0 { "?" } else { "&" }, encoded(value));
            }
            let body = body.filter(|_| method == "POST");
            Request { method: method.clone(), path, tag, body }
        })
        .boxed()
}

fn requests(known: &[String]) -> impl Strategy<Value = Request> + use<> {
    let document = Console::openapi();
    let mut each = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        // Streams do not end.
        for (method, it) in methods.as_object().unwrap() {
            if !path.ends_with("/live") {
                each.push(to(path, method, it, known));
            }
        }
    }
    Union::new(each)
}

async fn send(client: &Client, request: &Request) -> u16 {
    let client = match &request.tag {
        Some(tag) => client.with("If-Match", tag),
        None => client.clone(),
    };
    let body = request.body.as_ref().map(ToString::to_string);
    client.send(&request.method, &request.path, body.as_deref()).await.status
}

#[test]
fn no_request_makes_the_server_fail_or_answer_as_is_not_described() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (served, known) = runtime.block_on(async {
        let world = World::published().await;
        let run = world.unknown().await;
        let served = Served::of(&world).await;
        let versions = served.viewer().get("/workflows/reorder/versions?scope=berlin").await.done();
        let version = versions["versions"][0]["id"].as_str().unwrap().to_owned();
        let known = [
            "shop",
            "berlin",
            "reorder",
            "steps.1",
            "inventory.stockLow",
            "failed",
            "1h",
            "5",
            "approval",
        ];
        let mut known: Vec<String> = known.iter().map(|it| (*it).to_owned()).collect();
        known.extend([run.to_string(), version, run.to_string().replace("run_", "evt_")]);
        (served, known)
    });
    let client = served.operator();
    let config = Config { cases: cases(), failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&requests(&known), |request| {
        let status = runtime.block_on(send(&client, &request));
        prop_assert!(status < 500, "{status}");
        Ok(())
    });
    assert!(outcome.is_ok(), "{outcome:?}");
}

fn cases() -> u32 {
    let asked = std::env::var("SUREFOOT_CASES").ok().and_then(|it| it.parse().ok());
    asked.map_or(500, |cases: u32| (cases / 100).clamp(500, 20_000))
}
