//! The description of the API, against itself and against what is routed.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use surefoot_console::Console;

use crate::client::{Client, Served, described};
use crate::world::World;

/// Every value behind a key, however deep.
fn all<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                if name == key {
                    found.push(value);
                }
                all(value, key, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| all(item, key, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let each = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().iter();
        methods.map(move |(method, it)| (path.clone(), method.to_uppercase(), it))
    });
    each.collect()
}

#[test]
fn every_reference_leads_somewhere_and_every_shape_is_a_schema() {
    let document = Console::openapi();
    let mut references = Vec::new();
    all(&document, "$ref", &mut references);
    assert!(references.len() > 100, "{}", references.len());
    for reference in references {
        let pointer = reference.as_str().unwrap().strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        assert!(schema["description"].is_string(), "{name} is not described");
        let whole = json!({ "allOf": [schema], "components": document["components"] });
        assert!(jsonschema::validator_for(&whole).is_ok(), "{name}");
    }
}

#[test]
fn every_operation_has_a_name_its_parameters_and_every_status_of_its_kind() {
    let document = Console::openapi();
    let mut ids = BTreeSet::new();
    for (path, method, it) in operations(&document) {
        let id = it["operationId"].as_str().unwrap();
        assert!(ids.insert(id.to_owned()), "{id} twice");
        assert!(it["summary"].as_str().is_some_and(|text| !text.is_empty()), "{id}");
        let parameters = it["parameters"].as_array().unwrap();
        let mut seen = BTreeSet::new();
        for parameter in parameters {
            let (name, place) = (&parameter["name"], &parameter["in"]);
            assert!(seen.insert(format!("{place} {name}")), "{id}: {name} twice");
            assert!(
                parameter["description"].as_str().is_some_and(|it| !it.is_empty()),
                "{id} {name}"
            );
            assert!(!parameter.to_string().contains("\"null\""), "{id} {name} is never null");
        }
        let filled = parameters.iter().filter(|it| it["in"] == "path").count();
        assert_eq!(filled, path.matches('{').count(), "{path}");
        let answers = it["responses"].as_object().unwrap();
        for status in ["200", "400", "401", "404", "408", "500", "503"] {
            assert!(answers.contains_key(status), "{id} {status}");
        }
        let acts = method == "POST";
        assert_eq!(answers.contains_key("403"), acts, "{id}");
        assert_eq!(it.get("requestBody").is_some(), acts, "{id}");
    }
    assert_eq!(ids.len(), 33);
}

/// One good request for each operation.
async fn walk(client: &Client, world: &World, asked: &mut BTreeSet<String>) {
    let run = world.unknown().await;
    let failed = {
        let event =
            json!({ "scope": "berlin", "type": "inventory.stockLow", "data": { "item": "nut" } });
        let emitted = ask(client, asked, "POST", "/events", event).await;
        let run: surefoot_kernel_core::RunId =
            emitted["runs"][0].as_str().unwrap().parse().unwrap();
        let (mut drive, _) = world.claimed(run).await;
        world.answered(&mut drive, "steps.0", crate::world::failed(false)).await;
        run
    };
    let version =
        ask(client, asked, "GET", "/workflows/reorder/versions?scope=berlin", json!(null)).await;
    let version = version["versions"][0]["id"].as_str().unwrap().to_owned();
    for path in [
        "/runs".to_owned(),
        format!("/runs/{run}"),
        format!("/runs/{run}/explain"),
        format!("/runs/{run}/steps"),
        format!("/runs/{run}/journal"),
        "/effects?older_than=0s".to_owned(),
        "/events?status=dispatched".to_owned(),
        "/workflows".to_owned(),
        format!("/versions/{version}"),
        format!("/diff?before={version}&after={version}"),
        "/schedules".to_owned(),
        "/health".to_owned(),
        "/timeline?span=2h&slices=4".to_owned(),
        "/doctor".to_owned(),
    ] {
        ask(client, asked, "GET", &path, json!(null)).await;
    }
    let why = || json!({ "reason": "the bank says so" });
    let asked_again = format!("/runs/{run}/steps/steps.1/reconcile");
    ask(&at(client, world, run).await, asked, "POST", &asked_again, why()).await;
    world.asked(run).await;
    let resolved = format!("/runs/{run}/steps/steps.1/resolve");
    let verdict =
        json!({ "reason": "seen", "verdict": { "succeeded": { "output": { "id": "r1" } } } });
    ask(&at(client, world, run).await, asked, "POST", &resolved, verdict).await;
    let cancel = format!("/runs/{run}/cancel");
    ask(&at(client, world, run).await, asked, "POST", &cancel, why()).await;
    let retry = format!("/runs/{failed}/retry");
    ask(&at(client, world, failed).await, asked, "POST", &retry, why()).await;
    ask(client, asked, "POST", "/runs/retry", why()).await;
    let switch = || json!({ "scope": "berlin", "reason": "for a while" });
    ask(client, asked, "POST", "/workflows/reorder/disable", switch()).await;
    ask(client, asked, "POST", "/workflows/reorder/enable", switch()).await;
    let live = json!({ "scope": "berlin", "version": 1, "seen": 1, "reason": "again" });
    ask(client, asked, "POST", "/workflows/reorder/activate", live).await;
    let signal = json!({ "scope": "berlin", "kind": "approval", "key": "bolt", "data": true });
    ask(client, asked, "POST", "/signals", signal).await;
    ask(client, asked, "GET", "/signals", json!(null)).await;
    ask(client, asked, "GET", "/audit", json!(null)).await;
    let preview = json!({
        "scope": "berlin", "workflow": "reorder", "data": { "item": "bolt" }
    });
    let dry_run = ask(client, asked, "POST", "/dry-runs", preview).await;
    let bill = format!("/dry-runs/{}", dry_run["run"].as_str().unwrap());
    ask(client, asked, "GET", &bill, json!(null)).await;
}

async fn at(client: &Client, world: &World, run: surefoot_kernel_core::RunId) -> Client {
    client.if_match(&json!(world.revision(run).await))
}

async fn ask(
    client: &Client,
    asked: &mut BTreeSet<String>,
    method: &str,
    path: &str,
    body: Value,
) -> Value {
    let operation = described(method, path).unwrap_or_else(|| panic!("{method} {path}"));
    asked.insert(operation["operationId"].as_str().unwrap().to_owned());
    let text = (!body.is_null()).then(|| body.to_string());
    client.send(method, path, text.as_deref()).await.done()
}

#[tokio::test]
async fn every_operation_does_what_its_description_says() {
    let world = World::published().await;
    let served = Served::of(&world).await;
    let mut asked = BTreeSet::new();
    walk(&served.operator(), &world, &mut asked).await;
    let document = served.nobody().send("GET", "/openapi.json", None).await.done();
    assert_eq!(document, Console::openapi());
    let all = operations(&document).into_iter();
    let missed: Vec<String> = all
        .map(|(_, _, it)| it["operationId"].as_str().unwrap().to_owned())
        .filter(|id| !asked.contains(id))
        .collect();
    // Streams have tests of their own; a run can be given up in one state only, which those of verbs bring about; nothing
    // is dead-lettered here.
    assert_eq!(missed, ["redrive_event", "follow_runs", "abandon_run", "follow_run"]);
}
