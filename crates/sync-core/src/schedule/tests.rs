use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn normal(cron: &str) -> Result<String, String> {
    cron.parse::<Cron>().map(|cron| cron.to_string()).map_err(|error| error.to_string())
}

#[track_caller]
fn next(cron: &str, zone: &str, after: &str, expected: &[&str]) {
    let schedule = Schedule::new(cron, Some(zone)).unwrap();
    let slots = schedule.slots(at(after), Timestamp::MAX, expected.len());
    let expected: Vec<Timestamp> = expected.iter().map(|slot| at(slot)).collect();
    assert_eq!(slots, expected);
}

/// Covers behaviours 187, 189.
#[test]
fn an_expression_is_normalised() {
    for (cron, expected) in [
        ("0  9 * *   1", "0 9 * * 1"),
        (" 05 09 * * * ", "5 9 * * *"),
        ("*/15 0-6/2,12 1,15 * 7", "*/15 0-6/2,12 1,15 * 0"),
        ("0 0 * * 6-1", "0 0 * * 0,1,6"),
        ("0 0 * * 5-7", "0 0 * * 0,5,6"),
        ("*/1 * * * *", "* * * * *"),
    ] {
        assert_eq!(normal(cron).as_deref(), Ok(expected));
        assert_eq!(normal(expected).as_deref(), Ok(expected));
    }
}

/// Covers behaviours 187, 188, 190.
#[test]
fn what_is_no_expression_of_five_fields_of_digits_is_refused() {
    for cron in [
        "",
        "* * * *",
        "* * * * * *",
        "@daily",
        "0 9 * * MON",
        "0 9 * JAN *",
        "0 9 L * *",
        "0 9 15W * *",
        "0 9 * * 1#2",
        "1,,2 * * * *",
        ",1 * * * *",
        "10-5 * * * *",
        "*/0 * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 8",
        "-5 * * * *",
        "0x10 * * * *",
        "1e1 * * * *",
        "+5 * * * *",
        "5/10 * * * *",
        "*/61 * * * *",
        "1-2-3 * * * *",
        "? * * * *",
        "٣ * * * *",
        "001 * * * *",
        "0 0 31 2 *",
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
    ] {
        assert!(normal(cron).is_err(), "{cron:?}");
    }
    // By the week there is always a day.
    assert!(normal("0 0 31 2 1").is_ok());
    assert!(normal("0 0 29 2 *").is_ok());
    assert_eq!(
        normal("0 9 * * MON").unwrap_err(),
        "`MON` is no day of the week: it is written in digits, from 0 to 7"
    );
    assert!(Schedule::new("* * * * *", Some("Europe/Nowhere")).is_err());
}

#[test]
fn days_are_found_by_month_and_week() {
    // The 13th or a Friday.
    let either = ["2026-02-06T00:00:00Z", "2026-02-13T00:00:00Z", "2026-02-20T00:00:00Z"];
    next("0 0 13 * 5", "UTC", "2026-02-01T00:00:00Z", &either);
    // Every other day of the month, if it is a Monday.
    next(
        "0 0 */2 * 1",
        "UTC",
        "2026-02-01T00:00:00Z",
        &["2026-02-09T00:00:00Z", "2026-02-23T00:00:00Z"],
    );
    next("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", &["2104-02-29T00:00:00Z"]);
    // Strictly after.
    next("0 9 * * *", "UTC", "2026-01-01T09:00:00Z", &["2026-01-02T09:00:00Z"]);
}

/// Covers field fault 49.
#[test]
fn a_time_that_is_skipped_or_comes_twice_is_one_slot() {
    let berlin = "Europe/Berlin";
    next(
        "30 2 * * *",
        berlin,
        "2026-03-28T12:00:00Z",
        &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"],
    );
    next(
        "30 2 * * *",
        berlin,
        "2026-10-24T12:00:00Z",
        &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
    );
    next(
        "0,30 2 * * *",
        berlin,
        "2026-03-28T12:00:00Z",
        &["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"],
    );
    next(
        "30 1 * * *",
        "America/New_York",
        "2026-10-31T12:00:00Z",
        &["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"],
    );
    // Half an hour.
    next(
        "15 2 * * *",
        "Australia/Lord_Howe",
        "2026-10-03T00:00:00Z",
        &["2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"],
    );
    // At midnight.
    next(
        "0 0 * * *",
        "America/Santiago",
        "2026-09-05T12:00:00Z",
        &["2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z"],
    );
    next("30 2 * * *", "Africa/Casablanca", "2026-02-14T12:00:00Z", &["2026-02-15T01:30:00Z"]);
    next("30 2 * * *", "Asia/Tehran", "2022-03-21T12:00:00Z", &["2022-03-21T22:00:00Z"]);
}

#[test]
fn every_so_many_minutes_follows_elapsed_time() {
    let twice = ["00:00", "00:30", "01:00", "01:30", "02:00"];
    let slots = twice.map(|time| format!("2026-10-25T{time}:00Z"));
    let slots: Vec<&str> = slots.iter().map(String::as_str).collect();
    next("*/30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00Z", &slots);
    next(
        "*/30 * * * *",
        "Europe/Berlin",
        "2026-03-29T00:15:00Z",
        &["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z"],
    );
}

