//! Durations as authors write them: `500ms`, `30s`, `5m`, `2h`, `7d`, and joined ones such as `2h30m`.

use surefoot_kernel_core::Micros;

/// The longest duration: ten years of 366 days.
const MAX_MICROS: i64 = 3_660 * DAY;
const MILLISECOND: i64 = 1_000;
const SECOND: i64 = 1_000 * MILLISECOND;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Longest first, the order in which they are joined. `ms` before `m`.
const UNITS: &[(&str, i64)] =
    &[("d", DAY), ("h", HOUR), ("ms", MILLISECOND), ("m", MINUTE), ("s", SECOND)];

/// Reads a duration; the error is a sentence.
pub(crate) fn parse(text: &str) -> Result<Micros, String> {
    let malformed = || format!("`{}` is not a duration", text.chars().take(40).collect::<String>());
    let mut rest = text;
    let mut total = 0_i64;
    let mut smallest = i64::MAX;
    if text.is_empty() {
        return Err("this is not a duration".to_owned());
    }
    while !rest.is_empty() {
        let end = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, after) = rest.split_at(end);
        let unit = UNITS.iter().find(|(name, _)| after.starts_with(name));
        let (Some((name, size)), false) = (unit, digits.is_empty()) else {
            return Err(malformed());
        };
        if *size >= smallest {
            return Err(malformed());
        }
        smallest = *size;
        let part = digits.parse::<i64>().ok().and_then(|number| number.checked_mul(*size));
        let sum = part.and_then(|part| total.checked_add(part)).filter(|sum| *sum <= MAX_MICROS);
        total = sum.ok_or_else(|| "a duration is at most ten years".to_owned())?;
        rest = &after[name.len()..];
    }
    Ok(Micros::new(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_units_largest_first() {
        let seconds = |seconds| Ok(Micros::from_secs(seconds));
        assert_eq!(parse("500ms"), Ok(Micros::from_millis(500)));
        assert_eq!(parse("30s"), seconds(30));
        assert_eq!(parse("5m"), seconds(300));
        assert_eq!(parse("2h30m"), seconds(9_000));
        assert_eq!(parse("7d"), seconds(604_800));
        assert_eq!(parse("1m500ms"), Ok(Micros::from_millis(60_500)));
        assert_eq!(parse("3650d"), seconds(3650 * 86_400));
        assert_eq!(parse("0s"), seconds(0));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "5", "s", "5x", "-5s", "5 s", "1.5h", "30m2h", "5s5s", "5S", "٣s"] {
            assert!(parse(text).is_err(), "{text}");
        }
        for text in ["99999999999999999999s", "4000d", "3660d1ms", "9223372036854775807d"] {
            assert_eq!(parse(text), Err("a duration is at most ten years".to_owned()), "{text}");
        }
    }
}
