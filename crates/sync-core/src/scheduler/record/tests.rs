use proptest::prelude::*;
use surefoot_kernel_core::Micros;

use super::*;

const HOLD: Duration = Duration::from_secs(30);

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn spec(cron: &str) -> ScheduleSpec {
    ScheduleSpec::new(Key::new("nightly").unwrap(), cron, None).unwrap()
}

fn begun(record: &ScheduleRecord, now: Timestamp) -> Option<(ScheduleRecord, Begun)> {
    let next = record.begin(now, HOLD).unwrap()?;
    let run = next.current.clone()?;
    Some((next, run))
}

fn end(record: &ScheduleRecord, run: &Begun, outcome: Outcome, now: Timestamp) -> ScheduleRecord {
    record.end(run, outcome, now, &Backoff::default()).unwrap()
}

/// The slots that run when a worker comes at some instants and each run succeeds at once.
fn slots(misfire: Misfire, looks: &[&str]) -> Vec<String> {
    let start = at("2026-03-01T00:00:30Z");
    let mut record = ScheduleRecord::new(spec("*/10 * * * *").misfire(misfire), start);
    let mut seen = Vec::new();
    for look in looks {
        while let Some((next, run)) = begun(&record, at(look)) {
            let Occasion::Slot(slot) = &run.occasion else { unreachable!() };
            seen.push(slot.to_string()[11..16].to_owned());
            record = end(&next, &run, Outcome::Succeeded, at(look));
        }
    }
    seen
}

#[test]
fn missed_slots_are_run_as_the_policy_says() {
    let looks = ["2026-03-01T00:10:01Z", "2026-03-01T00:10:02Z", "2026-03-01T00:45:00Z"];
    assert_eq!(slots(Misfire::Latest, &looks), ["00:10", "00:40"]);
    assert_eq!(slots(Misfire::All, &looks), ["00:10", "00:20", "00:30", "00:40"]);
    assert_eq!(slots(Misfire::Latest, &["2026-03-09T00:05:00Z"]), ["00:00"], "after a week");
}

/// Covers field fault 65.
#[test]
fn a_clock_that_is_set_back_repeats_nothing() {
    let looks = ["2026-03-01T02:10:00Z", "2026-03-01T00:10:00Z", "2026-03-01T02:19:00Z"];
    assert_eq!(slots(Misfire::Latest, &looks), ["02:10"]);
}

#[test]
fn one_run_at_a_time_with_attempts_of_its_own() {
    let (start, slot) = (at("2026-03-01T00:00:30Z"), at("2026-03-01T00:10:00Z"));
    let record = ScheduleRecord::new(spec("*/10 * * * *").attempts(2), start);
    assert_eq!(begun(&record, start), None);
    let (record, first) = begun(&record, slot).unwrap();
    assert_eq!((first.number, first.attempt), (1, 1));
    let later = slot.plus(Micros::from_secs(29));
    assert_eq!(begun(&record, later), None, "it is held");
    let record = end(&record, &first, Outcome::Failed("busy".to_owned()), slot);
    assert_eq!(begun(&record, slot), None, "it waits");
    let (record, second) = begun(&record, slot.plus(Micros::from_secs(1))).unwrap();
    assert_eq!((second.number, second.attempt, &second.occasion), (1, 2, &first.occasion));
    assert_eq!(record.end(&first, Outcome::Succeeded, slot, &Backoff::default()), None, "stale");
    let record = end(&record, &second, Outcome::Failed("still busy".to_owned()), slot);
    assert_eq!(record.last_outcome(), Some(&Outcome::Failed("still busy".to_owned())));
    assert_eq!(begun(&record, later), None, "the slot is over");
}

