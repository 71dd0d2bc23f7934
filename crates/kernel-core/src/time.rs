//! Time as the kernel keeps it: whole microseconds, UTC, on every store.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An instant: microseconds since 1970-01-01T00:00:00Z, UTC. Arithmetic saturates, it never panics.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Later than everything that a store writes.
    pub const MAX: Self = Self(i64::MAX);

    /// From microseconds since the epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// This instant plus a span; saturates at the ends of time.
    #[must_use]
    pub const fn plus(self, span: Micros) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The span from `earlier` to this instant, zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Micros {
        Micros(self.0.saturating_sub(earlier.0).max(0))
    }
}

/// RFC 3339, UTC, six digits of a second: `2026-11-29T16:06:45.000000Z`. Years outside 0000 to 9999 are
/// written as microseconds.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, micros) = (self.0.div_euclid(1_000_000), self.0.rem_euclid(1_000_000));
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = civil_from_days(days);
        if !(0..=9999).contains(&year) {
            return write!(f, "{}us", self.0);
        }
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
    }
}

/// The proleptic Gregorian date of a day count since 1970-01-01, in 400-year eras that start on 1 March
/// (the method of H. Hinnant, "chrono-compatible low-level date algorithms").
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The day count since 1970-01-01 of a proleptic Gregorian date; the inverse of the above.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// A text is not an instant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time: write it like `2026-11-29T16:06:45Z`, with `Z` or an offset")]
pub struct NotATime(String);

impl std::str::FromStr for Timestamp {
    type Err = NotATime;

    /// Reads RFC 3339; an offset is required, digits beyond microseconds are cut off.
    fn from_str(text: &str) -> Result<Self, NotATime> {
        parse(text).ok_or_else(|| NotATime(text.chars().take(60).collect()))
    }
}

fn parse(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = bytes.get(from..to)?;
        digits.iter().try_fold(0_i64, |sum, byte| {
            byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0'))
        })
    };
    let is = |at: usize, wanted: &[u8]| bytes.get(at).is_some_and(|byte| wanted.contains(byte));
    let punctuated = is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":");
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let days = days_from_civil(year, month, day);
    let real = punctuated && civil_from_days(days) == (year, month, day);
    if !real || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut at = 19;
    let mut micros = 0;
    if is(at, b".") {
        let end = (at + 1..bytes.len()).find(|&i| !is(i, b"0123456789")).unwrap_or(bytes.len());
        let digits = (end - at - 1).min(6);
        if digits == 0 {
            return None;
        }
        micros = number(at + 1, at + 1 + digits)? * 10_i64.pow(6 - u32::try_from(digits).ok()?);
        at = end;
    }
    let offset = match bytes.get(at)? {
        b'Z' | b'z' if bytes.len() == at + 1 => 0,
        sign @ (b'+' | b'-') if bytes.len() == at + 6 && is(at + 3, b":") => {
            let (hours, minutes) = (number(at + 1, at + 3)?, number(at + 4, at + 6)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            (hours * 60 + minutes) * 60 * if *sign == b'-' { -1 } else { 1 }
        }
        _ => return None,
    };
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset;
    Some(Timestamp(seconds * 1_000_000 + micros))
}

/// A span of time in microseconds, never negative.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Micros(i64);

impl Micros {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// From microseconds; a negative number is zero.
    #[must_use]
    pub const fn new(micros: i64) -> Self {
        Self(if micros < 0 { 0 } else { micros })
    }

    /// From whole milliseconds, saturating.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self::new(millis.saturating_mul(1_000))
    }

    /// From whole seconds, saturating.
    #[must_use]
    pub const fn from_secs(seconds: i64) -> Self {
        Self::new(seconds.saturating_mul(1_000_000))
    }

    /// The number of microseconds.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl From<Duration> for Micros {
    fn from(duration: Duration) -> Self {
        Self(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
    }
}

impl From<Micros> for Duration {
    fn from(span: Micros) -> Self {
        Self::from_micros(span.0.unsigned_abs())
    }
}

/// The longest span that authors can write: ten years, however their leap days fall.
pub const DURATION_MAX: Micros = Micros(3_653 * 86_400_000_000);

/// The units of a written duration with their microseconds, longest first.
const UNITS: [(&str, i64); 5] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
];

/// A text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotADuration {
    /// It is not written as one.
    #[error(
        "`{0}` is not a duration: write it like `500ms`, `30s`, `5m`, `2h` or `7d`, \
         or several from the longest to the shortest unit, like `2h30m`"
    )]
    Malformed(String),
    /// It is over [`DURATION_MAX`].
    #[error("`{0}` is longer than ten years")]
    TooLong(String),
}

