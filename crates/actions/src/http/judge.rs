//! What can be told of a request before any run.

use serde_json::{Map, Value, json};
use surefoot_kernel_core::{EffectKey, RunId};
use surefoot_language::ConfigRemark;

use super::body::reference;
use super::input::HttpRequestInput;
use super::policy::{Forbidden, Policy};
use super::prepare::{check, check_confirm};
use super::written::misspelt;
use crate::config::{Draft, below, refused};

/// Stands for a URL that is not known yet.
const SOME_URL: &str = "https://computed.invalid/";

/// What a step would refuse whatever its expressions give, and what is sent otherwise than it looks.
pub(crate) fn judge(draft: &Draft) -> Vec<ConfigRemark> {
    let mut remarks = Vec::new();
    for place in ["/headers", "/query", "/confirm/headers", "/confirm/query"] {
        for (name, value) in members(draft, place) {
            let pointer = below(place, name);
            if value.is_object() {
                computed_name(draft, &pointer, &mut remarks);
            }
            if place == "/confirm/query" {
                remarks.extend(placeholder(draft, &pointer));
            }
        }
    }
    remarks.extend(placeholder(draft, "/confirm/url"));
    if let Some(json) = draft.value.get("json") {
        in_json(draft, "/json".to_owned(), json, &mut remarks);
    }
    remarks.extend(refusals(draft));
    remarks
}

fn members<'d>(draft: &'d Draft, pointer: &str) -> impl Iterator<Item = (&'d String, &'d Value)> {
    draft.value.pointer(pointer).and_then(Value::as_object).into_iter().flatten()
}

/// Whatever it gives, a step refuses it.
fn computed_name(draft: &Draft, pointer: &str, remarks: &mut Vec<ConfigRemark>) {
    let name = format!("{pointer}/secret");
    if draft.is_computed(&name) {
        remarks.push(refused(
            &name,
            "the name of a secret is written as it is, without an expression",
        ));
    }
}

fn placeholder(draft: &Draft, pointer: &str) -> Option<ConfigRemark> {
    let around = draft.computed.get(pointer).map(String::as_str);
    let text = around.or_else(|| draft.value.pointer(pointer)?.as_str())?;
    misspelt(text).map(|why| refused(pointer, why))
}

fn in_json(draft: &Draft, pointer: String, value: &Value, remarks: &mut Vec<ConfigRemark>) {
    match value {
        Value::Object(object) => {
            secret_in(draft, &pointer, object, remarks);
            for (name, value) in object {
                in_json(draft, below(&pointer, name), value, remarks);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                in_json(draft, format!("{pointer}/{at}"), item, remarks);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// An object of a body that says `secret`, and is none.
fn secret_in(
    draft: &Draft,
    pointer: &str,
    object: &Map<String, Value>,
    remarks: &mut Vec<ConfigRemark>,
) {
    let Some(name) = object.get("secret") else { return };
    let is_alone = object.keys().all(|key| matches!(key.as_str(), "secret" | "prefix"));
    let is_computed = draft.is_computed(&format!("{pointer}/secret"));
    if is_computed && is_alone {
        return computed_name(draft, pointer, remarks);
    }
    // What an expression gives beside other members, and what is nested, is what it looks like.
    if is_computed || name.is_object() || name.is_array() {
        return;
    }
    let mut object = object.clone();
    if draft.is_computed(&format!("{pointer}/prefix")) {
        object.insert("prefix".to_owned(), json!(""));
    }
    if reference(&object).is_none() {
        let message = "this is sent as it is, and no secret in its place: a secret is `{ secret: NAME }`, with a text as `prefix` or \
                       without, and nothing else beside it";
        let (pointer, message) = (pointer.to_owned(), message.to_owned());
        remarks.push(ConfigRemark { pointer, message, is_refused: false });
    }
}

/// What the checks of a step say of it, but where it may lead: that is the module's word.
fn refusals(draft: &Draft) -> Vec<ConfigRemark> {
    let input: Option<HttpRequestInput> = serde_json::from_value(draft.filled(stand_in)).ok();
    let Some(HttpRequestInput { request, confirm }) = input else { return Vec::new() };
    let policy = Policy::default();
    let key = EffectKey::of(RunId::from_bytes([0; 16]), &"step".into());
    let confirmed = confirm.map_or(Ok(()), |it| check_confirm(&policy, &it, &key).map(drop));
    let said = [("", check(&policy, &request).map(drop)), ("/confirm", confirmed)];
    let malformed = said.into_iter().filter_map(|(pointer, checked)| match checked {
        Err(Forbidden::Malformed(why)) => Some(refused(pointer, why)),
        Err(Forbidden::NotAllowed(_)) | Ok(()) => None,
    });
    malformed.collect()
}

fn stand_in(pointer: &str) -> (String, Option<Value>) {
    let here = |value| (pointer.to_owned(), Some(value));
    match pointer {
        "/url" | "/confirm/url" => here(json!(SOME_URL)),
        // It may have a body, or none.
        "/method" => here(json!("POST")),
        _ if pointer.starts_with("/json") => here(Value::Null),
        _ if pointer.starts_with("/statuses") => ("/statuses".to_owned(), None),
        _ if pointer == "/text" || pointer.ends_with("/prefix") => here(json!("")),
        _ if pointer.ends_with("/secret") => here(json!("COMPUTED")),
        "/headers" | "/query" | "/timeout" | "/confirm" => (pointer.to_owned(), None),
        _ if pointer.matches('/').count() == 2 && pointer.starts_with("/confirm/") => {
            (pointer.to_owned(), None)
        }
        // The value of a header, or of an argument.
        _ => here(json!("")),
    }
}
