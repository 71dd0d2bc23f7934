//! Makes a schema refuse unknown fields, whether or not the Rust type says so.
//!
//! `unevaluatedProperties: false` sees what parts of the same value evaluate (`$ref`, `allOf`, `oneOf`, ..), but not
//! what stands beside the schema that contains it. So it must stand at the outermost schema of a value: a flattened
//! or tagged part that closed itself would refuse the fields of its neighbours.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

type Object = Map<String, Value>;

/// Where the definitions of a root schema stand.
const DEFINITIONS: &[&str] = &["$defs", "definitions"];
/// Lists of schemas of the same value.
const SAME_VALUE_LISTS: &[&str] = &["allOf", "anyOf", "oneOf"];
/// Schemas of the same value.
const SAME_VALUE: &[&str] = &["if", "then", "else"];
/// Named schemas of other values.
const OTHER_VALUES_NAMED: &[&str] = &["properties", "patternProperties"];
/// Schemas of other values.
const OTHER_VALUES: &[&str] =
    &["items", "contains", "additionalProperties", "unevaluatedProperties", "unevaluatedItems"];

/// Closes every object that lists its properties and says nothing about others; maps stay open.
///
/// ```
/// use serde_json::json;
/// let mut schema = json!({"type": "object", "properties": {"item": {"type": "string"}}});
/// surefoot_language::close_schema(&mut schema);
/// assert_eq!(schema["unevaluatedProperties"], false);
/// ```
pub fn close_schema(schema: &mut Value) {
    let Value::Object(root) = schema else { return };
    let parts = Parts::of(root);
    for key in DEFINITIONS {
        let Some(Value::Object(definitions)) = root.get_mut(*key) else { continue };
        for (name, definition) in definitions {
            if parts.shared.contains(&format!("#/{key}/{name}")) {
                parts.inside(definition);
            } else {
                parts.value(definition);
            }
        }
    }
    parts.object(root);
    if is_bare_object(root) {
        // A type without fields, as the whole of a config: there is nothing that could be known.
        root.insert("unevaluatedProperties".into(), false.into());
    }
}

/// What is known about the definitions before any is changed.
#[derive(Default)]
struct Parts {
    /// References to definitions that are parts of another schema of the same value.
    shared: BTreeSet<String>,
    /// Those of them that list properties: closed where they are used alone.
    listing: BTreeSet<String>,
}

impl Parts {
    fn of(root: &Object) -> Self {
        let mut parts = Self::default();
        parts.collect_object(root);
        let is_listing =
            |reference: &&String| find(root, reference).is_some_and(|it| lists(root, it, 0));
        parts.listing = parts.shared.iter().filter(is_listing).cloned().collect();
        parts
    }

