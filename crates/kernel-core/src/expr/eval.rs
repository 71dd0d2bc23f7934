//! The evaluator: one walk over the tree that borrows from what the expression sees and copies at the very end.

use std::borrow::Cow;

use serde_json::Value;

use super::extent::{Excess, measure};
use super::number::{self, Arithmetic, Number};
use super::{
    Binary, EXPRESSION_MAX_DEPTH, EXPRESSION_MAX_OUTPUT_BYTES, EXPRESSION_MAX_STEPS, Expr, Unary,
};
use super::{compare, functions};
use crate::payload::PAYLOAD_MAX_DEPTH;
use crate::{Dependency, Timestamp};

/// What an expression can see.
pub trait Names {
    /// The value of a root: `inputs`, `context`, `run`, `bindings`, `trigger`, a saved name.
    fn root(&self, name: &str) -> Option<&Value>;

    /// The event's time.
    fn now(&self) -> Timestamp;

    /// What a root without a value waits for; nothing if it is just missing. Asked only when
    /// [`root`](Self::root) has nothing.
    fn waits_for(&self, _name: &str) -> Option<Dependency> {
        None
    }
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// A reference leads nowhere (`VALUE_UNAVAILABLE`).
    #[error("`{reference}` has no value")]
    Missing {
        /// As the author would write it, up to the first part that is missing.
        reference: String,
    },
    /// `EXPRESSION_ERROR`.
    #[error("{message}")]
    Invalid {
        /// What is wrong, in a sentence.
        message: String,
    },
    /// The value is not there yet: the step waits for this, the first one in source order.
    #[error("the value waits for `{}` `{}`", .0.kind(), .0.key())]
    Waiting(Dependency),
}

/// Evaluates an expression.
pub fn evaluate(expr: &Expr, names: &dyn Names) -> Result<Value, EvalError> {
    evaluate_within(expr, names, PAYLOAD_MAX_DEPTH).map(|(value, _)| value.into_owned())
}

/// The value of an expression, which may have this many levels, and its bytes as JSON.
pub(super) fn evaluate_within<'a>(
    expr: &'a Expr,
    names: &'a dyn Names,
    levels: usize,
) -> Result<(Cow<'a, Value>, usize), EvalError> {
    let value = walk(expr, names)?;
    let bytes = measure(&value, EXPRESSION_MAX_OUTPUT_BYTES, levels).map_err(invalid)?;
    Ok((value, bytes))
}

/// Evaluates a condition: must be a bool.
pub fn evaluate_condition(expr: &Expr, names: &dyn Names) -> Result<bool, EvalError> {
    let value = walk(expr, names)?;
    truth(expr, &value).map_err(EvalError::from)
}

/// Evaluates an expression without a look at the size of its value.
fn walk<'a>(expr: &'a Expr, names: &'a dyn Names) -> Operand<'a> {
    // Before anything else: the walk and everything below it recurse.
    if expr.is_deeper_than(EXPRESSION_MAX_DEPTH) {
        let message = format!("the expression is nested deeper than {EXPRESSION_MAX_DEPTH} levels");
        return Err(Stop::Invalid(message));
    }
    Walk { names, steps: EXPRESSION_MAX_STEPS }.value(expr)
}

/// A value on the way: borrowed where it can be.
pub(super) type Operand<'a> = Result<Cow<'a, Value>, Stop<'a>>;

/// What ends the walk, or is handled on the way: cheap where [`EvalError`] holds text.
#[derive(Debug)]
pub(super) enum Stop<'a> {
    /// `??` and `has()` handle it.
    Missing(&'a Expr),
    /// Nothing handles it.
    Invalid(String),
    /// `&&` and `||` may pass over it.
    Waiting {
        /// The first in source order.
        on: Dependency,
        /// An operand behind it stopped: what follows must not decide, because it might never be reached.
        sealed: bool,
    },
}

impl From<Stop<'_>> for EvalError {
    fn from(stop: Stop<'_>) -> Self {
        match stop {
            Stop::Missing(expr) => Self::Missing { reference: reference(expr) },
            Stop::Invalid(message) => Self::Invalid { message },
            Stop::Waiting { on, sealed: _ } => Self::Waiting(on),
        }
    }
}

pub(super) fn invalid(message: impl ToString) -> EvalError {
    EvalError::Invalid { message: message.to_string() }
}

/// One evaluation.
pub(super) struct Walk<'a> {
    names: &'a dyn Names,
    /// How many are left.
    steps: u32,
}

