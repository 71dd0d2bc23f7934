//! Strict YAML: a tree with places, or everything that is wrong with the text.

mod event;
mod load;
mod scalar;

use serde_json::Value;

use crate::source::Span;

pub(crate) use load::load;

/// Characters of a source.
pub const SOURCE_MAX_CHARS: usize = 200_000;
/// Nesting of lists and mappings in a source.
pub const SOURCE_MAX_DEPTH: usize = 64;
/// Scalars, lists and mappings of a source.
pub const SOURCE_MAX_NODES: usize = 50_000;

/// Characters of a key.
pub const KEY_MAX_CHARS: usize = 1_000;

/// A node of the tree. At most [`SOURCE_MAX_DEPTH`] deep, so that it may be walked by recursion.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) kind: NodeKind,
}

#[derive(Debug)]
pub(crate) enum NodeKind {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A member of a mapping; no key is there twice.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) value: Node,
}

#[derive(Debug)]
pub(crate) struct Scalar {
    /// After unescaping and folding.
    pub(crate) text: String,
    /// What it means by the core schema: null, a bool, a number or a text.
    pub(crate) value: Value,
}

impl Node {
    pub(crate) const fn as_scalar(&self) -> Option<&Scalar> {
        match &self.kind {
            NodeKind::Scalar(scalar) => Some(scalar),
            NodeKind::List(_) | NodeKind::Map(_) => None,
        }
    }

    pub(crate) fn as_list(&self) -> Option<&[Node]> {
        match &self.kind {
            NodeKind::List(items) => Some(items),
            NodeKind::Scalar(_) | NodeKind::Map(_) => None,
        }
    }

    pub(crate) fn as_map(&self) -> Option<&[Entry]> {
        match &self.kind {
            NodeKind::Map(entries) => Some(entries),
            NodeKind::Scalar(_) | NodeKind::List(_) => None,
        }
    }

    /// What it is, for people.
    pub(crate) fn describe(&self) -> &'static str {
        match &self.kind {
            NodeKind::List(_) => "a list",
            NodeKind::Map(_) => "a mapping",
            NodeKind::Scalar(scalar) => match &scalar.value {
                Value::Null if scalar.text.is_empty() => "nothing",
                Value::Null => "null",
                Value::Bool(_) => "a bool",
                Value::Number(_) => "a number",
                Value::String(_) | Value::Array(_) | Value::Object(_) => "a text",
            },
        }
    }
}
