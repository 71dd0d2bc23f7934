//! What is known about a value: the kinds it can be of, and the members it can have.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use surefoot_kernel_core::plan::InputType;

/// A set of kinds of JSON values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kinds(u8);

impl Kinds {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const BOOL: Self = Self(2);
    pub(crate) const INTEGER: Self = Self(4);
    pub(crate) const FLOAT: Self = Self(8);
    pub(crate) const TEXT: Self = Self(16);
    pub(crate) const LIST: Self = Self(32);
    pub(crate) const OBJECT: Self = Self(64);
    pub(crate) const NUMBER: Self = Self(4 | 8);
    pub(crate) const SCALAR: Self = Self(1 | 2 | 4 | 8 | 16);
    pub(crate) const ANY: Self = Self(127);

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) const fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOL,
            Value::Number(number) if number.is_f64() => Self::FLOAT,
            Value::Number(_) => Self::INTEGER,
            Value::String(_) => Self::TEXT,
            Value::Array(_) => Self::LIST,
            Value::Object(_) => Self::OBJECT,
        }
    }

    /// By a schema's `type`.
    fn of_type(name: &str) -> Self {
        match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOL,
            "integer" | "number" => Self::NUMBER,
            "string" => Self::TEXT,
            "array" => Self::LIST,
            "object" => Self::OBJECT,
            _ => Self::ANY,
        }
    }

    pub(crate) const fn of_input(kind: InputType) -> Self {
        match kind {
            InputType::Text | InputType::Time => Self::TEXT,
            InputType::Number => Self::NUMBER,
            InputType::Integer => Self::INTEGER,
            InputType::Bool => Self::BOOL,
            InputType::List => Self::LIST,
            InputType::Object => Self::OBJECT,
        }
    }
}

/// For people: `a number or a text`.
impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ANY {
            return f.write_str("anything");
        }
        let names = [
            (Self::NULL, "null"),
            (Self::BOOL, "a bool"),
            (Self::NUMBER, "a number"),
            (Self::TEXT, "a text"),
            (Self::LIST, "a list"),
            (Self::OBJECT, "an object"),
        ];
        let named = names.iter().filter(|(kind, _)| self.overlaps(*kind)).map(|(_, name)| *name);
        f.write_str(&named.collect::<Vec<_>>().join(" or "))
    }
}

/// What is known about a value.
#[derive(Debug, Clone)]
pub(crate) enum Shape<'m> {
    /// Its kinds only.
    Kinds(Kinds),
    /// A JSON Schema that it fits: `node` inside `root`.
    Schema { root: &'m Value, node: &'m Value },
    /// An object with these members and no others.
    Members(BTreeMap<String, Shape<'m>>),
    /// A list of such items.
    Items(Box<Shape<'m>>),
}

/// What a look at a member or an item tells.
#[derive(Debug, Clone)]
pub(crate) enum Found<'m> {
    /// It may be there, and then has this shape.
    Yes(Shape<'m>),
    /// Nothing is known.
    Maybe,
    /// It is never there.
    Never,
}

/// References between parts of a schema that are followed before a check gives up.
const MAX_HOPS: usize = 8;

impl<'m> Shape<'m> {
    pub(crate) const ANY: Self = Self::Kinds(Kinds::ANY);

    pub(crate) const fn schema(schema: &'m Value) -> Self {
        Self::Schema { root: schema, node: schema }
    }

    pub(crate) fn kinds(&self) -> Kinds {
        match self {
            Self::Kinds(kinds) => *kinds,
            Self::Schema { root, node } => schema_kinds(root, node, MAX_HOPS),
            Self::Members(_) => Kinds::OBJECT,
            Self::Items(_) => Kinds::LIST,
        }
    }

    pub(crate) fn member(&self, name: &str) -> Found<'m> {
        match self {
            Self::Kinds(_) | Self::Items(_) => Found::Maybe,
            Self::Schema { root, node } => schema_member(root, node, name, MAX_HOPS),
            Self::Members(members) => members.get(name).cloned().map_or(Found::Never, Found::Yes),
        }
    }

    /// The names that members can have, for suggestions.
    pub(crate) fn member_names(&self) -> Vec<&str> {
        match self {
            Self::Kinds(_) | Self::Items(_) => Vec::new(),
            Self::Schema { root, node } => {
                let mut names = Vec::new();
                schema_names(root, node, MAX_HOPS, &mut names);
                names
            }
            Self::Members(members) => members.keys().map(String::as_str).collect(),
        }
    }

    /// Whether it may have members that it does not name: it names none, or says so.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Kinds(_) | Self::Items(_) => true,
            Self::Schema { root, node } => {
                self.member_names().is_empty() || allows_others(root, node, MAX_HOPS)
            }
            Self::Members(_) => false,
        }
    }

    pub(crate) fn item(&self) -> Self {
        match self {
            Self::Items(item) => (**item).clone(),
            Self::Schema { root, node } => {
                let node = resolved(root, node, MAX_HOPS);
                match node.get("items") {
                    Some(items) if node.get("prefixItems").is_none() => {
                        Self::Schema { root, node: items }
                    }
                    Some(_) | None => Self::ANY,
                }
            }
            Self::Kinds(_) | Self::Members(_) => Self::ANY,
        }
    }
}

