//! JSON Schemas of inputs and outputs: derived from Rust types, closed, compiled, and their findings for people.

mod close;
mod explain;

use std::collections::BTreeSet;
use std::fmt;

use jsonschema::{PatternOptions, Validator};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

pub use close::close_schema;
use explain::Found;

/// No value yields more findings than this: the rest would hardly be read.
const MAX_FINDINGS: usize = 50;

/// One reason why a value does not fit a schema. Shows no values: they may be secrets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct SchemaFinding {
    /// JSON Pointer into the value; empty for the value itself.
    pub pointer: String,
    /// What is wrong there, to be read after the place: `is missing`.
    pub message: String,
}

impl fmt::Display for SchemaFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => write!(f, "the value {}", self.message),
            pointer => write!(f, "`{pointer}` {}", self.message),
        }
    }
}

/// A text is not a JSON Schema that can be applied without looking elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema cannot be used: {0}")]
pub struct BadSchema(String);

/// A JSON Schema, ready to judge values. Patterns are matched in linear time; nothing is ever fetched.
#[derive(Debug)]
pub struct CompiledSchema {
    validator: Validator,
    /// Every property that is named anywhere in it.
    named: BTreeSet<String>,
}

impl CompiledSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// It is no JSON Schema, refers to another document, or has a pattern with backtracking.
    pub fn new(schema: &Value) -> Result<Self, BadSchema> {
        let options = jsonschema::options().offline().with_pattern_options(PatternOptions::regex());
        let bad = |error: jsonschema::ValidationError<'_>| BadSchema(error.to_string());
        let validator = options.build(schema).map_err(bad)?;
        let mut named = BTreeSet::new();
        collect_named(schema, &mut named);
        Ok(Self { validator, named })
    }

    /// Everything that is wrong with a value, sorted by place.
    ///
    /// # Errors
    /// It does not fit.
    pub fn check(&self, value: &Value) -> Result<(), Vec<SchemaFinding>> {
        if self.validator.is_valid(value) {
            return Ok(());
        }
        let errors = self.validator.iter_errors(value);
        let found = errors.flat_map(|error| explain::explain(&error)).take(MAX_FINDINGS).collect();
        let mut found = self.without_echoes(found);
        // The validator's own order changes with its version.
        found.sort();
        found.dedup();
        Err(found)
    }

    /// Where a part of a value's schema does not fit, the validator forgets which fields that part knows and calls
    /// them unknown too. Such a field says nothing new; one that no part ever names does.
    fn without_echoes(&self, found: Vec<Found>) -> Vec<SchemaFinding> {
        let wrong: Vec<String> = found
            .iter()
            .filter(|it| it.unknown_in.is_none())
            .map(|it| it.finding.pointer.clone())
            .collect();
        let is_echo = |it: &Found| {
            let Some((object, name)) = &it.unknown_in else { return false };
            self.named.contains(name) && wrong.iter().any(|pointer| is_within(pointer, object))
        };
        found.into_iter().filter(|it| !is_echo(it)).map(|it| it.finding).collect()
    }
}

fn is_within(pointer: &str, object: &str) -> bool {
    pointer.strip_prefix(object).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn collect_named(schema: &Value, named: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Object(properties)) = members.get("properties") {
                named.extend(properties.keys().cloned());
            }
            members.values().for_each(|member| collect_named(member, named));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_named(item, named)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Judges a value by a schema that was stored with a plan: what an operator supplies in place of an action's output.
///
/// ```
/// use serde_json::json;
/// use surefoot_language::validate_against;
///
/// let schema = json!({"type": "object", "properties": {"boxes": {"type": "integer"}}, "required": ["boxes"]});
/// assert!(validate_against(&schema, &json!({"boxes": 3})).is_ok());
/// let found = validate_against(&schema, &json!({"boxes": "3"})).unwrap_err();
/// assert_eq!(found[0].to_string(), "`/boxes` must be an integer, not a string");
/// ```
///
/// # Errors
/// The value does not fit, or the schema cannot be used.
pub fn validate_against(schema: &Value, value: &Value) -> Result<(), Vec<SchemaFinding>> {
    let unusable = |error: BadSchema| {
        let message = format!("cannot be judged: {error}");
        vec![SchemaFinding { pointer: String::new(), message }]
    };
    CompiledSchema::new(schema).map_err(unusable)?.check(value)
}

/// What a type reads, closed.
pub(crate) fn input_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    close_schema(&mut schema);
    schema
}

/// What a type writes, closed: a mistyped member of an operator's output, or of an expression on it, is found.
pub(crate) fn output_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    close_schema(&mut schema);
    schema
}

/// What the data of an event holds. Open: an event may say more than a trigger asks for.
pub(crate) fn event_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    settings.into_generator().into_root_schema_for::<T>().to_value()
}
