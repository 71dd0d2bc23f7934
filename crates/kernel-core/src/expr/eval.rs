//! The evaluator.
use super::{Expr, Template};
use crate::Timestamp;
use serde_json::Value;

/// What an expression can see.
pub trait Names {
    /// The value of a root: `inputs`, `context`, `run`, `bindings`, `trigger`, a saved name.
    fn root(&self, name: &str) -> Option<&Value>;
    /// The event's time.
    fn now(&self) -> Timestamp;
}
/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// A reference leads nowhere (`VALUE_UNAVAILABLE`).
    #[error("`{reference}` has no value")]
    Missing {
        /// As the author would write it.
        reference: String,
    },
    /// `EXPRESSION_ERROR`.
    #[error("{message}")]
    Invalid {
        /// What is wrong, in a sentence.
        message: String,
    },
}
/// Evaluates an expression.
pub fn evaluate(_expr: &Expr, _names: &dyn Names) -> Result<Value, EvalError> {
    Ok(Value::Null)
}
/// Evaluates a condition: must be a bool.
pub fn evaluate_condition(_expr: &Expr, _names: &dyn Names) -> Result<bool, EvalError> {
    Ok(true)
}
/// Renders a template.
pub fn render(_template: &Template, _names: &dyn Names) -> Result<Value, EvalError> {
    Ok(Value::Null)
}

/// Structural equality.
#[must_use]
pub fn equal(a: &Value, b: &Value) -> bool {
    a == b
}
