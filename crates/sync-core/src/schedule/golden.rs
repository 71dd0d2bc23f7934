//! Ten zones over two years: every slot against an oracle that looks at the clock on the wall every quarter of an hour, and
//! the days on which a clock changes as a table that people can read.

use std::collections::HashSet;
use std::fmt::Write as _;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use surefoot_kernel_core::Timestamp;

use super::Schedule;

const ZONES: [&str; 10] = [
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Havana",
    "America/New_York",
    "America/Santiago",
    "Asia/Beirut",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Europe/London",
    "Pacific/Auckland",
];

/// A schedule, told to the oracle in another way.
struct Case {
    cron: &'static str,
    minutes: &'static [i8],
    hours: &'static [i8],
    /// By elapsed time: what the wall shows twice counts twice, and what it skips not at all.
    elapsed: bool,
    /// Sunday is 0.
    weekday: Option<i8>,
}

const CASES: [Case; 6] = [
    Case { cron: "0 0 * * *", minutes: &[0], hours: &[0], elapsed: false, weekday: None },
    Case { cron: "30 1 * * *", minutes: &[30], hours: &[1], elapsed: false, weekday: None },
    Case { cron: "15,45 2 * * *", minutes: &[15, 45], hours: &[2], elapsed: false, weekday: None },
    Case { cron: "30 2 * * 0", minutes: &[30], hours: &[2], elapsed: false, weekday: Some(0) },
    Case { cron: "0 3,23 * * *", minutes: &[0], hours: &[3, 23], elapsed: false, weekday: None },
    Case { cron: "30 */12 * * *", minutes: &[30], hours: &[0, 12], elapsed: true, weekday: None },
];

/// Every change of these clocks, and every time of the cases, is a multiple of it.
const STEP_MIN: i64 = 15;

impl Case {
    fn fits(&self, time: DateTime) -> bool {
        self.minutes.contains(&time.minute())
            && self.hours.contains(&time.hour())
            && self.weekday.is_none_or(|day| time.weekday().to_sunday_zero_offset() == day)
    }
}

fn edge(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().micros() / 60_000_000
}

/// A look at the wall.
struct Look {
    /// In minutes since 1970.
    at: i64,
    shows: DateTime,
    /// What the clock has jumped over since the look before.
    skipped: Vec<DateTime>,
}

/// From a day before to the end.
fn looks(zone: &TimeZone, from: i64, until: i64) -> Vec<Look> {
    let step = jiff::Span::new().minutes(STEP_MIN);
    let of_day = |time: DateTime| i64::from(time.hour()) * 60 + i64::from(time.minute());
    let mut looks: Vec<Look> = Vec::new();
    for at in (from - 1_440..=until).step_by(usize::try_from(STEP_MIN).unwrap()) {
        let shows = zone.to_datetime(jiff::Timestamp::from_second(at * 60).unwrap());
        let mut skipped = Vec::new();
        if let Some(before) = looks.last().map(|look| look.shows)
            && (of_day(before) + STEP_MIN) % 1_440 != of_day(shows)
        {
            let mut time = before.checked_add(step).unwrap();
            while time < shows {
                skipped.push(time);
                time = time.checked_add(step).unwrap();
            }
        }
        looks.push(Look { at, shows, skipped });
    }
    looks
}

/// The slots that somebody finds who looks at the wall: a time counts when it is shown first, one that is skipped when
/// the clock has jumped over it.
fn seen(case: &Case, looks: &[Look], from: i64) -> Vec<Timestamp> {
    let (mut shown, mut slots) = (HashSet::new(), Vec::new());
    for look in looks {
        let skipped = look.skipped.iter().filter(|_| !case.elapsed);
        let times = skipped.chain([&look.shows]).filter(|time| case.fits(**time));
        // Each is remembered, so none is left out by another that is new.
        let new = times.filter(|time| shown.insert(**time) || case.elapsed).count();
        if new > 0 && look.at > from {
            slots.push(Timestamp::from_micros(look.at * 60_000_000));
        }
    }
    slots
}

/// Covers field faults 47, 49.
#[test]
fn ten_zones_over_two_years_have_the_slots_that_the_wall_shows() {
    let (from, until) = (edge("2026-01-01T00:00:00Z"), edge("2028-01-01T00:00:00Z"));
    let instant = |minute: i64| Timestamp::from_micros(minute * 60_000_000);
    let mut table = String::new();
    for name in ZONES {
        let zone = TimeZone::get(name).unwrap();
        let looks = looks(&zone, from, until);
        for case in &CASES {
            let schedule = Schedule::new(case.cron, Some(name)).unwrap();
            let slots = schedule.slots(instant(from), instant(until), usize::MAX);
            let expected = seen(case, &looks, from);
            let differs = slots.iter().zip(&expected).find(|(one, two)| one != two);
            assert!(
                slots.len() == expected.len() && differs.is_none(),
                "{name} {}: {} and {}, {differs:?}",
                case.cron,
                slots.len(),
                expected.len(),
            );
            if !case.elapsed {
                note_changes(&mut table, name, case.cron, &slots, &zone);
            }
        }
    }
    expect_test::expect_file!["golden.txt"].assert_eq(&table);
}

/// Slots that do not come at the usual time of the day, with what the wall shows then.
fn note_changes(table: &mut String, name: &str, cron: &str, slots: &[Timestamp], zone: &TimeZone) {
    let schedule = Schedule::new(cron, None).unwrap();
    for slot in slots {
        let wall = zone.to_datetime(jiff::Timestamp::from_microsecond(slot.micros()).unwrap());
        let as_utc = TimeZone::UTC.to_timestamp(wall).unwrap();
        let nominal = Timestamp::from_micros(as_utc.as_microsecond());
        let before = Timestamp::from_micros(nominal.micros() - 1);
        let is_nominal = schedule.next_after(before) == Some(nominal);
        let is_twice = zone.to_ambiguous_timestamp(wall).is_ambiguous();
        if !is_nominal || is_twice {
            let why = if is_twice { "first of two" } else { "behind a gap" };
            writeln!(table, "{name:20} {cron:14} {slot} {wall} {why}").unwrap();
        }
    }
}
