//! How large a value is as JSON, without writing it.

use std::fmt::Write;

use serde_json::Value;

use crate::payload::PAYLOAD_MAX_DEPTH;

/// A value has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Excess {
    /// More bytes than this.
    #[error("the value is larger than {} KiB of JSON", .0 / 1024)]
    Bytes(usize),
    /// More than [`PAYLOAD_MAX_DEPTH`], the values around it counted.
    #[error("the value is nested deeper than {PAYLOAD_MAX_DEPTH} levels")]
    Levels,
}

/// The bytes of a value as compact JSON, if they are at most `limit` and it has at most `levels`.
pub(super) fn measure(value: &Value, limit: usize, levels: usize) -> Result<usize, Excess> {
    let mut left = Some(limit);
    take(value, &mut left, levels)?;
    left.map(|left| limit - left).ok_or(Excess::Bytes(limit))
}

/// Subtracts the bytes of a value from what is left; nothing is left once it went below zero.
fn take(value: &Value, left: &mut Option<usize>, levels: usize) -> Result<(), Excess> {
    let bytes = match value {
        Value::Null | Value::Bool(true) => 4,
        Value::Bool(false) => 5,
        Value::Number(number) => {
            let mut length = Length(0);
            let _ = write!(length, "{number}");
            length.0
        }
        Value::String(text) => text_bytes(text),
        // Brackets, and a comma between two items.
        Value::Array(items) => items.len().saturating_sub(1).saturating_add(2),
        // Braces, a colon each, and a comma between two members.
        Value::Object(members) => {
            let keys = members.keys().map(|key| text_bytes(key).saturating_add(2)).sum::<usize>();
            keys.saturating_add(if members.is_empty() { 2 } else { 1 })
        }
    };
    *left = left.and_then(|left| left.checked_sub(bytes));
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        Value::Array(items) => take_all(items.iter(), left, levels),
        Value::Object(members) => take_all(members.values(), left, levels),
    }
}

fn take_all<'v>(
    values: impl Iterator<Item = &'v Value>,
    left: &mut Option<usize>,
    levels: usize,
) -> Result<(), Excess> {
    if levels <= 1 {
        return Err(Excess::Levels);
    }
    for value in values {
        if left.is_none() {
            break;
        }
        take(value, left, levels - 1)?;
    }
    Ok(())
}

/// A text with its quotes and escapes.
fn text_bytes(text: &str) -> usize {
    let extra = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0x00..=0x1f => 5,
        _ => 0,
    };
    text.bytes().map(extra).sum::<usize>().saturating_add(text.len()).saturating_add(2)
}

/// Counts what is written to it.
struct Length(usize);

impl Write for Length {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 = self.0.saturating_add(text.len());
        Ok(())
    }
}
