//! What is made of a model's words: checked here, once, before the step sees them.

use jsonschema::Validator;
use serde_json::{Value, json};
use surefoot_kernel_core::OUTPUT_MAX_BYTES;
use surefoot_kernel_core::payload::Payload;

use super::request::{AiAnswer, AiOutput};

/// Bytes of a model's answer.
pub const AI_ANSWER_MAX_BYTES: usize = 512 * 1024;
/// Bytes of it as a step has it, in JSON: with what else stands in an output, it is one.
const WRITTEN_MAX_BYTES: usize = OUTPUT_MAX_BYTES - 64 * 1024;

/// Reads a schema. References to other documents are not followed.
pub(super) fn validator(schema: &Value) -> Result<Validator, String> {
    jsonschema::validator_for(schema).map_err(|error| format!("the schema cannot be used: {error}"))
}

/// What the task keeps, or why the answer cannot be used. It does not get better by asking again.
pub(super) fn usable(answer: AiAnswer, schema: Option<&Value>) -> Result<Payload, String> {
    let AiAnswer { text, model, usage } = answer;
    if text.len() > AI_ANSWER_MAX_BYTES {
        return Err(format!("the answer has more than {AI_ANSWER_MAX_BYTES} bytes"));
    }
    let value = match schema {
        None => Value::Null,
        Some(schema) => structured(&text, schema)?,
    };
    // What a step has is one of the two, and escapes count.
    let had = if schema.is_some() { value.to_string() } else { json!(text).to_string() };
    if had.len() > WRITTEN_MAX_BYTES {
        return Err(format!("the answer has more than {WRITTEN_MAX_BYTES} bytes as JSON"));
    }
    let kept = json!(AiOutput { text, value, model, usage });
    Payload::from_value(&kept).map_err(|error| error.to_string())
}

fn structured(text: &str, schema: &Value) -> Result<Value, String> {
    let value = Payload::parse(unfenced(text))
        .map_err(|error| format!("the answer is no JSON that can be kept: {}", error.rule))?
        .into_value();
    let validator = validator(schema)?;
    let wrong = validator.iter_errors(&value).next().map(|error| {
        let place = error.instance_path().to_string();
        // The error's own text repeats the value, which may be long and is not ours to show.
        if place.is_empty() { "as a whole".to_owned() } else { format!("at `{place}`") }
    });
    match wrong {
        None => Ok(value),
        Some(place) => Err(format!("the answer does not fit its schema {place}")),
    }
}

/// Some models put a fence around JSON whatever they are told.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    inner.and_then(|inner| inner.strip_suffix("```")).unwrap_or(text).trim()
}

#[cfg(test)]
mod tests {
    use super::super::request::AiUsage;
    use super::*;

    fn answer(text: &str) -> AiAnswer {
        let (text, model) = (text.to_owned(), "m".to_owned());
        AiAnswer { text, model, usage: AiUsage { input_tokens: 3, output_tokens: 4 } }
    }

    #[test]
    fn an_answer_that_fits_is_kept_with_what_it_cost() {
        let schema = json!({ "type": "object", "properties": { "label": { "enum": ["a"] } }, "required": ["label"] });
        let kept = usable(answer("```json\n{\"label\": \"a\"}\n```"), Some(&schema)).unwrap();
        assert_eq!(kept.value()["value"], json!({ "label": "a" }));
        assert_eq!(kept.value()["usage"], json!({ "inputTokens": 3, "outputTokens": 4 }));
        assert_eq!(usable(answer("words"), None).unwrap().value()["text"], "words");
    }

    #[test]
    fn an_answer_that_does_not_fit_says_where() {
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
        for (text, why) in [
            ("sorry", "no JSON"),
            ("{\"n\": 1, \"n\": 2}", "no JSON that can be kept"),
            ("{\"n\": \"canary\"}", "does not fit its schema at `/n`"),
            ("[]", "does not fit its schema as a whole"),
        ] {
            let found = usable(answer(text), Some(&schema)).unwrap_err();
            assert!(found.contains(why) && !found.contains("canary"), "{text}: {found}");
        }
        for long in ["x".repeat(AI_ANSWER_MAX_BYTES + 1), "\u{1}".repeat(AI_ANSWER_MAX_BYTES)] {
            assert!(usable(answer(&long), None).unwrap_err().contains("more than"));
        }
    }

    #[test]
    fn a_schema_reaches_for_nothing_outside() {
        assert!(validator(&json!({ "$ref": "http://127.0.0.1:1/schema.json" })).is_err());
        assert!(validator(&json!({ "type": 7 })).is_err());
    }
}
