//! What a plain scalar means: YAML 1.2's core schema, narrowed to what everybody reads in one way.

use serde_json::{Number, Value};

/// How a plain scalar reads.
#[derive(Debug, PartialEq)]
pub(super) enum Reading {
    /// In one way.
    Clear(Value),
    /// Differently by people, by YAML 1.1 and by YAML 1.2.
    Ambiguous { message: String, help: String },
    /// A number that no plan could hold.
    Unusable { message: String, help: String },
}

/// Reads a plain scalar that stands where a value is wanted.
pub(super) fn read(text: &str) -> Reading {
    match text {
        "" | "null" => return Reading::Clear(Value::Null),
        "true" => return Reading::Clear(Value::Bool(true)),
        "false" => return Reading::Clear(Value::Bool(false)),
        _ => {}
    }
    if let Some(meant) = meant_constant(text) {
        return ambiguous(text, meant);
    }
    if is_json_number(text) {
        return number(text);
    }
    match number_elsewhere(text) {
        Some(as_what) => ambiguous(text, &format!("{as_what}, or the text")),
        None => Reading::Clear(Value::String(text.to_owned())),
    }
}

/// Whether a plain scalar that stands as a key would be something other than a text.
pub(super) fn is_no_text_key(text: &str) -> bool {
    let is_null_or_bool = matches!(text, "" | "~")
        || ["null", "true", "false"].iter().any(|word| is_cased(text, word));
    is_null_or_bool || is_json_number(text) || number_elsewhere(text).is_some()
}

/// What else a word could mean.
fn meant_constant(text: &str) -> Option<&'static str> {
    let is = |words: &[&str]| words.iter().any(|word| is_cased(text, word));
    if text == "~" || is(&["null"]) {
        Some("null, or the text")
    } else if is(&["yes", "on", "y", "true"]) {
        Some("true, or the text")
    } else if is(&["no", "off", "n", "false"]) {
        Some("false, or the text")
    } else {
        None
    }
}

/// The spellings that YAML knows of a word: lower case, capitalised, upper case.
fn is_cased(text: &str, word: &str) -> bool {
    text.eq_ignore_ascii_case(word)
        && (text == word
            || text.bytes().all(|byte| byte.is_ascii_uppercase())
            || text.bytes().skip(1).all(|byte| byte.is_ascii_lowercase()))
}

fn ambiguous(text: &str, meant: &str) -> Reading {
    let message = format!("`{text}` is read in two ways: {meant}");
    Reading::Ambiguous { message, help: quoting(text) }
}

fn quoting(text: &str) -> String {
    let instead = match text.to_ascii_lowercase().as_str() {
        "yes" | "on" | "y" | "true" => "write `true` if it is a bool",
        "no" | "off" | "n" | "false" => "write `false` if it is a bool",
        "~" | "null" => "write `null` if it is null",
        ".inf" | "-.inf" | "+.inf" | ".nan" | "-.nan" | "+.nan" => "there are no such numbers here",
        _ => "write it like 10 or 0.5 if it is a number",
    };
    format!("write \"{text}\" in quotes if it is a text; {instead}")
}

fn number(text: &str) -> Reading {
    let unusable = |message: String| Reading::Unusable {
        message,
        help: format!("write \"{text}\" in quotes if it is a text"),
    };
    if !text.contains(['.', 'e', 'E']) {
        if text == "-0" {
            return Reading::Clear(Value::from(0));
        }
        let whole = text
            .parse::<i64>()
            .map(Number::from)
            .or_else(|_| text.parse::<u64>().map(Number::from));
        return whole.map_or_else(
            |_| unusable(format!("`{text}` does not fit into 64 bits")),
            |number| Reading::Clear(Value::Number(number)),
        );
    }
    let float = text.parse::<f64>().ok().filter(|float| float.is_finite());
    float.and_then(Number::from_f64).map_or_else(
        || unusable(format!("`{text}` is too large for a number")),
        |number| Reading::Clear(Value::Number(number)),
    )
}

/// `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?`: the numbers that every reader reads alike.
fn is_json_number(text: &str) -> bool {
    let rest = text.strip_prefix('-').unwrap_or(text);
    let (whole, rest) = digits(rest);
    if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) {
        return false;
    }
    let rest = match rest.strip_prefix('.') {
        None => rest,
        Some(rest) => match digits(rest) {
            ("", _) => return false,
            (_, rest) => rest,
        },
    };
    match rest.strip_prefix(['e', 'E']) {
        None => rest.is_empty(),
        Some(rest) => {
            let (exponent, rest) = digits(rest.strip_prefix(['-', '+']).unwrap_or(rest));
            !exponent.is_empty() && rest.is_empty()
        }
    }
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// What some reader of YAML would take a text for, although it is no number of ours.
fn number_elsewhere(text: &str) -> Option<&'static str> {
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    if body.strip_prefix('.').is_some_and(is_infinite_or_nan) {
        return Some("a number that is not finite");
    }
    let radix = |prefix: &str, radix: u32| {
        body.strip_prefix(prefix).is_some_and(|rest| {
            !rest.is_empty() && rest.chars().all(|char| char == '_' || char.is_digit(radix))
        })
    };
    if radix("0x", 16) || radix("0o", 8) || radix("0b", 2) {
        return Some("a number in another base");
    }
    if !body.contains(|char: char| char.is_ascii_digit()) {
        return None;
    }
    if is_sexagesimal(body) {
        return Some("a number to the base of 60, or a time of day");
    }
    let plain: String = body.chars().filter(|char| *char != '_').collect();
    let starts_like_number = body.starts_with(|char: char| char.is_ascii_digit() || char == '.');
    if !starts_like_number || !is_loose_decimal(&plain) {
        return None;
    }
    let (whole, rest) = digits(&plain);
    if body.contains('_') {
        Some("a number with `_` between its digits")
    } else if whole.len() > 1 && whole.starts_with('0') && rest.is_empty() {
        Some("a number that may be octal")
    } else {
        Some("a number")
    }
}

