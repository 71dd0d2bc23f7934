//! Templates: a value slot of the source with its expressions replaced.

use serde_json::{Map, Value};

use super::eval::{evaluate_within, invalid, kind, reference};
use super::extent::{Excess, measure};
use super::{
    EXPRESSION_MAX_OUTPUT_BYTES, EvalError, Expr, Names, Piece, TEMPLATE_MAX_OUTPUT_BYTES, Template,
};
use crate::canonical::canonical;
use crate::payload::PAYLOAD_MAX_DEPTH;

/// Renders a template: each expression is replaced by its value.
///
/// It is a single pass: what a value brings along, `${{` included, stays as it is.
pub fn render(template: &Template, names: &dyn Names) -> Result<Value, EvalError> {
    Renderer { names, left: TEMPLATE_MAX_OUTPUT_BYTES }.slot(template, PAYLOAD_MAX_DEPTH)
}

struct Renderer<'a> {
    names: &'a dyn Names,
    /// Bytes of JSON that the values of the template may still take.
    left: usize,
}

impl Renderer<'_> {
    /// `levels` are those that the value of this slot may have.
    fn slot(&mut self, template: &Template, levels: usize) -> Result<Value, EvalError> {
        match template {
            Template::Literal(value) => {
                self.spend(measured(value, self.left, levels)?)?;
                Ok(value.clone())
            }
            Template::Expr(expr) => {
                let (value, bytes) = evaluate_within(expr, self.names, levels)?;
                self.spend(bytes)?;
                Ok(value.into_owned())
            }
            Template::Text(pieces) => {
                let value = Value::String(self.text(pieces)?);
                self.spend(measured(&value, EXPRESSION_MAX_OUTPUT_BYTES, levels)?)?;
                Ok(value)
            }
            Template::List(items) => {
                let levels = below(levels)?;
                let items = items.iter().map(|item| self.slot(item, levels));
                items.collect::<Result<Vec<_>, _>>().map(Value::Array)
            }
            Template::Object(members) => {
                let levels = below(levels)?;
                let member = |(key, slot): &(String, Template)| -> Result<_, EvalError> {
                    Ok((key.clone(), self.slot(slot, levels)?))
                };
                members.iter().map(member).collect::<Result<Map<_, _>, _>>().map(Value::Object)
            }
        }
    }

    fn text(&self, pieces: &[Piece]) -> Result<String, EvalError> {
        let mut out = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Expr(expr) => self.piece(expr, &mut out)?,
            }
            if out.len() > EXPRESSION_MAX_OUTPUT_BYTES {
                return Err(invalid(Excess::Bytes(EXPRESSION_MAX_OUTPUT_BYTES)));
            }
        }
        Ok(out)
    }

    fn piece(&self, expr: &Expr, out: &mut String) -> Result<(), EvalError> {
        let (value, _) = evaluate_within(expr, self.names, PAYLOAD_MAX_DEPTH)?;
        match &*value {
            Value::Null => {}
            Value::String(text) => out.push_str(text),
            scalar @ (Value::Bool(_) | Value::Number(_)) => out.push_str(&canonical(scalar)),
            Value::Array(_) | Value::Object(_) => {
                let (subject, kind) = (reference(expr), kind(&value));
                return Err(invalid(format!(
                    "`{subject}` is {kind} and cannot stand inside a text: put json() around it"
                )));
            }
        }
        Ok(())
    }

    fn spend(&mut self, bytes: usize) -> Result<(), EvalError> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| invalid(Excess::Bytes(TEMPLATE_MAX_OUTPUT_BYTES)))?;
        Ok(())
    }
}

/// The levels that are left inside a list or an object.
fn below(levels: usize) -> Result<usize, EvalError> {
    if levels <= 1 { Err(invalid(Excess::Levels)) } else { Ok(levels - 1) }
}

fn measured(value: &Value, limit: usize, levels: usize) -> Result<usize, EvalError> {
    measure(value, limit, levels).map_err(invalid)
}