/// Covers field faults 59, 60, 61.
#[test]
fn whoever_takes_over_counts_the_attempt_and_the_old_holder_is_stale() {
    let slot = at("2026-03-01T00:10:00Z");
    let record = ScheduleRecord::new(spec("*/10 * * * *").attempts(2), at("2026-03-01T00:00:30Z"));
    let (record, first) = begun(&record, slot).unwrap();
    let lapsed = slot.plus(Micros::from_secs(30));
    let (taken, second) = begun(&record, lapsed).unwrap();
    assert_eq!((second.number, second.attempt), (1, 2));
    assert_eq!(taken.hold(&first, lapsed, HOLD), None);
    assert!(taken.hold(&second, lapsed, HOLD).is_some());
    let lapsed = lapsed.plus(Micros::from_secs(30));
    let over = taken.begin(lapsed, HOLD).unwrap().unwrap();
    assert_eq!(over.current, None);
    assert!(matches!(over.last_outcome(), Some(Outcome::Failed(_))));
}

/// Covers field fault 54.
#[test]
fn a_request_runs_once_however_often_it_is_made() {
    let now = at("2026-03-01T00:00:30Z");
    let record = ScheduleRecord::new(spec("0 0 1 1 *"), now);
    let request = Key::new("by ann").unwrap();
    let asked = record.ask(&request).unwrap().unwrap();
    assert_eq!(asked.ask(&request).unwrap(), None, "it waits");
    let (running, run) = begun(&asked, now).unwrap();
    assert_eq!(run.occasion, Occasion::Asked(request.clone()));
    assert_eq!(running.ask(&request).unwrap(), None, "it runs");
    assert_eq!(running.outcome_of(&request), None);
    let ended = end(&running, &run, Outcome::Succeeded, now);
    assert_eq!(ended.ask(&request).unwrap(), None, "it has ended");
    assert_eq!(ended.outcome_of(&request), Some(&Outcome::Succeeded));
    assert_eq!(ended.dealt_until, record.dealt_until, "no slot is used up");
    let mut full = record;
    for number in 0..ASKED_MAX {
        full = full.ask(&Key::new(number.to_string()).unwrap()).unwrap().unwrap();
    }
    assert!(matches!(full.ask(&request), Err(SyncError::StoreFull { .. })));
}

/// Covers behaviour 209.
#[test]
fn the_end_of_a_run_is_not_that_of_a_schedule_created_again() {
    let slot = at("2026-03-01T00:10:00Z");
    let born = |text| ScheduleRecord::new(spec("*/10 * * * *"), at(text));
    let (_, old) = begun(&born("2026-03-01T00:00:30Z"), slot).unwrap();
    let (record, new) = begun(&born("2026-03-01T00:00:31Z"), slot).unwrap();
    assert_eq!((old.number, old.attempt), (new.number, new.attempt));
    assert_eq!(record.end(&old, Outcome::Succeeded, slot, &Backoff::default()), None);
    assert_eq!(record.hold(&old, slot, HOLD), None);
}

#[test]
fn another_time_begins_anew_and_another_policy_does_not() {
    let (start, now) = (at("2026-03-01T00:00:30Z"), at("2026-03-01T01:00:30Z"));
    let record = ScheduleRecord::new(spec("*/10 * * * *"), start);
    assert_eq!(record.clone().respecified(spec("*/10 *  * * *"), now), None, "only blanks differ");
    let all = record.clone().respecified(spec("*/10 * * * *").misfire(Misfire::All), now).unwrap();
    assert_eq!(all.dealt_until, start);
    let hourly = record.respecified(spec("0 * * * *"), now).unwrap();
    assert_eq!((hourly.dealt_until, begun(&hourly, now)), (now, None));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Covers field faults 51, 52, 53.
    #[test]
    fn there_is_always_something_next_and_no_slot_runs_twice(
        steps in prop::collection::vec((0_i64..2_000, 0_u8..4), 1..60), all in any::<bool>(),
    ) {
        let misfire = if all { Misfire::All } else { Misfire::Latest };
        let mut now = at("2026-03-01T00:00:30Z");
        let mut record = ScheduleRecord::new(spec("*/7 * * * *").misfire(misfire).attempts(2), now);
        let (mut held, mut last) = (None::<Begun>, None);
        for (seconds, what) in steps {
            now = now.plus(Micros::from_secs(seconds));
            match (what, held.take()) {
                (0, Some(run)) => {
                    let ended = record.end(&run, Outcome::Succeeded, now, &Backoff::default());
                    record = ended.unwrap_or(record);
                }
                (1, Some(run)) => {
                    let failed = Outcome::Failed("busy".to_owned());
                    record = record.end(&run, failed, now, &Backoff::default()).unwrap_or(record);
                }
                // The worker died.
                (_, held_before) => {
                    held = held_before.filter(|_| what == 2);
                    if let Some(next) = record.begin(now, HOLD).unwrap() {
                        if let Some(run) = next.current.clone().filter(|run| run.attempt == 1) {
                            let Occasion::Slot(slot) = run.occasion else { unreachable!() };
                            let fits = slot <= now && (slot.micros() / 60_000_000 % 60) % 7 == 0;
                            prop_assert!(fits, "{}", slot);
                            prop_assert!(last.is_none_or(|last| last < slot));
                            last = Some(slot);
                        }
                        held = next.current.clone();
                        record = next;
                    }
                }
            }
            prop_assert!(record.next_at().unwrap().is_some());
        }
    }
}

