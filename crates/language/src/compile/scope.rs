//! Names and where they are visible.

use std::collections::BTreeMap;

use crate::check::shape::Shape;
use crate::source::Span;

/// Roots of references that no name may hide.
pub(crate) const RESERVED_ROOTS: &[&str] = &["inputs", "trigger", "context", "bindings", "run"];
/// Words that mean a value.
pub(crate) const LITERALS: &[&str] = &["true", "false", "null"];

/// The names that are visible at one place. Inner scopes never hide outer names, so one map is enough.
#[derive(Default)]
pub(crate) struct Scope<'m> {
    visible: BTreeMap<String, (Shape<'m>, Span)>,
    order: Vec<String>,
    /// Names whose scope has ended, for better messages.
    ended: BTreeMap<String, Span>,
}

impl<'m> Scope<'m> {
    pub(crate) fn get(&self, name: &str) -> Option<&Shape<'m>> {
        self.visible.get(name).map(|(shape, _)| shape)
    }

    /// Where a visible name was bound.
    pub(crate) fn bound_at(&self, name: &str) -> Option<Span> {
        self.visible.get(name).map(|(_, span)| *span)
    }

    /// Where a name that is not visible any more was bound.
    pub(crate) fn ended_at(&self, name: &str) -> Option<Span> {
        self.ended.get(name).copied()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.visible.keys().map(String::as_str)
    }

    pub(crate) fn bind(&mut self, name: &str, shape: Shape<'m>, span: Span) {
        if self.visible.insert(name.to_owned(), (shape, span)).is_none() {
            self.order.push(name.to_owned());
        }
    }

    /// Where the inner scope that begins now will end: see [`Scope::leave`].
    pub(crate) fn enter(&self) -> usize {
        self.order.len()
    }

    /// Forgets the names that were bound since.
    pub(crate) fn leave(&mut self, mark: usize) {
        for name in self.order.split_off(mark.min(self.order.len())) {
            if let Some((_, span)) = self.visible.remove(&name) {
                self.ended.insert(name, span);
            }
        }
    }
}
