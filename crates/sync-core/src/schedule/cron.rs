//! The five fields of a cron expression.

use std::fmt;
use std::str::FromStr;

/// A cron expression of five fields: minute, hour, day of the month, month, day of the week.
///
/// Each field is `*`, a number, a range or a list of them, a `*` or a range with a step. Digits only; Sunday is 0 or
/// 7. Where neither day field begins with `*`, a day fits if one of them does; else both must.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    pub(super) minutes: u64,
    pub(super) hours: u64,
    pub(super) days: u64,
    pub(super) months: u64,
    /// From Sunday, 0 to 6.
    pub(super) weekdays: u64,
    /// The hour is `*` or `*/n`.
    pub(super) is_every_hour: bool,
    /// One of the day fields begins with `*`.
    pub(super) needs_both_days: bool,
}

/// A text that is no cron expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadCron(String);

/// What a field may hold.
struct Field {
    name: &'static str,
    least: u32,
    most: u32,
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", least: 0, most: 59 },
    Field { name: "hour", least: 0, most: 23 },
    Field { name: "day of the month", least: 1, most: 31 },
    Field { name: "month", least: 1, most: 12 },
    Field { name: "day of the week", least: 0, most: 7 },
];
/// Days of the longest year, from January.
const MONTH_DAYS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const HELP: &str = "write it like `30 2 * * 1-5`";
const CHARS_MAX: usize = 200;

impl FromStr for Cron {
    type Err = BadCron;

    fn from_str(text: &str) -> Result<Self, BadCron> {
        if text.len() > CHARS_MAX {
            return Err(BadCron(format!("a cron expression has at most {CHARS_MAX} characters")));
        }
        let written: Vec<&str> = text.split([' ', '\t']).filter(|it| !it.is_empty()).collect();
        let [minute, hour, day, month, weekday] = *written else {
            let got = written.len();
            let message = format!("a cron expression has five fields, this has {got}: {HELP}");
            return Err(BadCron(message));
        };
        let [minutes, hours, days, months, weekdays] = &FIELDS;
        let (minute, hour) = (minutes.parse(minute)?, hours.parse(hour)?);
        let (day, month) = (days.parse(day)?, months.parse(month)?);
        let weekday = weekdays.parse(weekday)?.with_one_sunday();
        let cron = Self {
            text: [&minute, &hour, &day, &month, &weekday].map(|it| it.text.as_str()).join(" "),
            minutes: minute.set,
            hours: hour.set,
            days: day.set,
            months: month.set,
            weekdays: weekday.set,
            is_every_hour: hour.has_star,
            needs_both_days: day.has_star || weekday.has_star,
        };
        if cron.is_possible() {
            Ok(cron)
        } else {
            Err(BadCron("no year has such a day: the month is never that long".to_owned()))
        }
    }
}

impl Cron {
    /// Whether any date fits.
    fn is_possible(&self) -> bool {
        let has_day = |(month, length): (u32, u32)| {
            self.months & (1 << month) != 0 && self.days & ((2_u64 << length) - 1) != 0
        };
        !self.needs_both_days || (1_u32..).zip(MONTH_DAYS).any(has_day)
    }

    /// Whether a date fits; the weekday counts from Sunday, 0.
    pub(super) const fn has_date(&self, month: u32, day: u32, weekday: u32) -> bool {
        let by_day = self.days & (1 << day) != 0;
        let by_weekday = self.weekdays & (1 << weekday) != 0;
        let fits = if self.needs_both_days { by_day && by_weekday } else { by_day || by_weekday };
        self.months & (1 << month) != 0 && fits
    }

    /// The times of a day, in order: hour and minute.
    pub(super) fn times(&self) -> impl Iterator<Item = (u32, u32)> {
        let minutes = self.minutes;
        let hours = members(self.hours, 23);
        hours.flat_map(move |hour| members(minutes, 59).map(move |minute| (hour, minute)))
    }
}

/// Normalised.
impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn members(set: u64, most: u32) -> impl Iterator<Item = u32> {
    (0..=most).filter(move |member| set & (1 << member) != 0)
}

/// A field as it was written.
struct Parsed {
    text: String,
    set: u64,
    has_star: bool,
}

impl Parsed {
    /// 7 is Sunday too; a list that names it, or goes around the week, is written out.
    fn with_one_sunday(mut self) -> Self {
        let sunday = (self.set >> 7) & 1;
        self.set = (self.set | sunday) & 0x7f;
        if !self.has_star {
            let days: Vec<String> = members(self.set, 6).map(|day| day.to_string()).collect();
            self.text = days.join(",");
        }
        self
    }
}

impl Field {
    fn parse(&self, text: &str) -> Result<Parsed, BadCron> {
        let mut parsed = Parsed { text: String::new(), set: 0, has_star: text.starts_with('*') };
        for part in text.split(',') {
            let (written, set) = self.part(part)?;
            parsed.set |= set;
            if !parsed.text.is_empty() {
                parsed.text.push(',');
            }
            parsed.text.push_str(&written);
        }
        Ok(parsed)
    }

    /// `*`, `5`, `1-5`, `*/2`, `1-5/2`.
    fn part(&self, part: &str) -> Result<(String, u64), BadCron> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step, part)?)),
            None => (part, None),
        };
        let (text, first, last) = match (range, range.split_once('-')) {
            ("*", _) => ("*".to_owned(), self.least, self.most),
            (_, Some((first, last))) => {
                let (first, last) = (self.number(first, part)?, self.number(last, part)?);
                (format!("{first}-{last}"), first, last)
            }
            (one, None) if step.is_none() => {
                let one = self.number(one, part)?;
                (one.to_string(), one, one)
            }
            (_, None) => return Err(self.bad(part, "a step stands behind `*` or a range")),
        };
        // Only the week goes round.
        let wraps = self.most == 7 && first > last;
        if first > last && !wraps {
            return Err(self.bad(part, "a range goes from the smaller to the larger number"));
        }
        let last = if wraps { last + 7 } else { last };
        let step = step.unwrap_or(1);
        // The whole week is seven days, not eight.
        let last = if self.most == 7 && range == "*" { 6 } else { last };
        let set = (first..=last)
            .step_by(usize::try_from(step).unwrap_or(usize::MAX))
            .fold(0_u64, |set, member| {
                set | 1 << if member > self.most { member - 7 } else { member }
            });
        let text = if step == 1 { text } else { format!("{text}/{step}") };
        Ok((text, set))
    }

    fn step(&self, text: &str, part: &str) -> Result<u32, BadCron> {
        let step = digits(text).filter(|step| (1..=self.most).contains(step));
        step.ok_or_else(|| self.bad(part, &format!("a step is from 1 to {}", self.most)))
    }

    fn number(&self, text: &str, part: &str) -> Result<u32, BadCron> {
        let number = digits(text).filter(|number| (self.least..=self.most).contains(number));
        let range = || format!("it is written in digits, from {} to {}", self.least, self.most);
        number.ok_or_else(|| self.bad(part, &range()))
    }

    fn bad(&self, part: &str, why: &str) -> BadCron {
        BadCron(format!("`{part}` is no {}: {why}", self.name))
    }
}

/// One or two digits and nothing else.
fn digits(text: &str) -> Option<u32> {
    let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}