fn nightly(cron: &str) -> ScheduleRecord {
    ScheduleRecord::new(spec(cron), at("2026-03-01T00:00:30Z"))
}

/// Runs whatever there is to do at an instant, each run at once, and tells why each ran.
fn occasions(record: &mut ScheduleRecord, now: &str) -> Vec<Occasion> {
    let mut seen = Vec::new();
    while let Some((next, run)) = begun(record, at(now)) {
        seen.push(run.occasion.clone());
        *record = end(&next, &run, Outcome::Succeeded, at(now));
    }
    seen
}

fn backfilled(record: &mut ScheduleRecord, after: &str, until: &str, now: &str) -> Vec<String> {
    let span = Span { after: at(after), until: at(until) };
    if let Some(next) = record.backfill(span, at(now)).unwrap() {
        *record = next;
    }
    let of = |occasion: Occasion| match occasion {
        Occasion::Backfill(slot) => slot.to_string()[5..16].to_owned(),
        Occasion::Slot(_) | Occasion::Asked(_) => panic!("{occasion:?}"),
    };
    occasions(record, now).into_iter().map(of).collect()
}

fn pause() -> Pause {
    Pause { since: at("2026-03-01T00:05:00Z"), by: "ann".to_owned(), reason: "a test".to_owned() }
}

/// Covers field fault 51.
#[test]
fn a_schedule_that_was_paused_around_a_slot_has_a_next_one() {
    for (paused, resumed) in
        [("00:09:59", "00:10:01"), ("00:10:00", "00:10:00"), ("00:05:00", "03:00:00")]
    {
        let day = |time: &str| format!("2026-03-01T{time}Z");
        let mut record = nightly("*/10 * * * *");
        occasions(&mut record, &day(paused));
        record = record.pause(pause()).unwrap();
        assert_eq!(record.pause(pause()), None);
        assert_eq!(record.next_at().unwrap(), None);
        assert_eq!(occasions(&mut record, &day(resumed)), []);
        record = record.resume(at(&day(resumed))).unwrap();
        assert_eq!(record.resume(at(&day(resumed))), None);
        assert_eq!(occasions(&mut record, &day(resumed)), [], "what passed meanwhile");
        let next = record.next_at().unwrap().unwrap();
        assert!(next > at(&day(resumed)));
        assert_eq!(occasions(&mut record, &next.to_string()), [Occasion::Slot(next)]);
    }
}

/// A slip of the pen in a year must not ask for a million runs.
#[test]
fn a_backfill_of_very_many_slots_is_refused_and_smaller_ones_are_not() {
    let record = nightly("* * * * *").resume(at("2026-06-01T00:00:00Z"));
    assert_eq!(record, None, "it is not paused");
    let mut record = nightly("* * * * *");
    record.dealt_until = at("2026-06-01T00:00:00Z");
    let ask = |record: &ScheduleRecord, minutes: usize| {
        let after = at("2026-03-01T00:00:00Z");
        let minutes = i64::try_from(minutes).unwrap();
        let until = after.plus(Micros::from_secs(60 * minutes));
        record.backfill(Span { after, until }, at("2026-06-01T00:00:00Z"))
    };
    let refused = ask(&record, BACKFILL_SLOTS_MAX + 1).unwrap_err();
    let SyncError::InvalidOption { option: "from", why } = &refused else { panic!("{refused}") };
    assert!(why.contains("one part after the other"), "{why}");
    let first = ask(&record, BACKFILL_SLOTS_MAX).unwrap().unwrap();
    // Only what is new counts.
    assert!(ask(&first, BACKFILL_SLOTS_MAX + 1).unwrap().is_some());
}

