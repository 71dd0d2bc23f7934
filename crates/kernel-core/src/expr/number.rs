//! Numbers: compared by mathematical value, calculated as `i64` or `f64`, and never rounded without a reason.

use std::cmp::Ordering;

use serde_json::Value;

use super::eval::kind;

/// A number of JSON.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    /// An integer that arithmetic can take.
    Int(i64),
    /// An integer beyond `i64`: it can be compared and passed on.
    Big(u64),
    /// A finite float.
    Float(f64),
}

impl Number {
    /// A value as number.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let number = value.as_number()?;
        let integer = number.as_i64().map(Self::Int).or_else(|| number.as_u64().map(Self::Big));
        integer.or_else(|| number.as_f64().map(Self::Float))
    }

    fn integer(self) -> Option<i128> {
        match self {
            Self::Int(int) => Some(int.into()),
            Self::Big(big) => Some(big.into()),
            Self::Float(_) => None,
        }
    }

    /// The nearest float.
    fn float(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Big(big) => big as f64,
            Self::Float(float) => float,
        }
    }
}

/// By mathematical value, exactly.
pub(super) fn compare(a: Number, b: Number) -> Ordering {
    match (a.integer(), b.integer()) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(int), None) => compare_mixed(int, b.float()),
        (None, Some(int)) => compare_mixed(int, a.float()).reverse(),
        // Floats of JSON are finite, so they always compare.
        (None, None) => a.float().partial_cmp(&b.float()).unwrap_or(Ordering::Equal),
    }
}

/// The whole part of the float decides as an integer, which is exact; its fraction decides a tie.
fn compare_mixed(int: i128, float: f64) -> Ordering {
    // The cast is exact, or saturates far beyond every 64-bit integer.
    let whole = float.trunc() as i128;
    int.cmp(&whole).then_with(|| 0.0.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal))
}

/// An operator on two numbers.
pub(super) struct Arithmetic {
    sign: char,
    whole: fn(i64, i64) -> Whole,
    float: Option<fn(f64, f64) -> f64>,
}

/// What an operator makes of two integers.
enum Whole {
    Is(i64),
    /// Both operands as floats give the result.
    Fraction,
    Overflow,
    ByZero,
}

impl From<Option<i64>> for Whole {
    fn from(checked: Option<i64>) -> Self {
        checked.map_or(Self::Overflow, Self::Is)
    }
}

pub(super) const ADD: Arithmetic =
    Arithmetic { sign: '+', whole: |a, b| a.checked_add(b).into(), float: Some(|a, b| a + b) };
pub(super) const SUBTRACT: Arithmetic =
    Arithmetic { sign: '-', whole: |a, b| a.checked_sub(b).into(), float: Some(|a, b| a - b) };
pub(super) const MULTIPLY: Arithmetic =
    Arithmetic { sign: '*', whole: |a, b| a.checked_mul(b).into(), float: Some(|a, b| a * b) };
pub(super) const DIVIDE: Arithmetic =
    Arithmetic { sign: '/', whole: divide, float: Some(|a, b| a / b) };
pub(super) const REMAINDER: Arithmetic = Arithmetic { sign: '%', whole: remainder, float: None };

fn divide(a: i64, b: i64) -> Whole {
    match (a.checked_rem(b), a.checked_div(b)) {
        _ if b == 0 => Whole::ByZero,
        (Some(0), Some(quotient)) => Whole::Is(quotient),
        (Some(_), Some(_)) => Whole::Fraction,
        (None, _) | (_, None) => Whole::Overflow,
    }
}

fn remainder(a: i64, b: i64) -> Whole {
    if b == 0 { Whole::ByZero } else { Whole::Is(a.wrapping_rem(b)) }
}

impl Arithmetic {
    /// The result, or why there is none.
    pub(super) fn apply(&self, a: Number, b: Number) -> Result<Value, String> {
        let sign = self.sign;
        if matches!(a, Number::Big(_)) || matches!(b, Number::Big(_)) {
            return Err(beyond());
        }
        if let (Number::Int(a), Number::Int(b)) = (a, b) {
            match (self.whole)(a, b) {
                Whole::Is(result) => return Ok(result.into()),
                Whole::Overflow => return Err(format!("{a} {sign} {b} is beyond 64 bits")),
                Whole::ByZero => return Err(format!("{a} {sign} {b} is a division by zero")),
                Whole::Fraction => {}
            }
        }
        let Some(float) = self.float else {
            return Err(format!("`{sign}` takes whole numbers, not {:?}", fraction_of(a, b)));
        };
        let (a, b) = (a.float(), b.float());
        if sign == '/' && b == 0.0 {
            return Err(format!("{a:?} / {b:?} is a division by zero"));
        }
        finite(float(a, b)).ok_or_else(|| format!("{a:?} {sign} {b:?} is no finite number"))
    }

    /// Says what was wrong with two operands that are not both numbers.
    pub(super) fn refuse(&self, left: &Value, right: &Value) -> String {
        let (sign, takes) = (self.sign, if self.sign == '+' { " or two texts" } else { "" });
        let hint = if self.sign == '+' && (left.is_string() || right.is_string()) {
            ": string() makes a text of a number, number() a number of a text"
        } else {
            ""
        };
        format!("`{sign}` takes two numbers{takes}, not {} and {}{hint}", kind(left), kind(right))
    }
}

/// The operand that is not whole.
fn fraction_of(a: Number, b: Number) -> f64 {
    if a.integer().is_none() { a.float() } else { b.float() }
}

/// A float as a value, unless JSON has no such number.
fn finite(float: f64) -> Option<Value> {
    serde_json::Number::from_f64(float).map(Value::Number)
}

fn beyond() -> String {
    format!("integers beyond {} can be compared and passed on, but not calculated with", i64::MAX)
}

/// `-x`
pub(super) fn negate(number: Number) -> Result<Value, String> {
    match number {
        Number::Int(int) => {
            int.checked_neg().map(Value::from).ok_or_else(|| format!("-({int}) is beyond 64 bits"))
        }
        Number::Big(_) => Err(beyond()),
        Number::Float(float) => finite(-float).ok_or_else(beyond),
    }
}

/// Half away from zero; nothing if the number is whole already. Beyond `i64` it stays a float.
pub(super) fn round(number: Number) -> Option<Value> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    let Number::Float(float) = number else { return None };
    let whole = float.round();
    if (-END..END).contains(&whole) { Some(Value::from(whole as i64)) } else { finite(whole) }
}
