//! Value slots: from nodes to templates.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use surefoot_kernel_core::expr::{Expr, Piece, Template};

use super::Compiler;
use super::place::Place;
use crate::check::shape::{Kinds, Shape};
use crate::diagnostic::Path;
use crate::expression::{Part, split};
use crate::yaml::{Entry, Node, NodeKind, Scalar};

/// The kinds of the values that expressions will yield, by the first byte of their scalars.
pub(crate) type Slots = BTreeMap<usize, Kinds>;

/// A value slot.
pub(super) struct Slot<'a> {
    pub(super) template: Template,
    pub(super) shape: Shape<'a>,
}

impl<'a> Compiler<'a> {
    /// Compiles a value slot of any type. `None` if something in it was reported.
    pub(super) fn slot(&mut self, node: &Node, path: &Path<'_>) -> Option<Slot<'a>> {
        self.config(node, path, &mut Slots::new())
    }

    /// Compiles a value slot and notes which scalars of it are computed.
    pub(super) fn config(
        &mut self,
        node: &Node,
        path: &Path<'_>,
        slots: &mut Slots,
    ) -> Option<Slot<'a>> {
        match &node.kind {
            NodeKind::Scalar(scalar) => {
                let slot = self.scalar(node, scalar, path);
                let is_literal = matches!(&slot, Some(Slot { template: Template::Literal(_), .. }));
                if !is_literal {
                    let kinds = slot.as_ref().map_or(Kinds::ANY, |slot| slot.shape.kinds());
                    slots.insert(node.span.start, kinds);
                }
                slot
            }
            NodeKind::List(items) => {
                let parts = items.iter().enumerate();
                let parts: Vec<Option<Template>> = parts
                    .map(|(index, item)| {
                        Some(self.config(item, &path.index(index), slots)?.template)
                    })
                    .collect();
                let parts = parts.into_iter().collect::<Option<Vec<_>>>()?;
                Some(Slot { template: list(parts), shape: Shape::Kinds(Kinds::LIST) })
            }
            NodeKind::Map(entries) => {
                let parts: Vec<Option<(String, Template)>> = entries
                    .iter()
                    .map(|entry| {
                        self.refuse_computed_key(entry, path);
                        let slot = self.config(&entry.value, &path.key(&entry.key), slots)?;
                        Some((entry.key.clone(), slot.template))
                    })
                    .collect();
                let parts = parts.into_iter().collect::<Option<Vec<_>>>()?;
                Some(Slot { template: object(parts), shape: Shape::Kinds(Kinds::OBJECT) })
            }
        }
    }

    fn refuse_computed_key(&mut self, entry: &Entry, path: &Path<'_>) {
        if entry.key.contains("${{") {
            let message = "a key cannot be computed";
            self.report.error("EXPRESSION_NOT_ALLOWED", entry.key_span, path, message);
        }
    }