/// Reads what authors write: whole numbers, each with one of `d`, `h`, `m`, `s`, `ms`, from the longest to the
/// shortest unit, no unit twice, no sign and no space, at most [`DURATION_MAX`] together.
///
/// ```
/// use surefoot_kernel_core::Micros;
/// assert_eq!("2h30m".parse(), Ok(Micros::from_secs(9_000)));
/// assert_eq!("500ms".parse(), Ok(Micros::from_millis(500)));
/// assert!("30m2h".parse::<Micros>().is_err());
/// ```
impl std::str::FromStr for Micros {
    type Err = NotADuration;

    fn from_str(text: &str) -> Result<Self, NotADuration> {
        let shown = || text.chars().take(60).collect();
        let micros = duration(text).ok_or_else(|| NotADuration::Malformed(shown()))?;
        if micros > DURATION_MAX.0 {
            return Err(NotADuration::TooLong(shown()));
        }
        Ok(Self(micros))
    }
}

/// The microseconds of a written duration, saturating; nothing if it is not written as one.
fn duration(text: &str) -> Option<i64> {
    let (mut rest, mut units, mut sum) = (text, &UNITS[..], 0_i64);
    while !rest.is_empty() || sum == 0 && units.len() == UNITS.len() {
        let (digits, behind) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, behind) =
            behind.split_at(behind.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(behind.len()));
        let at = units.iter().position(|(name, _)| *name == unit)?;
        let (_, micros) = units.get(at)?;
        sum = sum.saturating_add(whole(digits)?.saturating_mul(*micros));
        (rest, units) = (behind, units.get(at + 1..)?);
    }
    Some(sum)
}

/// Decimal digits as a number, saturating; nothing if there is none.
fn whole(digits: &str) -> Option<i64> {
    let value =
        |sum: i64, digit: u8| sum.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
    (!digits.is_empty()).then(|| digits.bytes().fold(0, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_3339_round_trips_with_microseconds() {
        for text in [
            "1970-01-01T00:00:00.000000Z",
            "2026-11-29T16:06:45.123456Z",
            "2000-02-29T23:59:59.999999Z",
            "1969-12-31T23:59:59.999999Z",
            "0000-03-01T00:00:00.000000Z",
            "9999-12-31T23:59:59.999999Z",
        ] {
            let instant: Timestamp = text.parse().unwrap();
            assert_eq!(instant.to_string(), text);
        }
        assert_eq!("1970-01-01T01:00:00+01:00".parse(), Ok(Timestamp(0)));
        assert_eq!("1970-01-01T00:00:00.1234567Z".parse(), Ok(Timestamp(123_456)));
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for text in [
            "",
            "2026-02-30T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+1:00",
            "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:00Zx",
            "20２6-01-01T00:00:00Z",
        ] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::MAX.plus(Micros::from_secs(i64::MAX)), Timestamp::MAX);
        assert_eq!(Timestamp(5).since(Timestamp(9)), Micros::ZERO);
        assert_eq!(Micros::new(-4), Micros::ZERO);
        assert!(Timestamp::MAX.to_string().ends_with("us"));
    }

    #[test]
    fn durations_are_read_as_authors_write_them() {
        const HOUR: i64 = 3_600_000_000;
        for (text, micros) in [
            ("500ms", 500_000),
            ("30s", 30_000_000),
            ("5m", 300_000_000),
            ("2h", 2 * HOUR),
            ("7d", 7 * 24 * HOUR),
            ("2h30m", 2 * HOUR + HOUR / 2),
            ("1d1h1m1s1ms", 25 * HOUR + 61_001_000),
            ("2h05m", 2 * HOUR + HOUR / 12),
            ("90m", HOUR + HOUR / 2),
            ("0s", 0),
            ("0h0m", 0),
            ("3653d", DURATION_MAX.get()),
            ("3652d24h", DURATION_MAX.get()),
        ] {
            assert_eq!(text.parse(), Ok(Micros(micros)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "", "5", "m", "5x", "5M", "5 m", " 5m", "5m ", "-5m", "+5m", "5.5h", "30m2h", "1h1h",
            "1s1s1s", "5msec", "1m500", "1ms1s", "٥m", "5µs", "1h,30m", "PT5M", "1_000s", "5\0m",
        ] {
            let error = text.parse::<Micros>().unwrap_err();
            assert_eq!(error, NotADuration::Malformed(text.to_owned()));
        }
        for text in ["3653d1ms", "87673h", "9223372036854775807d", "99999999999999999999999d"] {
            let error = text.parse::<Micros>().unwrap_err();
            assert_eq!(error, NotADuration::TooLong(text.to_owned()));
        }
        let long = "x".repeat(1_000_000).parse::<Micros>().unwrap_err().to_string();
        assert!(long.len() < 300 && long.contains("2h30m"), "{long}");
    }
}
