//! Equality and order.

use std::cmp::Ordering;

use serde_json::Value;

use super::eval::{Stop, Walk, kind};
use super::extent::Excess;
use super::number::{self, Number};
use crate::payload::PAYLOAD_MAX_DEPTH;

/// Exact structural equality: no coercion, no normalisation; the order of keys does not count, and numbers compare
/// by mathematical value.
pub(super) fn equal<'a>(walk: &mut Walk<'a>, a: &Value, b: &Value) -> Result<bool, Stop<'a>> {
    equal_within(walk, a, b, PAYLOAD_MAX_DEPTH)
}

fn equal_within<'a>(
    walk: &mut Walk<'a>,
    a: &Value,
    b: &Value,
    levels: usize,
) -> Result<bool, Stop<'a>> {
    let Some(below) = levels.checked_sub(1) else {
        return Err(Stop::Invalid(Excess::Levels.to_string()));
    };
    match (a, b) {
        (Value::Null, Value::Null) => Ok(true),
        (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
        (Value::Number(_), Value::Number(_)) => Ok(match (Number::of(a), Number::of(b)) {
            (Some(a), Some(b)) => number::compare(a, b).is_eq(),
            (None, _) | (_, None) => false,
        }),
        (Value::String(a), Value::String(b)) => {
            walk.charge_bytes(a.len().min(b.len()))?;
            Ok(a == b)
        }
        (Value::Array(a), Value::Array(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.iter().zip(b) {
                walk.charge(1)?;
                if !equal_within(walk, a, b, below)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Object(a), Value::Object(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (key, a) in a {
                walk.charge(1)?;
                walk.charge_bytes(key.len())?;
                let Some(b) = b.get(key) else { return Ok(false) };
                if !equal_within(walk, a, b, below)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// The order of two numbers, or of two texts by code points.
pub(super) fn order<'a>(
    walk: &mut Walk<'a>,
    sign: &str,
    a: &Value,
    b: &Value,
) -> Result<Ordering, Stop<'a>> {
    if let (Value::String(a), Value::String(b)) = (a, b) {
        walk.charge_bytes(a.len().min(b.len()))?;
        return Ok(a.cmp(b));
    }
    match (Number::of(a), Number::of(b)) {
        (Some(a), Some(b)) => Ok(number::compare(a, b)),
        (None, _) | (_, None) => Err(Stop::Invalid(format!(
            "`{sign}` takes two numbers or two texts, not {} and {}",
            kind(a),
            kind(b)
        ))),
    }
}
