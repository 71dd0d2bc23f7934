//! The functions of the language.

use std::borrow::Cow;

use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

use super::eval::{Operand, Stop, Walk, bool, kind};
use super::extent::measure;
use super::number::{self, Number};
use super::{EXPRESSION_MAX_OUTPUT_BYTES, Expr, Function, compare};
use crate::canonical::canonical;
use crate::payload::{PAYLOAD_MAX_DEPTH, Payload, PayloadError, Rule};
use crate::{Micros, Timestamp};

/// 0000-01-01T00:00:00Z and 9999-12-31T23:59:59.999999Z in microseconds: what RFC 3339 can write.
const YEARS: std::ops::RangeInclusive<i64> = -62_167_219_200_000_000..=253_402_300_799_999_999;

/// Evaluates the arguments from left to right, then calls the function.
pub(super) fn call<'a>(
    walk: &mut Walk<'a>,
    function: Function,
    arguments: &'a [Expr],
) -> Operand<'a> {
    let (name, arity) = (function.name(), function.arity());
    if arguments.len() != arity {
        let message = format!("{name}() takes {arity} arguments, not {}", arguments.len());
        return Err(Stop::Invalid(message));
    }
    let mut values = [Cow::Owned(Value::Null), Cow::Owned(Value::Null)];
    for (value, argument) in values.iter_mut().zip(arguments) {
        *value = match walk.value(argument) {
            Err(Stop::Missing(_)) if function == Function::Has => return Ok(bool(false)),
            other => other?,
        };
    }
    let [first, second] = values;
    Call { walk, function }.apply(first, &second)
}

/// One call whose arguments have their values.
struct Call<'w, 'a> {
    walk: &'w mut Walk<'a>,
    function: Function,
}

