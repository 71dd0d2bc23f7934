//! Our canonical encoding of JSON values, and the hashes made of it.
//!
//! Keys are sorted by their UTF-8 bytes; integers are decimal; floats are the shortest text that reads back the
//! same, always with a point or an exponent; -0.0 is written 0.0; strings are escaped minimally; no Unicode
//! normalisation. RFC 8785 is not used: it sends every number through a float and loses digits.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The canonical text of a value.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// Lower-case hexadecimal SHA-256 of the canonical text of a value.
#[must_use]
pub fn hash(value: &Value) -> String {
    hash_text(&canonical(value))
}

/// Lower-case hexadecimal SHA-256 of a text as it stands.
#[must_use]
pub fn hash_text(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for nibble in bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]) {
        text.push(char::from_digit(nibble.into(), 16).unwrap_or('0'));
    }
    text
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
            out.push('{');
            for (index, (key, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_text(key, out);
                out.push(':');
                write(member, out);
            }
            out.push('}');
        }
    }
}

fn write_number(number: &serde_json::Number, out: &mut String) {
    match number.as_f64() {
        Some(float) if number.is_f64() => {
            let float = if float == 0.0 { 0.0 } else { float };
            // Debug is the shortest text that reads back the same, and always marks a float.
            let _ = write!(out, "{float:?}");
        }
        Some(_) | None => {
            let _ = write!(out, "{number}");
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_keep_value_and_type() {
        let value = json!([1, 1.0, -0.0, 0.1, 1e300, u64::MAX, i64::MIN, 9007199254740993_i64]);
        assert_eq!(
            canonical(&value),
            "[1,1.0,0.0,0.1,1e300,18446744073709551615,-9223372036854775808,9007199254740993]"
        );
    }

    #[test]
    fn order_of_keys_carries_no_meaning_and_text_is_not_normalised() {
        let one: Value = serde_json::from_str(r#"{"b":1,"a":"e\u0301\n\u0000"}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"a":"e\u0301\n\u0000","b":1}"#).unwrap();
        assert_eq!(canonical(&one), canonical(&two));
        assert_eq!(canonical(&one), "{\"a\":\"e\u{301}\\u000a\\u0000\",\"b\":1}");
        assert_ne!(hash(&one), hash(&json!({"a": "\u{e9}\n\0", "b": 1})));
    }

    #[test]
    fn hashes_are_sha_256_in_hex() {
        assert_eq!(
            hash_text("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