    fn collect(&mut self, schema: &Value) {
        match schema {
            Value::Object(object) => self.collect_object(object),
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn collect_object(&mut self, object: &Object) {
        if !is_union(object) && !is_reference(object) {
            self.share(object);
        }
        object.values().for_each(|member| self.collect(member));
    }

    /// Notes every reference that describes a part of the same value.
    fn share(&mut self, object: &Object) {
        if let Some(Value::String(reference)) = object.get("$ref") {
            self.shared.insert(reference.clone());
        }
        same_value(object).filter_map(Value::as_object).for_each(|part| self.share(part));
    }

    fn value(&self, schema: &mut Value) {
        if let Value::Object(object) = schema {
            self.object(object);
        }
    }

    /// The outermost schema of a value.
    fn object(&self, object: &mut Object) {
        if is_union(object) {
            for key in SAME_VALUE_LISTS {
                let Some(Value::Array(branches)) = object.get_mut(*key) else { continue };
                branches.iter_mut().for_each(|branch| self.value(branch));
            }
            return;
        }
        if !is_outspoken(object) && self.lists(object) {
            object.insert("unevaluatedProperties".into(), false.into());
        }
        self.inside_object(object);
    }

    fn inside(&self, schema: &mut Value) {
        if let Value::Object(object) = schema {
            self.inside_object(object);
        }
    }

    /// A schema that is not closed itself: only what it says about other values is.
    fn inside_object(&self, object: &mut Object) {
        for (key, member) in object {
            let key = key.as_str();
            match member {
                Value::Object(named) if OTHER_VALUES_NAMED.contains(&key) => {
                    named.values_mut().for_each(|schema| self.value(schema));
                }
                Value::Array(items) if key == "prefixItems" => {
                    items.iter_mut().for_each(|schema| self.value(schema));
                }
                Value::Array(parts) if SAME_VALUE_LISTS.contains(&key) => {
                    parts.iter_mut().for_each(|part| self.inside(part));
                }
                part if SAME_VALUE.contains(&key) => self.inside(part),
                schema if OTHER_VALUES.contains(&key) => self.value(schema),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
                Value::Array(_) | Value::Object(_) => {}
            }
        }
    }

    fn lists(&self, object: &Object) -> bool {
        let refers_to_listing = matches!(
            object.get("$ref"),
            Some(Value::String(reference)) if self.listing.contains(reference)
        );
        refers_to_listing
            || OTHER_VALUES_NAMED.iter().any(|key| object.contains_key(*key))
            || same_value(object).filter_map(Value::as_object).any(|part| self.lists(part))
    }
}

/// Whether a definition lists properties and nothing in it takes any object at all.
fn lists(root: &Object, schema: &Value, depth: u8) -> bool {
    let Value::Object(object) = schema else { return false };
    if is_outspoken(object) || depth > 16 {
        return false;
    }
    if is_union(object) {
        // One open branch, and closing the union as a whole would close that branch too.
        return same_value(object).all(|branch| lists(root, branch, depth + 1));
    }
    let referred = object.get("$ref").and_then(Value::as_str).and_then(|it| find(root, it));
    OTHER_VALUES_NAMED.iter().any(|key| object.contains_key(*key))
        || referred.is_some_and(|it| lists(root, it, depth + 1))
        || same_value(object).any(|part| lists(root, part, depth + 1))
}

fn find<'a>(root: &'a Object, reference: &str) -> Option<&'a Value> {
    let (key, name) = reference.strip_prefix("#/")?.split_once('/')?;
    DEFINITIONS.contains(&key).then(|| root.get(key)?.get(name)).flatten()
}

fn same_value(object: &Object) -> impl Iterator<Item = &Value> {
    let lists = SAME_VALUE_LISTS.iter().filter_map(|key| object.get(*key)?.as_array()).flatten();
    lists.chain(SAME_VALUE.iter().filter_map(|key| object.get(*key)))
}

/// Only alternatives, each of which describes the whole value.
fn is_union(object: &Object) -> bool {
    let has = |key: &str| object.contains_key(key);
    (has("oneOf") ^ has("anyOf"))
        && !has("$ref")
        && !has("allOf")
        && !has("if")
        && !OTHER_VALUES_NAMED.iter().any(|key| has(key))
}

/// Only a reference, perhaps with words for people beside it.
fn is_reference(object: &Object) -> bool {
    object.contains_key("$ref")
        && same_value(object).next().is_none()
        && !OTHER_VALUES_NAMED.iter().any(|key| object.contains_key(*key))
}

/// Says itself what it thinks of other properties.
fn is_outspoken(object: &Object) -> bool {
    object.contains_key("additionalProperties") || object.contains_key("unevaluatedProperties")
}

