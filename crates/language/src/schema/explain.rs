//! Findings of the validator as sentences for people.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use super::SchemaFinding;

/// A finding, and for an unknown field where and which.
pub(super) struct Found {
    pub(super) finding: SchemaFinding,
    pub(super) unknown_in: Option<(String, String)>,
}

/// What one error of the validator says; several findings for one that lists several fields.
pub(super) fn explain(error: &ValidationError<'_>) -> Vec<Found> {
    let at = error.instance_path().as_str();
    explain_listed(error, at).unwrap_or_else(|| vec![finding(at, sentence(error))])
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the other kinds concern one place each")]
fn explain_listed(error: &ValidationError<'_>, at: &str) -> Option<Vec<Found>> {
    match error.kind() {
        Kind::Required { property } => {
            Some(vec![finding(&below(at, property.as_str()?), "is missing")])
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            Some(unexpected.iter().map(|name| unknown(at, name)).collect())
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            Some(nearest(context, at)?.iter().flat_map(explain).collect())
        }
        _ => None,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the validator's own words do for the rest")]
fn sentence(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::Type { kind } => {
            format!("must be {}, not {}", expected(kind), type_name(error.instance()))
        }
        Kind::Enum { options } => match options.as_array() {
            Some(options) => format!("must be {}", choice(options.iter().map(Value::to_string))),
            None => format!("must be {options}"),
        },
        Kind::Constant { expected_value } => format!("must be {expected_value}"),
        Kind::FalseSchema => "is not allowed here".to_owned(),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => union(error, context),
        _ => masked(error),
    }
}

/// The validator's own words without the value, which may be a secret.
fn masked(error: &ValidationError<'_>) -> String {
    let text = error.masked_with("the value").to_string();
    text.strip_prefix("the value ").map_or_else(|| format!("is refused: {text}"), str::to_owned)
}

/// The branch that the author most likely meant: no other shape, and the fewest complaints at the value itself.
/// None if two are equally near.
fn nearest<'a>(
    branches: &'a [Vec<ValidationError<'static>>],
    at: &str,
) -> Option<&'a [ValidationError<'static>]> {
    let distance = |branch: &&'a Vec<ValidationError<'static>>| {
        let is_here = |error: &&ValidationError<'_>| error.instance_path().as_str() == at;
        let other_shape = branch.iter().filter(|error| is_other_shape(error, at)).count();
        (other_shape, branch.iter().filter(is_here).count(), branch.len())
    };
    let best = branches.iter().min_by_key(distance)?;
    let is_best = |branch: &&'a Vec<_>| distance(branch) == distance(&best);
    let is_clear = distance(&best).0 == 0 && branches.iter().filter(is_best).count() == 1;
    is_clear.then_some(best)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "only two kinds tell shapes apart")]
fn is_other_shape(error: &ValidationError<'_>, at: &str) -> bool {
    match error.kind() {
        Kind::Constant { .. } => true,
        Kind::Type { .. } => error.instance_path().as_str() == at,
        _ => false,
    }
}

/// Every branch wants another type, or none is near enough to speak for the others.
#[expect(clippy::wildcard_enum_match_arm, reason = "asks about one kind only")]
fn union(error: &ValidationError<'_>, branches: &[Vec<ValidationError<'static>>]) -> String {
    let at = error.instance_path().as_str();
    let wanted: Option<Vec<String>> = branches
        .iter()
        .map(|branch| {
            branch.iter().find_map(|error| match error.kind() {
                Kind::Type { kind } if error.instance_path().as_str() == at => Some(expected(kind)),
                _ => None,
            })
        })
        .collect();
    match wanted {
        Some(mut wanted) => {
            wanted.dedup();
            format!("must be {}, not {}", choice(wanted), type_name(error.instance()))
        }
        None => format!("fits none of the {} forms that are allowed here", branches.len()),
    }
}

fn expected(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => with_article(*one).to_owned(),
        TypeKind::Multiple(set) => {
            // The set's own order begins with null, which reads like an afterthought.
            let (null, named): (Vec<_>, Vec<_>) =
                set.iter().map(with_article).partition(|name| *name == "null");
            choice(named.into_iter().chain(null))
        }
    }
}

fn with_article(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Array => "a list",
        JsonType::Boolean => "a bool",
        JsonType::Integer => "an integer",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "a list",
        Value::Bool(_) => "a bool",
        Value::Null => "null",
        Value::Number(_) => "a number",
        Value::Object(_) => "an object",
        Value::String(_) => "a string",
    }
}