impl<'a> Walk<'a> {
    /// Pays for work; refuses when the steps are used up.
    pub(super) fn charge(&mut self, steps: usize) -> Result<(), Stop<'a>> {
        let left = u32::try_from(steps).ok().and_then(|steps| self.steps.checked_sub(steps));
        self.steps = left.ok_or_else(|| {
            Stop::Invalid(format!("the expression takes more than {EXPRESSION_MAX_STEPS} steps"))
        })?;
        Ok(())
    }

    /// Pays for a look at each byte of a text.
    pub(super) fn charge_bytes(&mut self, bytes: usize) -> Result<(), Stop<'a>> {
        self.charge(bytes / 64)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.names.now()
    }

    /// A new text as a value; texts on the way are bounded like results.
    pub(super) fn text(&self, text: String) -> Operand<'a> {
        if text.len() > EXPRESSION_MAX_OUTPUT_BYTES {
            return Err(Stop::Invalid(Excess::Bytes(EXPRESSION_MAX_OUTPUT_BYTES).to_string()));
        }
        Ok(Cow::Owned(Value::String(text)))
    }

    /// The value of one node.
    pub(super) fn value(&mut self, expr: &'a Expr) -> Operand<'a> {
        self.charge(1)?;
        match expr {
            Expr::Literal(value) => Ok(Cow::Borrowed(value)),
            Expr::Name(name) => match self.names.root(name) {
                Some(value) => Ok(Cow::Borrowed(value)),
                None => Err(match self.names.waits_for(name) {
                    Some(on) => Stop::Waiting { on, sealed: false },
                    None => Stop::Missing(expr),
                }),
            },
            Expr::Member(of, name) => member(self.value(of)?, name).ok_or(Stop::Missing(expr)),
            Expr::Index(of, index) => item(self.value(of)?, *index).ok_or(Stop::Missing(expr)),
            Expr::Unary(operator, of) => self.unary(*operator, of),
            Expr::Binary(operator, left, right) => self.binary(*operator, left, right),
            Expr::Call(function, arguments) => functions::call(self, *function, arguments),
        }
    }

    fn unary(&mut self, operator: Unary, of: &'a Expr) -> Operand<'a> {
        match operator {
            Unary::Not => Ok(bool(!self.condition(of)?)),
            Unary::Negate => {
                let value = self.value(of)?;
                let number = Number::of(&value).ok_or_else(|| {
                    Stop::Invalid(format!("`-` takes a number, not {}", kind(&value)))
                })?;
                number::negate(number).map(Cow::Owned).map_err(Stop::Invalid)
            }
        }
    }

    fn binary(&mut self, operator: Binary, left: &'a Expr, right: &'a Expr) -> Operand<'a> {
        match operator {
            Binary::Coalesce => match self.value(left) {
                Ok(value) if !value.is_null() => Ok(value),
                Ok(_) | Err(Stop::Missing(_)) => self.value(right),
                stop @ Err(Stop::Invalid(_) | Stop::Waiting { .. }) => stop,
            },
            Binary::Or => self.logic(left, right, true),
            Binary::And => self.logic(left, right, false),
            Binary::Equal => Ok(bool(self.equal(left, right)?)),
            Binary::NotEqual => Ok(bool(!self.equal(left, right)?)),
            Binary::Less => self.ordered("<", left, right, std::cmp::Ordering::is_lt),
            Binary::LessOrEqual => self.ordered("<=", left, right, std::cmp::Ordering::is_le),
            Binary::Greater => self.ordered(">", left, right, std::cmp::Ordering::is_gt),
            Binary::GreaterOrEqual => self.ordered(">=", left, right, std::cmp::Ordering::is_ge),
            Binary::Add => self.add(left, right),
            Binary::Subtract => self.arithmetic(&number::SUBTRACT, left, right),
            Binary::Multiply => self.arithmetic(&number::MULTIPLY, left, right),
            Binary::Divide => self.arithmetic(&number::DIVIDE, left, right),
            Binary::Remainder => self.arithmetic(&number::REMAINDER, left, right),
        }
    }

    /// `&&` (`false` decides) and `||` (`true` decides), left to right.
    ///
    /// An operand that waits is passed over: a later one may decide, otherwise the whole waits. An operand that
    /// stops behind a waiting one ends the walk without deciding: it might never be reached once the earlier one
    /// has its value (`ready && order.total > 5`), so the whole waits, and stops then if it must.
    fn logic(&mut self, left: &'a Expr, right: &'a Expr, decides: bool) -> Operand<'a> {
        let waiting = match self.condition(left) {
            Ok(truth) if truth == decides => return Ok(bool(decides)),
            Ok(_) => None,
            Err(Stop::Waiting { on, sealed: false }) => Some(on),
            Err(stop) => return Err(stop),
        };
        match (self.condition(right), waiting) {
            (result, None) => result.map(bool),
            (Ok(truth), Some(_)) if truth == decides => Ok(bool(decides)),
            (Ok(_) | Err(Stop::Waiting { sealed: false, .. }), Some(on)) => {
                Err(Stop::Waiting { on, sealed: false })
            }
            (Err(_), Some(on)) => Err(Stop::Waiting { on, sealed: true }),
        }
    }

    fn condition(&mut self, expr: &'a Expr) -> Result<bool, Stop<'a>> {
        truth(expr, &*self.value(expr)?)
    }

    fn equal(&mut self, left: &'a Expr, right: &'a Expr) -> Result<bool, Stop<'a>> {
        let (left, right) = (self.value(left)?, self.value(right)?);
        compare::equal(self, &left, &right)
    }

    fn ordered(
        &mut self,
        sign: &str,
        left: &'a Expr,
        right: &'a Expr,
        holds: fn(std::cmp::Ordering) -> bool,
    ) -> Operand<'a> {
        let (left, right) = (self.value(left)?, self.value(right)?);
        let ordering = compare::order(self, sign, &left, &right)?;
        Ok(bool(holds(ordering)))
    }

    fn add(&mut self, left: &'a Expr, right: &'a Expr) -> Operand<'a> {
        let (left, right) = (self.value(left)?, self.value(right)?);
        let (Value::String(start), Value::String(end)) = (&*left, &*right) else {
            return calculate(&number::ADD, &left, &right);
        };
        self.charge_bytes(start.len().saturating_add(end.len()))?;
        // A text that was joined already only grows.
        let mut text = match left {
            Cow::Owned(Value::String(text)) => text,
            Cow::Owned(_) | Cow::Borrowed(_) => start.clone(),
        };
        text.push_str(end);
        self.text(text)
    }

    fn arithmetic(
        &mut self,
        operator: &Arithmetic,
        left: &'a Expr,
        right: &'a Expr,
    ) -> Operand<'a> {
        let (left, right) = (self.value(left)?, self.value(right)?);
        calculate(operator, &left, &right)
    }
}