    fn scalar(&mut self, node: &Node, scalar: &Scalar, path: &Path<'_>) -> Option<Slot<'a>> {
        if !scalar.text.contains("${{") {
            let shape = Shape::Kinds(Kinds::of(&scalar.value));
            return Some(Slot { template: Template::Literal(scalar.value.clone()), shape });
        }
        let place = Place::new(self.report.source(), node.span, scalar);
        let parts = self.parts(scalar, &place, path)?;
        if let [Part::Expression { inner, .. }] = parts.as_slice() {
            let (expr, shape) = self.expression(&scalar.text, inner, &place, path)?;
            return Some(Slot { template: Template::Expr(expr), shape });
        }
        let pieces = self.pieces(scalar, &parts, &place, path)?;
        Some(Slot { template: Template::Text(pieces), shape: Shape::Kinds(Kinds::TEXT) })
    }

    fn parts(&mut self, scalar: &Scalar, place: &Place<'_>, path: &Path<'_>) -> Option<Vec<Part>> {
        match split(&scalar.text) {
            Ok(parts) => Some(parts),
            Err(fault) => {
                let (span, _) = place.locate(self.report.source(), &fault.range);
                self.report.error(fault.code, span, path, fault.message).maybe_help(fault.help);
                None
            }
        }
    }

    fn pieces(
        &mut self,
        scalar: &Scalar,
        parts: &[Part],
        place: &Place<'_>,
        path: &Path<'_>,
    ) -> Option<Vec<Piece>> {
        let mut pieces = Vec::with_capacity(parts.len());
        let mut complete = true;
        for part in parts {
            match part {
                Part::Text(range) => {
                    let text = scalar.text.get(range.clone()).unwrap_or_default();
                    pieces.push(Piece::Text(text.to_owned()));
                }
                Part::Expression { inner, whole } => {
                    match self.expression(&scalar.text, inner, place, path) {
                        Some((expr, shape)) => {
                            self.expect_scalar(shape.kinds(), whole, place, path);
                            pieces.push(Piece::Expr(expr));
                        }
                        None => complete = false,
                    }
                }
            }
        }
        complete.then_some(pieces)
    }

    fn expect_scalar(
        &mut self,
        kinds: Kinds,
        range: &std::ops::Range<usize>,
        place: &Place<'_>,
        path: &Path<'_>,
    ) {
        if kinds.overlaps(Kinds::SCALAR) {
            return;
        }
        let (span, _) = place.locate(self.report.source(), range);
        let message = format!("{kinds} cannot stand inside a text");
        self.report
            .error("WRONG_TYPE", span, path, message)
            .help("use `json(x)` to write it as JSON, or `join(list, ', ')`");
    }

    /// A scalar that is exactly one expression.
    pub(super) fn single_expression(
        &mut self,
        node: &Node,
        path: &Path<'_>,
        what: &str,
    ) -> Option<(Expr, Shape<'a>)> {
        let slot = match &node.kind {
            NodeKind::Scalar(scalar) => self.scalar(node, scalar, path)?,
            NodeKind::List(_) | NodeKind::Map(_) => {
                let message = format!("{what} is one expression; this is {}", node.describe());
                self.report.error("NOT_AN_EXPRESSION", node.span, path, message);
                return None;
            }
        };
        if let Template::Expr(expr) = slot.template {
            return Some((expr, slot.shape));
        }
        let message = format!("{what} is exactly one expression");
        let text = node.as_scalar().map_or("", |scalar| scalar.text.as_str());
        let help = if text.contains("${{") {
            "nothing may stand around `${{ }}`: put everything inside".to_owned()
        } else {
            format!("write \"${{{{ {} }}}}\"", text.chars().take(80).collect::<String>())
        };
        self.report.error("NOT_AN_EXPRESSION", node.span, path, message).help(help);
        None
    }
}

/// A list without any expression in it is a literal.
fn list(parts: Vec<Template>) -> Template {
    if !parts.iter().all(is_literal) {
        return Template::List(parts);
    }
    Template::Literal(Value::Array(parts.into_iter().map(into_literal).collect()))
}

/// Keys are sorted: their order in the source carries no meaning, so it makes no other steps either.
fn object(mut parts: Vec<(String, Template)>) -> Template {
    parts.sort_by(|one, two| one.0.cmp(&two.0));
    if !parts.iter().all(|(_, part)| is_literal(part)) {
        return Template::Object(parts);
    }
    let members = parts.into_iter().map(|(key, part)| (key, into_literal(part)));
    Template::Literal(Value::Object(members.collect::<Map<_, _>>()))
}

const fn is_literal(template: &Template) -> bool {
    matches!(template, Template::Literal(_))
}

fn into_literal(template: Template) -> Value {
    match template {
        Template::Literal(value) => value,
        Template::Expr(_) | Template::Text(_) | Template::List(_) | Template::Object(_) => {
            Value::Null
        }
    }
}
