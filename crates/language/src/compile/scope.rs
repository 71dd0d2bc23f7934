//! Names and where they are visible.

use std::collections::BTreeMap;

use crate::check::shape::Shape;
use crate::source::Span;

/// Roots of references that no name may hide.
pub(crate) const RESERVED_ROOTS: &[&str] = &["inputs", "trigger", "context", "bindings", "run"];
/// Words that mean a value.
pub(crate) const LITERALS: &[&str] = &["true", "false", "null"];

/// The names that are visible at one place. Inner scopes do not hide outer names, so one map is enough;
/// the one exception sets the hidden name aside.
#[derive(Default)]
pub(crate) struct Scope<'m> {
    visible: BTreeMap<String, (Shape<'m>, Span)>,
    order: Vec<String>,
    /// Names whose scope has ended, for better messages.
    ended: BTreeMap<String, Span>,
}

/// A name that is hidden for a while.
pub(crate) struct SetAside<'m>((Shape<'m>, Span));

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

    /// Takes a visible name away for a while: see [`Scope::put_back`].
    pub(crate) fn set_aside(&mut self, name: &str) -> Option<SetAside<'m>> {
        self.visible.remove(name).map(SetAside)
    }

    /// Makes a name visible again. Its scope ends where it always would.
    pub(crate) fn put_back(&mut self, name: &str, SetAside(bound): SetAside<'m>) {
        self.visible.insert(name.to_owned(), bound);
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
