//! Words for people: spans, quoted arguments, times in JSON.

use serde::Serializer;

use crate::{Micros, Timestamp};

/// A span in its two largest units: `3 m 12 s`, `450 ms`.
#[must_use]
pub fn span(span: Micros) -> String {
    const UNITS: [(&str, i64); 5] = [
        ("d", 86_400_000_000),
        ("h", 3_600_000_000),
        ("m", 60_000_000),
        ("s", 1_000_000),
        ("ms", 1_000),
    ];
    let micros = span.get();
    let Some(first) = UNITS.iter().position(|(_, unit)| micros >= *unit) else {
        return "0 ms".to_owned();
    };
    let mut rest = micros;
    let mut words = Vec::new();
    for (name, unit) in UNITS.iter().skip(first).take(2) {
        // Milliseconds beside seconds help nobody.
        if !words.is_empty() && *name == "ms" {
            break;
        }
        let count = rest / unit;
        rest %= unit;
        if count > 0 {
            words.push(format!("{count} {name}"));
        }
    }
    words.join(" ")
}

/// An instant for people, in whole seconds: `2026-11-29 16:06:45 UTC`.
pub(super) fn instant(at: Timestamp) -> String {
    let exact = at.to_string();
    match exact.split_once('.') {
        Some((seconds, _)) => format!("{} UTC", seconds.replacen('T', " ", 1)),
        // Too far away to be a date.
        None => exact,
    }
}

/// One argument of a POSIX shell: as it stands where nothing in it is special, else in single quotes.
#[must_use]
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphanumeric())
        // `steps.2.do.0#3`: a `#` inside a word is no comment.
        && text.chars().all(|c| plain(c) || c == '#');
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Times are RFC 3339 in every view.
pub(super) fn at<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

/// Times are RFC 3339 in every view.
pub(super) fn maybe_at<S: Serializer>(
    at: &Option<Timestamp>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => serializer.collect_str(at),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units() {
        for (micros, text) in [
            (0, "0 ms"),
            (999, "0 ms"),
            (450_000, "450 ms"),
            (1_000_000, "1 s"),
            (1_500_000, "1 s"),
            (192_000_000, "3 m 12 s"),
            (3_600_000_000, "1 h"),
            (90_061_000_000, "1 d 1 h"),
        ] {
            assert_eq!(span(Micros::new(micros)), text);
        }
    }

    #[test]
    fn an_instant_has_whole_seconds() {
        let at = Timestamp::from_micros(1_764_432_405_123_456);
        assert_eq!(instant(at), "2025-11-29 16:06:45 UTC");
        assert!(instant(Timestamp::MAX).ends_with("us"));
    }

    #[test]
    fn what_a_shell_would_read_otherwise_is_quoted() {
        for (text, expected) in [
            ("steps.2.cases.0.do.1#3.0", "steps.2.cases.0.do.1#3.0"),
            ("", "''"),
            ("-rf", "'-rf'"),
            ("#x", "'#x'"),
            ("a b", "'a b'"),
            ("it's; $(rm)", r"'it'\''s; $(rm)'"),
        ] {
            assert_eq!(shell_word(text), expected);
        }
    }
}