fn calculate<'a>(operator: &Arithmetic, left: &Value, right: &Value) -> Operand<'a> {
    let (Some(a), Some(b)) = (Number::of(left), Number::of(right)) else {
        return Err(Stop::Invalid(operator.refuse(left, right)));
    };
    operator.apply(a, b).map(Cow::Owned).map_err(Stop::Invalid)
}

pub(super) fn bool<'a>(value: bool) -> Cow<'a, Value> {
    Cow::Owned(Value::Bool(value))
}

/// An own property of an object; texts and lists have none.
fn member<'a>(of: Cow<'a, Value>, name: &str) -> Option<Cow<'a, Value>> {
    match of {
        Cow::Borrowed(value) => value.as_object()?.get(name).map(Cow::Borrowed),
        Cow::Owned(Value::Object(mut members)) => members.remove(name).map(Cow::Owned),
        Cow::Owned(_) => None,
    }
}

/// An item of a list, counted from zero; texts have none.
fn item(of: Cow<'_, Value>, index: u64) -> Option<Cow<'_, Value>> {
    let index = usize::try_from(index).ok()?;
    match of {
        Cow::Borrowed(value) => value.as_array()?.get(index).map(Cow::Borrowed),
        Cow::Owned(Value::Array(mut items)) => {
            (index < items.len()).then(|| Cow::Owned(items.swap_remove(index)))
        }
        Cow::Owned(_) => None,
    }
}

/// There is no truthiness.
fn truth<'a>(expr: &Expr, value: &Value) -> Result<bool, Stop<'a>> {
    value.as_bool().ok_or_else(|| {
        let (subject, kind) = (reference(expr), kind(value));
        Stop::Invalid(format!(
            "a condition must be true or false, but `{subject}` is {kind}: compare it with something"
        ))
    })
}

/// What a value is, in words.
pub(super) const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A reference as the author would write it; other parts of an expression are cut short.
pub(super) fn reference(expr: &Expr) -> String {
    match expr {
        Expr::Name(name) => name.clone(),
        Expr::Member(of, name) if is_identifier(name) => format!("{}.{name}", reference(of)),
        Expr::Member(of, name) => format!("{}['{name}']", reference(of)),
        Expr::Index(of, index) => format!("{}[{index}]", reference(of)),
        Expr::Call(function, arguments) if arguments.is_empty() => format!("{}()", function.name()),
        Expr::Call(function, _) => format!("{}(…)", function.name()),
        Expr::Literal(_) | Expr::Unary(..) | Expr::Binary(..) => "(…)".to_owned(),
    }
}

fn is_identifier(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(is_part) && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

/// Whether two values are equal as `==` sees them: what a `switch` decides by. Bounded like an expression.
///
/// # Errors
/// `Invalid` if comparing takes more than [`EXPRESSION_MAX_STEPS`].
pub fn equal(a: &Value, b: &Value) -> Result<bool, EvalError> {
    struct Nothing;
    impl Names for Nothing {
        fn root(&self, _: &str) -> Option<&Value> {
            None
        }

        fn now(&self) -> Timestamp {
            Timestamp::default()
        }
    }
    let mut walk = Walk { names: &Nothing, steps: EXPRESSION_MAX_STEPS };
    compare::equal(&mut walk, a, b).map_err(EvalError::from)
}