/// Follows `$ref`s inside one document; anything else stands as it is.
fn resolved<'m>(root: &'m Value, node: &'m Value, hops: usize) -> &'m Value {
    let target = node
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| reference.strip_prefix('#'))
        .and_then(|pointer| root.pointer(pointer));
    match target {
        Some(target) if hops > 0 => resolved(root, target, hops - 1),
        Some(_) | None => node,
    }
}

fn branches<'m>(node: &'m Value, keyword: &str) -> impl Iterator<Item = &'m Value> {
    node.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

fn either(node: &Value) -> impl Iterator<Item = &Value> {
    branches(node, "anyOf").chain(branches(node, "oneOf"))
}

fn schema_kinds(root: &Value, node: &Value, hops: usize) -> Kinds {
    let node = resolved(root, node, hops);
    let Some(fewer) = hops.checked_sub(1) else { return Kinds::ANY };
    let mut kinds = match node.get("type") {
        Some(Value::String(name)) => Kinds::of_type(name),
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .fold(Kinds::NONE, |kinds, name| kinds.or(Kinds::of_type(name))),
        Some(_) | None => Kinds::ANY,
    };
    if let Some(constant) = node.get("const") {
        kinds = kinds.and(loose(Kinds::of(constant)));
    }
    if let Some(options) = node.get("enum").and_then(Value::as_array) {
        let options = options.iter().map(|option| loose(Kinds::of(option)));
        kinds = kinds.and(options.fold(Kinds::NONE, Kinds::or));
    }
    if let Some(union) = either(node).map(|it| schema_kinds(root, it, fewer)).reduce(Kinds::or) {
        kinds = kinds.and(union);
    }
    branches(node, "allOf").fold(kinds, |kinds, it| kinds.and(schema_kinds(root, it, fewer)))
}

/// Schemas do not tell 1 from 1.0.
const fn loose(kinds: Kinds) -> Kinds {
    if kinds.overlaps(Kinds::NUMBER) { kinds.or(Kinds::NUMBER) } else { kinds }
}

fn schema_member<'m>(root: &'m Value, node: &'m Value, name: &str, hops: usize) -> Found<'m> {
    let node = resolved(root, node, hops);
    let Some(fewer) = hops.checked_sub(1) else { return Found::Maybe };
    if let Some(found) = node.get("properties").and_then(|properties| properties.get(name)) {
        return Found::Yes(Shape::Schema { root, node: found });
    }
    let mut all_never = true;
    let mut found: Option<Shape<'m>> = None;
    let mut any_branch = false;
    for branch in either(node).filter(|it| schema_kinds(root, it, fewer).overlaps(Kinds::OBJECT)) {
        any_branch = true;
        match schema_member(root, branch, name, fewer) {
            Found::Yes(shape) => found = Some(found.map_or(shape, |_| Shape::ANY)),
            Found::Maybe => all_never = false,
            Found::Never => {}
        }
    }
    for branch in branches(node, "allOf") {
        match schema_member(root, branch, name, fewer) {
            Found::Yes(shape) => return Found::Yes(shape),
            Found::Never => return Found::Never,
            Found::Maybe => {}
        }
    }
    match (found, node.get("additionalProperties")) {
        (Some(_), _) if !all_never => Found::Yes(Shape::ANY),
        (Some(shape), _) => Found::Yes(shape),
        (None, Some(Value::Object(_))) => Found::Maybe,
        (None, _) if is_closed(node) || (any_branch && all_never) => Found::Never,
        (None, _) => Found::Maybe,
    }
}

