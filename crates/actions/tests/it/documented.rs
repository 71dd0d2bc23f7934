//! The page says of every action what its schema says, and names every code: it cannot go stale.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use surefoot_actions::ai::{AI_ANSWER_MAX_BYTES, AI_CALLS, AI_REQUEST_MAX_BYTES};
use surefoot_actions::http::{
    ANSWER_HEADERS_MAX_BYTES, HEADERS_MAX, HTTP_REQUESTS, REDIRECTS_MAX, REQUEST_MAX_BYTES,
    RESPONSE_MAX_BYTES, TIMEOUT_DEFAULT, TIMEOUT_MAX, URL_MAX_CHARS,
};
use surefoot_actions::message::{DEDUPE_WINDOW_MIN, MESSAGES};
use surefoot_actions::query::ROWS_MAX;
use surefoot_kernel_core::{EVENT_MAX_PAYLOAD_BYTES, SIGNAL_MAX_DATA_BYTES};

use crate::broker::topic;
use crate::database::sqlite;
use crate::ready_made::module;

const PAGE: &str = include_str!("../../../../docs/actions.md");

/// What stands under a heading, up to the next one.
fn section(heading: &str) -> &'static str {
    let found = PAGE.split("\n##").find(|part| {
        let first = part.lines().next().unwrap_or_default();
        first.trim_start_matches('#').trim() == heading
    });
    found.unwrap_or_else(|| panic!("the page has no heading {heading}"))
}

fn of_action(name: &str) -> &'static str {
    section(&format!("`{name}`"))
}