/// `a`, `a or b`, `a, b or c`.
fn choice(options: impl IntoIterator<Item = impl Into<String>>) -> String {
    let mut options: Vec<String> = options.into_iter().map(Into::into).collect();
    match options.pop() {
        Some(last) if options.is_empty() => last,
        Some(last) => format!("{} or {last}", options.join(", ")),
        None => "something else".to_owned(),
    }
}

fn below(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn unknown(at: &str, name: &str) -> Found {
    let unknown_in = Some((at.to_owned(), name.to_owned()));
    Found { unknown_in, ..finding(&below(at, name), "is not a known field") }
}

fn finding(pointer: &str, message: impl Into<String>) -> Found {
    let finding = SchemaFinding { pointer: pointer.to_owned(), message: message.into() };
    Found { finding, unknown_in: None }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::schema::{CompiledSchema, validate_against};

    #[track_caller]
    fn check(schema: Value, value: Value, expected: &[&str]) {
        let found = validate_against(&schema, &value).unwrap_err();
        let texts: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn findings_name_the_place_and_never_the_value() {
        let schema = json!({
            "type": "object",
            "properties": {
                "item": {"type": "string", "maxLength": 3},
                "a/b": {"type": ["integer", "null"]},
                "how": {"enum": ["card", "cash"]},
            },
            "required": ["item"],
            "additionalProperties": false,
        });
        check(json!({"type": "string"}), json!(1), &["the value must be a string, not a number"]);
        check(schema.clone(), json!({}), &["`/item` is missing"]);
        check(
            schema.clone(),
            json!({"item": "s3cret", "a/b": [], "how": "x"}),
            &[
                "`/a~1b` must be an integer or null, not a list",
                "`/how` must be \"card\" or \"cash\"",
                "`/item` is longer than 3 characters",
            ],
        );
        check(
            schema,
            json!({"item": "a", "x": 1, "y~": 2}),
            &["`/x` is not a known field", "`/y~0` is not a known field"],
        );
    }

    #[test]
    fn of_several_forms_the_nearest_speaks() {
        let card = json!({"type": "object", "properties": {"kind": {"const": "card"}, "number": {"type": "string"}},
            "required": ["kind", "number"], "unevaluatedProperties": false});
        let cash = json!({"type": "object", "properties": {"kind": {"const": "cash"}, "till": {"type": "integer"}},
            "required": ["kind", "till"], "unevaluatedProperties": false});
        let schema = json!({"oneOf": [card, cash]});
        check(
            schema.clone(),
            json!({"kind": "card", "nmber": "4"}),
            &["`/nmber` is not a known field", "`/number` is missing"],
        );
        check(schema.clone(), json!([]), &["the value must be an object, not a list"]);
        check(
            schema,
            json!({"kind": "coin"}),
            &["the value fits none of the 2 forms that are allowed here"],
        );
        let optional = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
        check(optional, json!(1), &["the value must be a string or null, not a number"]);
    }

    #[test]
    fn a_field_of_a_part_that_does_not_fit_is_not_called_unknown() {
        let card = json!({"properties": {"kind": {"const": "card"}, "number": {"type": "string"}}});
        let cash = json!({"properties": {"kind": {"const": "cash"}, "till": {"type": "integer"}}});
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "oneOf": [card, cash],
            "unevaluatedProperties": false,
        });
        check(
            schema.clone(),
            json!({"a": 1, "kind": "card", "number": 7, "x": 1}),
            &["`/number` must be a string, not a number", "`/x` is not a known field"],
        );
        check(
            schema,
            json!({"a": 1, "kind": "card", "number": "7", "till": 1}),
            &["`/till` is not a known field"],
        );
    }

    #[test]
    fn the_number_of_findings_is_bounded() {
        let schema = json!({"items": {"type": "string"}});
        let found = validate_against(&schema, &json!(vec![1; 1_000])).unwrap_err();
        assert_eq!(found.len(), 50);
    }

    #[test]
    fn schemas_that_look_elsewhere_or_backtrack_are_refused() {
        for schema in [
            json!({"$ref": "https://example.com/order.json"}),
            json!({"$ref": "#/$defs/Missing"}),
            json!({"type": "strng"}),
            json!({"pattern": "(?=a)b"}),
            json!(7),
        ] {
            let refused = CompiledSchema::new(&schema).unwrap_err().to_string();
            assert!(refused.starts_with("the schema cannot be used: "), "{refused}");
            assert!(validate_against(&schema, &json!("b")).is_err(), "{schema}");
        }
    }
}