/// Whether a schema itself speaks of members that it does not name.
fn allows_others(root: &Value, node: &Value, hops: usize) -> bool {
    let node = resolved(root, node, hops);
    let Some(fewer) = hops.checked_sub(1) else { return true };
    let keywords = ["additionalProperties", "unevaluatedProperties", "patternProperties"];
    let says_so = |keyword: &str| node.get(keyword).is_some_and(|it| *it != Value::Bool(false));
    keywords.into_iter().any(says_so)
        || either(node).chain(branches(node, "allOf")).any(|it| allows_others(root, it, fewer))
}

fn is_closed(node: &Value) -> bool {
    let is_false = |keyword: &str| node.get(keyword) == Some(&Value::Bool(false));
    (is_false("additionalProperties") || is_false("unevaluatedProperties"))
        && node.get("patternProperties").is_none()
}

fn schema_names<'m>(root: &'m Value, node: &'m Value, hops: usize, names: &mut Vec<&'m str>) {
    let node = resolved(root, node, hops);
    let Some(fewer) = hops.checked_sub(1) else { return };
    let properties = node.get("properties").and_then(Value::as_object);
    names.extend(properties.into_iter().flatten().map(|(name, _)| name.as_str()));
    for branch in either(node).chain(branches(node, "allOf")) {
        schema_names(root, branch, fewer, names);
    }
}

/// Every property that a schema names for the object at a path of an instance, whatever variant that is of.
pub(crate) fn named_properties<'m>(root: &'m Value, path: &[String]) -> Vec<&'m str> {
    let mut nodes = vec![root];
    for segment in path {
        let mut next = Vec::new();
        for node in nodes {
            schema_children(root, node, segment, MAX_HOPS, &mut next);
        }
        next.truncate(MAX_VARIANTS);
        nodes = next;
    }
    let mut names = Vec::new();
    for node in nodes {
        schema_names(root, node, MAX_HOPS, &mut names);
    }
    names
}

/// Variants of one place that are looked at.
const MAX_VARIANTS: usize = 64;

fn schema_children<'m>(
    root: &'m Value,
    node: &'m Value,
    segment: &str,
    hops: usize,
    children: &mut Vec<&'m Value>,
) {
    let node = resolved(root, node, hops);
    let Some(fewer) = hops.checked_sub(1).filter(|_| children.len() < MAX_VARIANTS) else { return };
    let property = node.get("properties").and_then(|properties| properties.get(segment));
    let item = segment.parse::<usize>().ok().and_then(|_| node.get("items"));
    let other = node.get("additionalProperties").filter(|_| property.is_none());
    children.extend(property.into_iter().chain(item).chain(other));
    for branch in either(node).chain(branches(node, "allOf")) {
        schema_children(root, branch, segment, fewer, children);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_closed_schema_knows_which_members_can_never_be_there() {
        let schema = json!({
            "type": "object",
            "properties": { "id": { "type": "string" }, "next": { "$ref": "#" } },
            "unevaluatedProperties": false,
        });
        let shape = Shape::schema(&schema);
        assert!(matches!(shape.member("id"), Found::Yes(id) if id.kinds() == Kinds::TEXT));
        assert!(matches!(shape.member("it"), Found::Never));
        let Found::Yes(next) = shape.member("next") else { panic!() };
        assert_eq!(next.kinds(), Kinds::OBJECT);
        assert!(matches!(next.member("it"), Found::Never));
        assert_eq!(next.member_names(), ["id", "next"]);
    }

    #[test]
    fn a_union_knows_what_all_its_variants_know() {
        let schema = json!({ "anyOf": [
            { "type": "object", "properties": { "a": { "type": "integer" } }, "additionalProperties": false },
            { "type": "null" },
        ]});
        let shape = Shape::schema(&schema);
        assert_eq!(shape.kinds(), Kinds::OBJECT.or(Kinds::NULL));
        assert!(matches!(shape.member("a"), Found::Yes(_)));
        assert!(matches!(shape.member("b"), Found::Never));
        let open = json!({ "anyOf": [{ "type": "object" }, { "type": "null" }] });
        assert!(matches!(Shape::schema(&open).member("b"), Found::Maybe));
    }

    #[test]
    fn endless_references_end() {
        let schema = json!({ "$ref": "#", "anyOf": [{ "$ref": "#" }] });
        assert_eq!(Shape::schema(&schema).kinds(), Kinds::ANY);
        let schema = json!({ "allOf": [{ "$ref": "#" }] });
        assert!(matches!(Shape::schema(&schema).member("x"), Found::Maybe));
        assert!(Shape::schema(&schema).member_names().is_empty());
    }
}