/// The names in backticks.
fn ticked(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The fields of a section's table, with default and limits.
fn fields(section: &'static str) -> BTreeMap<&'static str, (&'static str, &'static str)> {
    let rows = section.lines().skip_while(|line| !line.starts_with("| field |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let mut fields = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        for field in ticked(cells[0]) {
            fields.insert(field, (cells[1], cells.get(2).copied().unwrap_or_default()));
        }
    }
    fields
}

/// The fields of an action, with those that it shares with others.
fn documented(name: &str) -> BTreeMap<&'static str, (&'static str, &'static str)> {
    match name {
        "httpCall" => {
            assert!(of_action(name).contains("The same fields but `confirm`"));
            let mut fields = fields(of_action("httpRequest"));
            fields.remove("confirm");
            fields
        }
        "generateText" | "classify" | "classifyMany" | "extract" => {
            let mut all = fields(of_action(name));
            all.extend(fields(section("Models")));
            all
        }
        _ => fields(of_action(name)),
    }
}

/// As the page writes numbers.
fn grouped(number: &Value) -> String {
    let number = number.as_f64().unwrap();
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(place) => root.pointer(place.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

/// What the schema says of one field stands in its row.
fn check_field(action: &str, root: &Value, name: &str, (default, limits): (&str, &str)) {
    let at = format!("`{name}` of {action}");
    let schema = &root["properties"][name];
    let required = root["required"].as_array().is_some_and(|all| all.iter().any(|it| it == name));
    // What is optional to the schema and has a default of its own is the run's, the module's, the provider's.
    assert_eq!(required, default == "required", "{at}: {schema}");
    match &schema["default"] {
        Value::String(text) => {
            assert!(default.contains(text.as_str()), "{at}: the default is {text}");
        }
        Value::Null | Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_) => {}
    }
    let schema = resolved(root, schema);
    for limit in ["minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"] {
        // What an integer type can hold is no limit of ours.
        let number = schema.get(limit).filter(|it| it.as_f64().is_some_and(|it| it < 4e9));
        if let Some(number) = number {
            assert!(
                limits.contains(&grouped(number)),
                "{at}: {limit} is {number}, not in: {limits}"
            );
        }
    }
    let words =
        schema["enum"].as_array().into_iter().flatten().chain(
            schema["oneOf"].as_array().into_iter().flatten().filter_map(|one| one.get("const")),
        );
    for word in words.filter_map(Value::as_str) {
        assert!(limits.contains(word), "{at}: `{word}` is not in: {limits}");
    }
}

fn check_fields(action: &str, schema: &Value, fields: &BTreeMap<&str, (&str, &str)>) {
    let said: BTreeSet<&str> = fields.keys().copied().collect();
    let is: BTreeSet<&str> =
        schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(said, is, "the fields of {action}");
    for (name, row) in fields {
        check_field(action, schema, name, *row);
    }
}

/// `The output is `{ a, b }`.`
fn check_output(name: &str, schema: &Value) {
    let text = of_action(if name == "httpCall" { "httpRequest" } else { name });
    let (_, rest) = text.split_once("output is").unwrap_or_else(|| panic!("{name} says no output"));
    let said = ticked(rest)[0].trim_matches(['{', '}']).split(',').map(str::trim).collect();
    let is: BTreeSet<&str> =
        schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    let said: BTreeSet<&str> = said;
    assert_eq!(said, is, "the output of {name}");
}

async fn manifest() -> Value {
    let store = sqlite().await;
    let module = module(&store, topic(DEDUPE_WINDOW_MIN).await);
    serde_json::to_value(module.manifest()).unwrap()
}

#[tokio::test]
async fn every_field_default_limit_and_class_of_every_action_is_documented() {
    let manifest = manifest().await;
    let actions = manifest["actions"].as_array().unwrap();
    assert_eq!(actions.len(), 10);
    for action in actions {
        let name = action["name"].as_str().unwrap();
        let class = action["class"].as_str().unwrap();
        let link = format!("[`{name}`](#{})", name.to_ascii_lowercase());
        let row = PAGE.lines().find(|line| line.starts_with('|') && line.contains(&link)).unwrap();
        assert!(row.contains(&format!("| {class} |")), "{name} is {class}: {row}");
        check_fields(name, &action["input"], &documented(name));
        check_output(name, &action["output"]);
        assert!(PAGE.contains(&format!("- {name}:")), "{name} has no example");
    }
    let request = &actions.iter().find(|action| action["name"] == "httpRequest").unwrap()["input"];
    let confirm = &request["properties"]["confirm"];
    let confirm = confirm["anyOf"].as_array().map_or(confirm, |either| &either[0]);
    let mut confirm = resolved(request, confirm).clone();
    confirm["$defs"] = request["$defs"].clone();
    check_fields("confirm", &confirm, &fields(of_action("confirm")));
}

/// The codes that stand in the sources of some actions.
fn codes(place: &str) -> BTreeSet<String> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(place);
    let files = match std::fs::read_dir(&place) {
        Ok(folder) => folder.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => vec![place],
    };
    let texts = files.iter().map(|file| std::fs::read_to_string(file).unwrap());
    let is_code = |text: &&str| {
        text.contains('_') && text.chars().all(|char| char.is_ascii_uppercase() || char == '_')
    };
    let mut codes = BTreeSet::new();
    for text in texts {
        let lines =
            text.lines().filter(|line| line.contains("pub const") && line.contains(": &str = "));
        codes.extend(
            lines.filter_map(|line| line.split('"').nth(1)).filter(is_code).map(str::to_owned),
        );
    }
    assert!(!codes.is_empty());
    codes
}

#[test]
fn every_code_is_documented_where_it_comes_up() {
    let http = ["`httpRequest`", "`httpCall`", "Secrets", "`confirm`"].map(section).concat();
    let events = [of_action("emitEvent"), of_action("signal")].concat();
    for (place, text) in [
        ("http", http.as_str()),
        ("event.rs", &events),
        ("query", of_action("query")),
        ("message.rs", of_action("publishMessage")),
        ("ai", section("Models")),
    ] {
        for code in codes(place) {
            assert!(text.contains(&format!("`{code}`")), "{code} of {place} is not documented");
        }
    }
    for (text, dimension) in [
        (of_action("httpCall"), HTTP_REQUESTS),
        (of_action("publishMessage"), MESSAGES),
        (section("Models"), AI_CALLS),
    ] {
        assert!(
            text.contains(&format!("charge 1 of `{dimension}`"))
                || text.contains(&format!("charges 1 of `{dimension}`"))
        );
    }
}

fn bytes(count: usize) -> String {
    match count {
        _ if count.is_multiple_of(1024 * 1024) => format!("{} MiB", count / 1024 / 1024),
        _ if count.is_multiple_of(1024) => format!("{} KiB", count / 1024),
        _ => format!("{} bytes", grouped(&count.into())),
    }
}

fn seconds(span: Duration) -> String {
    format!("`{}s`", span.as_secs())
}

#[test]
fn every_limit_that_no_schema_knows_is_documented() {
    let (request, models) = (of_action("httpRequest"), section("Models"));
    for (text, limit) in [
        (request, format!("{} characters", grouped(&URL_MAX_CHARS.into()))),
        (request, format!("| {HEADERS_MAX};")),
        (request, format!("one of the two, {}", bytes(REQUEST_MAX_BYTES))),
        (request, format!("at most {}", bytes(RESPONSE_MAX_BYTES))),
        (request, format!("{} at most", bytes(ANSWER_HEADERS_MAX_BYTES))),
        (request, format!("more than {REDIRECTS_MAX} times")),
        (request, format!("| {} | `1s` to {}", seconds(TIMEOUT_DEFAULT), seconds(TIMEOUT_MAX))),
        (of_action("confirm"), format!("{} s for it", TIMEOUT_DEFAULT.as_secs())),
        (of_action("emitEvent"), bytes(EVENT_MAX_PAYLOAD_BYTES)),
        (of_action("signal"), bytes(SIGNAL_MAX_DATA_BYTES)),
        (of_action("query"), format!("{} rows at most", grouped(&ROWS_MAX.into()))),
        (of_action("publishMessage"), "under an hour".to_owned()),
        (models, format!("at most {} of JSON", bytes(AI_REQUEST_MAX_BYTES))),
        (models, format!("an answer {}", bytes(AI_ANSWER_MAX_BYTES))),
    ] {
        // Lines break anywhere.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&limit), "not documented: {limit}");
    }
    assert_eq!(DEDUPE_WINDOW_MIN, Duration::from_secs(3_600));
}