/// Covers behaviour 191.
#[test]
fn an_instant_has_one_key_however_it_is_written() {
    let key = |slot: &str| slot_key("reorder", "nightly", at(slot));
    assert_eq!(key("2026-11-29T03:00:00+01:00"), key("2026-11-29T02:00:00Z"));
    assert_eq!(key("2026-11-29T02:00:00Z"), "reorder/nightly@2026-11-29T02:00:00.000000Z");
    assert!("2026-11-29T02:00:00".parse::<Timestamp>().is_err(), "without a zone it is no slot");
}

const ZONES: &[&str] = &[
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Pacific/Apia",
];

fn any_field(least: u32, most: u32) -> impl Strategy<Value = String> {
    let number = least..=most;
    prop_oneof![
        2 => Just("*".to_owned()),
        2 => number.clone().prop_map(|one| one.to_string()),
        1 => (number.clone(), number.clone()).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (number.clone(), number.clone()).prop_map(|(a, b)| format!("{a},{b}")),
        1 => (1..=most).prop_map(|step| format!("*/{step}")),
    ]
}

fn any_cron() -> impl Strategy<Value = String> {
    (any_field(0, 59), any_field(0, 23), any_field(1, 31), any_field(1, 12), any_field(0, 7))
        .prop_map(|(a, b, c, d, e)| format!("{a} {b} {c} {d} {e}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, max_shrink_iters: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Covers field fault 48.
    #[test]
    fn slots_only_go_forward(cron in any_cron(), zone in prop::sample::select(ZONES), from in 0_i64..4_000_000_000) {
        let Ok(schedule) = Schedule::new(&cron, Some(zone)) else { return Ok(()) };
        let mut before = Timestamp::from_micros(from * 1_000_000);
        for _ in 0..5 {
            let slot = schedule.next_after(before).unwrap();
            prop_assert!(slot > before, "{} after {}", slot, before);
            before = slot;
        }
        let plan = schedule.to_plan();
        prop_assert_eq!(Schedule::of_plan(&plan).unwrap().to_plan(), plan);
    }

    /// Minute by minute, around a change of the clock: each wall-clock time that fits, at its first pass.
    #[test]
    fn slots_are_those_that_a_look_at_each_minute_finds(
        cron in any_cron(),
        zone in prop::sample::select(ZONES),
        day in prop::sample::select(&["2026-03-28", "2026-10-24", "2026-10-31", "2026-10-03", "2026-09-05", "2026-04-04"][..]),
    ) {
        let Ok(schedule) = Schedule::new(&cron, Some(zone)) else { return Ok(()) };
        let from = at(&format!("{day}T00:00:00Z"));
        let until = from.plus(surefoot_kernel_core::Micros::from_secs(3 * 86_400));
        let (found, expected) = (schedule.slots(from, until, 9_000), by_minute(&schedule, from, until));
        let differs = found.iter().zip(&expected).find(|(one, two)| one != two);
        prop_assert!(found.len() == expected.len() && differs.is_none(), "{} {:?}", found.len(), differs);
    }
}

/// The oracle: walks the minutes and reads the clock on the wall.
fn by_minute(schedule: &Schedule, from: Timestamp, until: Timestamp) -> Vec<Timestamp> {
    let minute = |at: i64| jiff::Timestamp::from_second(at * 60).unwrap();
    let wall = |at: i64| schedule.zone.to_datetime(minute(at));
    let fits = |it: jiff::civil::DateTime| {
        let weekday = u32::try_from(it.weekday().to_sunday_zero_offset()).unwrap();
        let (month, day) = (u32::try_from(it.month()).unwrap(), u32::try_from(it.day()).unwrap());
        schedule.cron.has_date(month, day, weekday)
            && schedule.cron.hours & (1 << it.hour()) != 0
            && schedule.cron.minutes & (1 << it.minute()) != 0
    };
    let (first, last) = (from.micros() / 60_000_000, until.micros() / 60_000_000);
    let mut seen: std::collections::HashSet<jiff::civil::DateTime> =
        ((first - 1_600)..=first).map(wall).collect();
    let mut slots = Vec::new();
    for at in first + 1..=last {
        let (before, now) = (wall(at - 1), wall(at));
        let mut times = vec![now];
        if !schedule.cron.is_every_hour {
            // What the clock jumped over.
            let mut skipped = before.checked_add(jiff::Span::new().minutes(1)).unwrap();
            while skipped < now {
                times.push(skipped);
                skipped = skipped.checked_add(jiff::Span::new().minutes(1)).unwrap();
            }
        }
        let is_new =
            |time: &jiff::civil::DateTime| schedule.cron.is_every_hour || !seen.contains(time);
        if times.iter().any(|time| fits(*time) && is_new(time)) {
            slots.push(Timestamp::from_micros(at * 60_000_000));
        }
        seen.insert(now);
    }
    slots
}