#[test]
fn a_paused_schedule_does_what_somebody_asks_for() {
    let mut record = nightly("*/10 * * * *").pause(pause()).unwrap();
    let request = Key::new("r").unwrap();
    record = record.ask(&request).unwrap().unwrap();
    assert_eq!(occasions(&mut record, "2026-03-01T00:30:00Z"), [Occasion::Asked(request)]);
    let now = "2026-03-01T00:30:00Z";
    assert_eq!(
        backfilled(&mut record, "2026-03-01T00:15:00Z", now, now),
        ["03-01T00:20", "03-01T00:30"]
    );
    record = record.resume(at(now)).unwrap();
    assert_eq!(occasions(&mut record, now), [], "what was asked for is not run again");
}

/// Covers field fault 54.
#[test]
fn a_stretch_is_backfilled_once_however_often_and_in_whatever_parts() {
    let mut record = nightly("0 * * * *");
    let now = "2026-03-02T00:30:00Z";
    occasions(&mut record, now);
    let mut fill = |after: &str, until: &str| {
        let day = |time: &str| format!("2026-03-01T{time}:00Z");
        backfilled(&mut record, &day(after), &day(until), now)
    };
    assert_eq!(fill("04:00", "06:00"), ["03-01T05:00", "03-01T06:00"]);
    for _ in 0..5 {
        assert_eq!(fill("04:00", "06:00"), Vec::<String>::new());
    }
    assert_eq!(
        fill("02:30", "08:30"),
        ["03-01T03:00", "03-01T04:00", "03-01T07:00", "03-01T08:00"]
    );
    assert_eq!(fill("03:00", "09:00"), ["03-01T09:00"]);
}

/// Covers field fault 126.
#[test]
fn a_backfill_goes_by_what_the_schedule_was_then() {
    let mut record = nightly("0 6 * * *");
    let other = spec("0 18 * * *");
    record = record.respecified(other, at("2026-03-03T12:00:00Z")).unwrap();
    let now = "2026-03-05T20:00:00Z";
    occasions(&mut record, now);
    let seen = backfilled(&mut record, "2026-02-28T00:00:00Z", "2026-03-05T19:00:00Z", now);
    // Before it was there it is taken as it was first.
    let morning = ["02-28T06:00", "03-01T06:00", "03-02T06:00", "03-03T06:00"];
    let evening = ["03-03T18:00", "03-04T18:00", "03-05T18:00"];
    assert_eq!(seen, morning.into_iter().chain(evening).collect::<Vec<_>>());
}

#[test]
fn a_backfill_is_of_the_past_and_leaves_what_is_due_to_the_schedule() {
    let mut record = nightly("*/10 * * * *");
    let (after, until) = (at("2026-03-01T00:00:30Z"), at("2026-03-01T00:30:00Z"));
    let error = record.backfill(Span { after, until }, at("2026-03-01T00:29:00Z")).unwrap_err();
    assert!(matches!(error, SyncError::InvalidOption { option: "until", .. }), "{error}");
    // Nobody has looked yet: all of it is due.
    assert_eq!(record.backfill(Span { after, until }, until).unwrap(), None);
    assert_eq!(occasions(&mut record, "2026-03-01T00:30:00Z"), [Occasion::Slot(until)]);
    let now = "2026-03-01T00:31:00Z";
    let seen = backfilled(&mut record, "2026-03-01T00:00:30Z", now, now);
    assert_eq!(seen, ["03-01T00:10", "03-01T00:20", "03-01T00:30"]);
}
