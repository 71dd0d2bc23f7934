//! What a request carries: a text, or JSON in which secrets stand by their names.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::input::SecretRef;

/// A body without its secrets.
#[derive(Debug, Clone)]
pub(super) enum Body {
    Json(Value),
    Text(String),
}

impl Body {
    /// Bytes of it as it is written.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Json(value) => value.to_string().len(),
            Self::Text(text) => text.len(),
        }
    }

    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Json(_) => "application/json",
            Self::Text(_) => "text/plain; charset=utf-8",
        }
    }

    /// The secrets that it names.
    pub(super) fn references(&self) -> Vec<SecretRef> {
        let mut found = Vec::new();
        if let Self::Json(value) = self {
            collect(value, &mut found);
        }
        found
    }

    /// With a text in the place of each secret.
    pub(super) fn filled(self, secrets: &BTreeMap<String, String>) -> Bytes {
        match self {
            Self::Json(value) => Bytes::from(fill(value, secrets).to_string()),
            Self::Text(text) => Bytes::from(text),
        }
    }
}

/// `{ secret: NAME }`, with or without `prefix`, and nothing else beside it: any other object is what it is.
pub(super) fn reference(members: &Map<String, Value>) -> Option<SecretRef> {
    let secret = members.get("secret")?.as_str()?.to_owned();
    let prefix = match members.get("prefix") {
        None => String::new(),
        Some(prefix) => prefix.as_str()?.to_owned(),
    };
    let is_alone = members.keys().all(|key| matches!(key.as_str(), "secret" | "prefix"));
    is_alone.then_some(SecretRef { secret, prefix })
}

pub(super) fn collect(value: &Value, found: &mut Vec<SecretRef>) {
    match value {
        Value::Object(members) => match reference(members) {
            Some(reference) => found.push(reference),
            None => members.values().for_each(|value| collect(value, found)),
        },
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn fill(value: Value, secrets: &BTreeMap<String, String>) -> Value {
    match value {
        Value::Object(members) => match reference(&members) {
            Some(SecretRef { secret, prefix }) => {
                let secret = secrets.get(&secret).map_or("", String::as_str);
                Value::String(format!("{prefix}{secret}"))
            }
            None => {
                let filled = members.into_iter().map(|(key, value)| (key, fill(value, secrets)));
                Value::Object(filled.collect())
            }
        },
        Value::Array(items) => items.into_iter().map(|item| fill(item, secrets)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_stands_anywhere_in_json() {
        let body = Body::Json(json!({
            "auth": { "token": { "secret": "KEY", "prefix": "T " } },
            "all": [{ "secret": "KEY" }, { "secret": "OTHER" }],
            "not": [{ "secret": "KEY", "more": 1 }, { "secret": 7 }, "secret", { "prefix": "x" }],
        }));
        let named: Vec<String> = body.references().into_iter().map(|it| it.secret).collect();
        assert_eq!(named, ["KEY", "OTHER", "KEY"]);
        let secrets = [("KEY".to_owned(), "a\"b".to_owned()), ("OTHER".to_owned(), "c".to_owned())];
        let sent: Value = serde_json::from_slice(&body.filled(&secrets.into())).unwrap();
        let wanted = json!({
            "auth": { "token": "T a\"b" },
            "all": ["a\"b", "c"],
            "not": [{ "secret": "KEY", "more": 1 }, { "secret": 7 }, "secret", { "prefix": "x" }],
        });
        assert_eq!(sent, wanted);
    }

    #[test]
    fn a_body_may_be_a_secret_or_null() {
        let secrets: BTreeMap<String, String> = [("KEY".to_owned(), "k".to_owned())].into();
        assert_eq!(Body::Json(json!({ "secret": "KEY" })).filled(&secrets), "\"k\"");
        assert_eq!(Body::Json(Value::Null).filled(&secrets), "null");
        assert_eq!(Body::Text("{ secret: KEY }".to_owned()).filled(&secrets), "{ secret: KEY }");
    }
}