impl<'a> Call<'_, 'a> {
    /// A function with fewer than two parameters does not look at the others.
    fn apply(&mut self, a: Cow<'a, Value>, b: &Value) -> Operand<'a> {
        match self.function {
            Function::Now => self.walk.text(self.walk.now().to_string()),
            // It has been evaluated, so it is there.
            Function::Has => Ok(bool(true)),
            Function::Size => self.size(&a),
            Function::String => self.string(a),
            Function::Number => self.number(&a),
            Function::Json => self.json(&a),
            Function::Lower => self.changed(&a, str::to_lowercase),
            Function::Upper => self.changed(&a, str::to_uppercase),
            Function::Trim => self.changed(&a, |text| text.trim().to_owned()),
            Function::Contains => self.test(&a, b, |text, part| text.contains(part)),
            Function::StartsWith => self.test(&a, b, |text, part| text.starts_with(part)),
            Function::EndsWith => self.test(&a, b, |text, part| text.ends_with(part)),
            Function::SameText => self.test(&a, b, |one, other| folded(one).eq(folded(other))),
            Function::Includes => self.includes(&a, b),
            Function::Join => self.join(&a, b),
            Function::Split => self.split(&a, b),
            Function::Keys => self.keys(&a),
            Function::Min => self.pick(a, b, std::cmp::Ordering::is_gt),
            Function::Max => self.pick(a, b, std::cmp::Ordering::is_lt),
            Function::Round => self.round(a),
            Function::Plus => self.plus(&a, b),
        }
    }

    fn size(&mut self, value: &Value) -> Operand<'a> {
        let size = match value {
            Value::String(text) => {
                self.walk.charge_bytes(text.len())?;
                text.chars().count()
            }
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                return Err(self.refuse("a text, a list or an object", value));
            }
        };
        Ok(Cow::Owned(Value::from(size)))
    }

    fn string(&mut self, value: Cow<'a, Value>) -> Operand<'a> {
        match &*value {
            Value::String(_) => Ok(value),
            Value::Null | Value::Bool(_) | Value::Number(_) => self.walk.text(canonical(&value)),
            Value::Array(_) | Value::Object(_) => {
                Err(self
                    .refuse("null, a bool, a number or a text (json() takes any value)", &value))
            }
        }
    }

    /// Takes what JSON takes as a number, without white space around it.
    fn number(&mut self, value: &Value) -> Operand<'a> {
        let text = self.text(value)?;
        let shown = || text.chars().take(60).collect::<String>();
        let like_one = text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
            && text.ends_with(|c: char| c.is_ascii_digit());
        let read = like_one.then(|| Payload::parse(text));
        match read {
            Some(Ok(payload)) => Ok(Cow::Owned(payload.into_value())),
            Some(Err(PayloadError {
                rule: rule @ (Rule::IntegerRange | Rule::NumberRange),
                ..
            })) => Err(Stop::Invalid(format!("number() cannot take `{}`: {rule}", shown()))),
            Some(Err(_)) | None => Err(Stop::Invalid(format!(
                "`{}` is not a number: one looks like -12 or 1.5e3",
                shown()
            ))),
        }
    }

    fn json(&mut self, value: &Value) -> Operand<'a> {
        let bytes = measure(value, EXPRESSION_MAX_OUTPUT_BYTES, PAYLOAD_MAX_DEPTH)
            .map_err(|excess| Stop::Invalid(excess.to_string()))?;
        self.walk.charge_bytes(bytes)?;
        self.walk.text(canonical(value))
    }

    fn changed(&mut self, value: &Value, change: fn(&str) -> String) -> Operand<'a> {
        let text = self.text(value)?;
        self.walk.text(change(text))
    }

    fn test(&mut self, a: &Value, b: &Value, holds: fn(&str, &str) -> bool) -> Operand<'a> {
        let (a, b) = (self.text(a)?, self.text(b)?);
        Ok(bool(holds(a, b)))
    }

    fn includes(&mut self, list: &Value, wanted: &Value) -> Operand<'a> {
        for item in self.list(list)? {
            self.walk.charge(1)?;
            if compare::equal(self.walk, item, wanted)? {
                return Ok(bool(true));
            }
        }
        Ok(bool(false))
    }

    fn join(&mut self, list: &Value, between: &Value) -> Operand<'a> {
        let (items, between) = (self.list(list)?, self.text(between)?);
        let mut out = String::new();
        for (index, item) in items.iter().enumerate() {
            self.walk.charge(1)?;
            if index > 0 {
                self.walk.charge_bytes(between.len())?;
                out.push_str(between);
            }
            out.push_str(self.text(item)?);
        }
        self.walk.text(out)
    }

    fn split(&mut self, text: &Value, at: &Value) -> Operand<'a> {
        let (text, at) = (self.text(text)?, self.text(at)?);
        let mut parts = Vec::new();
        if at.is_empty() {
            for char in text.chars() {
                self.walk.charge(1)?;
                parts.push(Value::String(char.into()));
            }
        } else {
            for part in text.split(at) {
                self.walk.charge(1)?;
                parts.push(Value::String(part.to_owned()));
            }
        }
        Ok(Cow::Owned(Value::Array(parts)))
    }

    fn keys(&mut self, value: &Value) -> Operand<'a> {
        let Value::Object(members) = value else {
            return Err(self.refuse("an object", value));
        };
        let mut keys = Vec::new();
        for key in members.keys() {
            self.walk.charge(1)?;
            self.walk.charge_bytes(key.len())?;
            keys.push(key.as_str());
        }
        keys.sort_unstable();
        Ok(Cow::Owned(keys.into_iter().map(Value::from).collect()))
    }

    /// The first of two numbers, unless their order says that it is the second; equal numbers yield the first.
    fn pick(
        &mut self,
        a: Cow<'a, Value>,
        b: &Value,
        is_second: fn(std::cmp::Ordering) -> bool,
    ) -> Operand<'a> {
        let ordering = number::compare(self.numeric(&a)?, self.numeric(b)?);
        Ok(if is_second(ordering) { Cow::Owned(b.clone()) } else { a })
    }

    fn round(&mut self, value: Cow<'a, Value>) -> Operand<'a> {
        Ok(number::round(self.numeric(&value)?).map_or(value, Cow::Owned))
    }

    fn plus(&mut self, time: &Value, span: &Value) -> Operand<'a> {
        let (time, span) = (self.text(time)?, self.text(span)?);
        let fault = |error: &dyn std::fmt::Display| Stop::Invalid(format!("plus(): {error}"));
        let time: Timestamp = time.parse().map_err(|error| fault(&error))?;
        let span: Micros = span.parse().map_err(|error| fault(&error))?;
        let sum = time.plus(span);
        if !YEARS.contains(&sum.micros()) {
            return Err(fault(&"the sum is outside of the years 0000 to 9999"));
        }
        self.walk.text(sum.to_string())
    }

    /// A text argument, paid for.
    fn text<'v>(&mut self, value: &'v Value) -> Result<&'v str, Stop<'a>> {
        let text = value.as_str().ok_or_else(|| self.refuse("a text", value))?;
        self.walk.charge_bytes(text.len())?;
        Ok(text)
    }

    fn list<'v>(&self, value: &'v Value) -> Result<&'v [Value], Stop<'a>> {
        value.as_array().map(Vec::as_slice).ok_or_else(|| self.refuse("a list", value))
    }

    fn numeric(&self, value: &Value) -> Result<Number, Stop<'a>> {
        Number::of(value).ok_or_else(|| self.refuse("a number", value))
    }

    /// Nothing is coerced.
    fn refuse(&self, takes: &str, value: &Value) -> Stop<'a> {
        Stop::Invalid(format!("{}() takes {takes}, not {}", self.function.name(), kind(value)))
    }
}

/// Compatibility forms and case taken away: NFKC, lower case character by character (a sigma has one form), and
/// NFKC again because lower case may compose anew.
fn folded(text: &str) -> impl Iterator<Item = char> {
    let one_sigma = |char| if char == 'ς' { 'σ' } else { char };
    text.nfkc().flat_map(char::to_lowercase).map(one_sigma).nfkc()
}