fn is_bare_object(object: &Object) -> bool {
    let known = ["$schema", "title", "description", "type", "$defs"];
    object.get("type").and_then(Value::as_str) == Some("object")
        && object.keys().all(|key| known.contains(&key.as_str()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use schemars::{JsonSchema, schema_for};
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::schema::validate_against;

    fn closed<T: JsonSchema>() -> Value {
        let mut schema = schema_for!(T).to_value();
        close_schema(&mut schema);
        schema
    }

    /// Which of the values fit. Every value that fits must also be readable, or the test proves nothing.
    #[track_caller]
    fn fitting<T: JsonSchema + for<'de> Deserialize<'de>>(values: &[Value]) -> Vec<bool> {
        let schema = closed::<T>();
        let fits = |value: &Value| {
            let fits = validate_against(&schema, value).is_ok();
            assert!(!fits || T::deserialize(value).is_ok(), "{value} fits {schema:#}");
            fits
        };
        values.iter().map(fits).collect()
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "read by its schema only")]
    struct Line {
        item: String,
        #[serde(default)]
        tags: BTreeMap<String, String>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "read by its schema only")]
    struct Order {
        lines: Vec<Line>,
        first: Option<Line>,
        note: Option<String>,
    }

    #[test]
    fn unknown_fields_are_refused_at_every_depth_and_maps_stay_open() {
        let line = json!({"item": "bolt", "tags": {"any": "name"}});
        let values = [
            json!({"lines": [line], "first": line, "note": null}),
            json!({"lines": [], "x": 1}),
            json!({"lines": [{"item": "bolt", "x": 1}]}),
            json!({"lines": [], "first": {"item": "bolt", "x": 1}}),
        ];
        assert_eq!(fitting::<Order>(&values), [true, false, false, false]);
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "read by its schema only")]
    struct Flat {
        a: i64,
        #[serde(flatten)]
        line: Line,
        #[serde(flatten)]
        how: How,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "camelCase")]
    #[expect(dead_code, reason = "read by its schema only")]
    enum How {
        Card { number: String },
        Line(Line),
        Cash,
    }

    #[test]
    fn flattened_parts_do_not_refuse_their_neighbours() {
        let values = [
            json!({"a": 1, "item": "bolt", "kind": "card", "number": "4"}),
            json!({"a": 1, "item": "bolt", "kind": "cash"}),
            json!({"a": 1, "item": "bolt", "kind": "cash", "x": 1}),
            json!({"a": 1, "item": "bolt", "kind": "card", "number": "4", "x": 1}),
        ];
        assert_eq!(fitting::<Flat>(&values), [true, true, false, false]);
    }

    #[test]
    fn a_tag_beside_a_reference_is_known() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "read by its schema only")]
        struct Both {
            how: How,
            alone: Line,
            all: Vec<How>,
        }
        let line = json!({"kind": "line", "item": "bolt"});
        let values = [
            json!({"how": line, "alone": {"item": "nut"}, "all": [line, {"kind": "cash"}]}),
            json!({"how": line, "alone": {"item": "nut", "x": 1}, "all": []}),
            json!({"how": line, "alone": {"item": "nut"}, "all": [{"kind": "cash", "x": 1}]}),
            json!({"how": {"kind": "line", "item": "b", "x": 1}, "alone": {"item": "n"}, "all": []}),
        ];
        assert_eq!(fitting::<Both>(&values), [true, false, false, false]);
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "read by its schema only")]
    enum Loose {
        Line { item: String },
        Other(Vec<Value>),
        Map(BTreeMap<String, i64>),
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "read by its schema only")]
    struct Rest {
        a: i64,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "read by its schema only")]
    struct Perhaps {
        a: i64,
        #[serde(flatten)]
        how: Option<How>,
    }

    #[test]
    fn branches_are_closed_one_by_one_and_a_flattened_map_keeps_its_struct_open() {
        let values = [
            json!({"item": "bolt"}),
            json!([1, {"x": 1}]),
            json!({"x": 1}),
            json!({"item": "bolt", "x": 1}),
        ];
        assert_eq!(fitting::<Loose>(&values), [true, true, true, false]);
        assert_eq!(fitting::<Rest>(&[json!({"a": 1, "x": {"y": 1}})]), [true]);
        let values = [
            json!({"a": 1}),
            json!({"a": 1, "kind": "card", "number": "4"}),
            json!({"a": 1, "x": 1}),
        ];
        assert_eq!(fitting::<Perhaps>(&values), [true, true, false]);
    }

    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "read by its schema only")]
    struct Tree {
        name: String,
        children: Vec<Tree>,
    }

    #[test]
    fn a_type_without_fields_takes_none_and_recursion_ends() {
        assert_eq!(fitting::<Nothing>(&[json!({}), json!({"x": 1})]), [true, false]);
        let leaf = json!({"name": "leaf", "children": []});
        let values = [
            json!({"name": "root", "children": [leaf]}),
            json!({"name": "root", "children": [{"name": "leaf", "children": [], "x": 1}]}),
        ];
        assert_eq!(fitting::<Tree>(&values), [true, false]);
        assert_eq!(fitting::<Value>(&[json!({"x": 1})]), [true]);
    }

    #[test]
    fn what_the_author_said_stands() {
        let mut schema = json!({"properties": {"a": {}}, "additionalProperties": true});
        let before = schema.clone();
        close_schema(&mut schema);
        assert_eq!(schema, before);
        let mut anything = json!(true);
        close_schema(&mut anything);
        assert_eq!(anything, json!(true));
    }
}
