//! A config with stand-ins for its expressions.

use serde_json::{Map, Value};

use crate::check::shape::Kinds;
use crate::yaml::{Entry, Node, NodeKind};

/// A config and what is known about its expressions.
pub(crate) struct Probe<'n> {
    root: &'n Node,
    /// The kinds that the expression in a scalar can yield, by the scalar's first byte.
    slots: &'n std::collections::BTreeMap<usize, Kinds>,
}

/// A place in a config.
#[derive(Clone, Copy)]
pub(crate) struct Located<'n> {
    pub(crate) node: &'n Node,
    /// The member that the node is the value of.
    pub(crate) entry: Option<&'n Entry>,
}

impl<'n> Probe<'n> {
    pub(crate) const fn new(
        root: &'n Node,
        slots: &'n std::collections::BTreeMap<usize, Kinds>,
    ) -> Self {
        Self { root, slots }
    }

    /// The config as JSON, each expression replaced by a value of a kind that it may yield.
    pub(crate) fn value(&self) -> Value {
        self.value_of(self.root)
    }

    fn value_of(&self, node: &Node) -> Value {
        match &node.kind {
            NodeKind::List(items) => {
                Value::Array(items.iter().map(|item| self.value_of(item)).collect())
            }
            NodeKind::Map(entries) => {
                let members = entries.iter().map(|it| (it.key.clone(), self.value_of(&it.value)));
                Value::Object(members.collect::<Map<_, _>>())
            }
            NodeKind::Scalar(scalar) => {
                self.slot(node).map_or_else(|| scalar.value.clone(), stand_in)
            }
        }
    }

    /// What the expression in a scalar can yield, if there is one.
    pub(crate) fn slot(&self, node: &Node) -> Option<Kinds> {
        let computed = node.as_scalar().filter(|scalar| scalar.text.contains("${{"));
        computed.and_then(|_| self.slots.get(&node.span.start)).copied()
    }

    /// Whether some expression stands at or under a node.
    pub(crate) fn has_slot(&self, node: &Node) -> bool {
        let end = node.span.end.max(node.span.start + 1);
        self.slots.range(node.span.start..end).next().is_some()
    }

    /// Follows the segments of a JSON pointer.
    pub(crate) fn locate<'s>(&self, segments: impl Iterator<Item = &'s str>) -> Located<'n> {
        let mut at = Located { node: self.root, entry: None };
        for segment in segments {
            let next = match &at.node.kind {
                NodeKind::Map(entries) => {
                    let entry = entries.iter().find(|entry| entry.key == segment);
                    entry.map(|entry| Located { node: &entry.value, entry: Some(entry) })
                }
                NodeKind::List(items) => {
                    let item = segment.parse::<usize>().ok().and_then(|index| items.get(index));
                    item.map(|node| Located { node, entry: None })
                }
                NodeKind::Scalar(_) => None,
            };
            let Some(next) = next else { break };
            at = next;
        }
        at
    }
}

fn stand_in(kinds: Kinds) -> Value {
    if kinds.overlaps(Kinds::NULL) {
        Value::Null
    } else if kinds.overlaps(Kinds::TEXT) {
        Value::String(String::new())
    } else if kinds.overlaps(Kinds::INTEGER) {
        Value::from(0)
    } else if kinds.overlaps(Kinds::FLOAT) {
        Value::from(0.5)
    } else if kinds.overlaps(Kinds::BOOL) {
        Value::Bool(false)
    } else if kinds.overlaps(Kinds::LIST) {
        Value::Array(Vec::new())
    } else {
        Value::Object(Map::new())
    }
}
