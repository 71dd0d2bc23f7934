//! The next slot of a cron expression in a time zone.

use jiff::civil::Date;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{Span, ToSpan as _};
use surefoot_kernel_core::Timestamp;

use super::cron::Cron;

/// A 29th of February that is a certain day of the week may be forty years away.
const DAYS_MAX: usize = 41 * 366;

/// The first slot after an instant.
pub(super) fn next_after(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let start = jiff::Timestamp::from_microsecond(after.micros()).ok()?;
    // The day before too: where a clock goes back over midnight, its times come once more.
    let mut date = zone.to_datetime(start).date().yesterday().ok()?;
    for _ in 0..DAYS_MAX {
        if fits(cron, date)
            && let Some(slot) = first_of_day(cron, zone, date, start)
        {
            return Some(Timestamp::from_micros(slot.as_microsecond()));
        }
        date = date.tomorrow().ok()?;
    }
    None
}

fn fits(cron: &Cron, date: Date) -> bool {
    cron.has_date(
        u32::from(date.month().unsigned_abs()),
        u32::from(date.day().unsigned_abs()),
        u32::from(date.weekday().to_sunday_zero_offset().unsigned_abs()),
    )
}

/// The first slot after `start` whose time is of this date.
fn first_of_day(
    cron: &Cron,
    zone: &TimeZone,
    date: Date,
    start: jiff::Timestamp,
) -> Option<jiff::Timestamp> {
    if let Some(offset) = offset_of(zone, date) {
        let times = cron.times();
        let slots = times.filter_map(|time| offset.to_timestamp(at(date, time)?).ok());
        return slots.into_iter().find(|slot| *slot > start);
    }
    // Around a change of the clock the order of the times is not that of the instants, not even between two days.
    let days = [date, date.tomorrow().ok()?];
    let mut slots: Vec<jiff::Timestamp> = Vec::new();
    for date in days.into_iter().filter(|date| fits(cron, *date)) {
        for time in cron.times() {
            slots.extend(at(date, time).into_iter().flat_map(|civil| instants(cron, zone, civil)));
        }
    }
    slots.into_iter().filter(|slot| *slot > start).min()
}

fn at(date: Date, (hour, minute): (u32, u32)) -> Option<jiff::civil::DateTime> {
    let (hour, minute) = (i8::try_from(hour).ok()?, i8::try_from(minute).ok()?);
    Some(date.at(hour, minute, 0, 0))
}

/// The one offset of a date, if the clock does not change on it or close to it.
fn offset_of(zone: &TimeZone, date: Date) -> Option<Offset> {
    let edge = |span: Span| zone.to_timestamp(date.at(12, 0, 0, 0).checked_add(span).ok()?).ok();
    let (before, after) = (edge(-48.hours())?, edge(48.hours())?);
    let changes = zone.following(before).next().is_some_and(|it| it.timestamp() <= after);
    (!changes).then(|| zone.to_offset(before))
}

/// The instants that a wall-clock time stands for.
fn instants(cron: &Cron, zone: &TimeZone, civil: jiff::civil::DateTime) -> Vec<jiff::Timestamp> {
    let of = |offset: Offset| offset.to_timestamp(civil).ok();
    let found = match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } => [of(offset), None],
        AmbiguousOffset::Fold { before, after } if cron.is_every_hour => [of(before), of(after)],
        AmbiguousOffset::Fold { before, .. } => [of(before), None],
        AmbiguousOffset::Gap { .. } if cron.is_every_hour => [None, None],
        // By the clock of before, the time is past the change.
        AmbiguousOffset::Gap { before, .. } => [of(before).and_then(|at| change(zone, at)), None],
    };
    found.into_iter().flatten().collect()
}

/// The last change of the clock up to an instant.
fn change(zone: &TimeZone, at: jiff::Timestamp) -> Option<jiff::Timestamp> {
    let behind = at.checked_add(1.nanosecond()).ok()?;
    zone.preceding(behind).next().map(|it| it.timestamp())
}
