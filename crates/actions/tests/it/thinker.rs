//! A model that answers whatever the tests ask.

use serde_json::{Value, json};
use surefoot_testkit::{Say, ScriptedProvider};

pub(crate) fn clever() -> ScriptedProvider {
    ScriptedProvider::new(|request, _| {
        let asked = request.schema.as_ref().map_or(Value::Null, |it| it["properties"].clone());
        let told = &request.messages.last().unwrap().content;
        if asked.get("label").is_some() {
            Say::Json(json!({ "label": "friendly" }))
        } else if asked.get("labels").is_some() {
            Say::Json(json!({ "labels": ["friendly", "rude"] }))
        } else if asked.get("pieces").is_some() {
            Say::Json(json!({ "pieces": 3 }))
        } else {
            Say::Text(format!("you said: {told}"))
        }
    })
}