fn is_infinite_or_nan(word: &str) -> bool {
    is_cased(word, "inf") || word.eq_ignore_ascii_case("nan")
}

/// `[0-9]*\.?[0-9]*([eE][-+]?[0-9]+)?` with at least one digit.
fn is_loose_decimal(text: &str) -> bool {
    let (whole, rest) = digits(text);
    let (part, rest) = rest.strip_prefix('.').map_or(("", rest), digits);
    if whole.is_empty() && part.is_empty() {
        return false;
    }
    match rest.strip_prefix(['e', 'E']) {
        None => rest.is_empty(),
        Some(rest) => {
            let (exponent, rest) = digits(rest.strip_prefix(['-', '+']).unwrap_or(rest));
            !exponent.is_empty() && rest.is_empty()
        }
    }
}

/// `12:30`, `12:30:45`, `190:20:30.15`.
fn is_sexagesimal(text: &str) -> bool {
    let whole = text.split_once('.').map_or(text, |(whole, part)| {
        if part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') { whole } else { "" }
    });
    let mut parts = whole.split(':');
    let is_first = |part: &str| {
        part.starts_with(|char: char| char.is_ascii_digit())
            && part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
    };
    let is_sixtieth = |part: &str| {
        matches!(part.len(), 1 | 2)
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.parse::<u8>().is_ok_and(|number| number < 60)
    };
    whole.contains(':') && parts.next().is_some_and(is_first) && parts.all(is_sixtieth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Covers field fault 103.
    /// Covers field fault 106.
    #[test]
    fn clear_scalars_have_one_meaning_and_integers_stay_integers() {
        for (text, value) in [
            ("20200219", json!(20_200_219)),
            ("9007199254740993", json!(9_007_199_254_740_993_i64)),
            ("18446744073709551615", json!(u64::MAX)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("0", json!(0)),
            ("-0", json!(0)),
            ("0.2", json!(0.2)),
            ("2.0", json!(2.0)),
            ("1e3", json!(1000.0)),
            ("-1.5E-2", json!(-0.015)),
            ("true", json!(true)),
            ("null", json!(null)),
            ("", json!(null)),
            ("2026-11-29", json!("2026-11-29")),
            ("1.2.3", json!("1.2.3")),
            ("30s", json!("30s")),
            ("tRUE", json!("tRUE")),
            ("-", json!("-")),
            (".", json!(".")),
            ("e3", json!("e3")),
            ("12:60", json!("12:60")),
            ("_1", json!("_1")),
            ("infinity", json!("infinity")),
        ] {
            assert_eq!(read(text), Reading::Clear(value), "{text}");
        }
    }

    /// Covers field fault 107.
    /// Covers field fault 108.
    #[test]
    fn scalars_that_people_read_in_two_ways_ask_for_quotes() {
        for text in [
            "yes",
            "No",
            "ON",
            "off",
            "y",
            "N",
            "~",
            "Null",
            "NULL",
            "TRUE",
            "False",
            ".inf",
            "-.INF",
            ".NaN",
            "010",
            "012345678901",
            "1_000",
            "12:30:45",
            "12:30",
            "+1",
            ".2",
            "2.",
            "0x1F",
            "0o17",
            "0b1",
            "+1e3",
            "00",
            "1_0.5",
            "-010",
        ] {
            let Reading::Ambiguous { message, help } = read(text) else {
                panic!("{text} reads {:?}", read(text));
            };
            assert!(message.contains(&format!("`{text}`")), "{message}");
            assert!(help.contains(&format!("\"{text}\" in quotes")), "{help}");
        }
    }

    #[test]
    fn numbers_that_would_lose_digits_are_refused() {
        for text in ["18446744073709551616", "-9223372036854775809", "1e999"] {
            assert!(matches!(read(text), Reading::Unusable { .. }), "{text}");
        }
    }

    #[test]
    fn only_keys_that_read_as_number_bool_or_null_are_no_texts() {
        for key in ["1", "010", "true", "~", "null", "1.5", "True", "", "12:30", "0x1"] {
            assert!(is_no_text_key(key), "{key}");
        }
        for key in ["yes", "on", "y", "n", "OFF", "a1", "<<", "1st"] {
            assert!(!is_no_text_key(key), "{key}");
        }
    }
}
