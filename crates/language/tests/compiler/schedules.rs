//! The built-in trigger `schedule`.

use expect_test::expect;

use crate::support::{check, plan};

fn workflow(schedule: &str) -> String {
    format!(
        "inputs:\n  day: {{ type: time, required: true }}\ntriggers:\n  schedule:\n{schedule}\nsteps:\n  - noop: {{}}\n"
    )
}

#[test]
fn a_schedule_is_a_trigger_of_its_name() {
    let plan = plan(&workflow(
        "    nightly: { cron: \"30  2 * * 1-5\", timezone: europe/berlin, with: { day: \"${{ trigger.slot }}\" } }\n    weekly: { cron: \"0 9 * * 1\", with: { day: \"${{ now() }}\" } }",
    ));
    let nightly = &plan.triggers["nightly"];
    assert_eq!(nightly.event, "surefoot.schedule.nightly");
    let schedule = nightly.schedule.clone().unwrap();
    assert_eq!(
        (schedule.cron.as_str(), schedule.timezone.as_deref()),
        ("30 2 * * 1,2,3,4,5", Some("Europe/Berlin"))
    );
    assert_eq!(plan.triggers["weekly"].schedule.clone().unwrap().timezone, None);
    let keys: Vec<String> =
        surefoot_kernel_core::Activation::of_plan(&plan).into_iter().map(|it| it.key).collect();
    assert_eq!(keys, ["start", "nightly", "weekly"]);
}

/// Covers behaviours 187, 188, 190.
#[test]
fn what_is_wrong_with_a_schedule_is_said_at_its_place() {
    check(
        &workflow(
            "    a: { cron: \"0 0 31 2 *\", with: { day: \"${{ trigger.slot }}\" } }\n    b: { cron: \"* * * *\", with: { day: \"${{ trigger.slto }}\" } }\n    c: { cron: \"0 9 * * MON\", timezone: Berlin, with: { day: \"${{ trigger.occurredAt }}\" } }\n    d: { cron: \"0 9 * * 1\", zone: UTC }\n    e: { timezone: UTC, with: { day: \"${{ trigger.slot }}\" } }\n    f: { cron: \"0 9 * * 1\", timezone: Berlin, with: { day: \"${{ inputs.day }}\" } }",
        ),
        expect![[r#"
            5:16-5:28 error CRON_INVALID: no year has such a day: the month is never that long
              at: triggers.schedule.a.cron
            6:16-6:25 error CRON_INVALID: a cron expression has five fields, this has 4
              at: triggers.schedule.b.cron
              help: write it like `30 2 * * 1-5`
            6:53-6:57 error UNKNOWN_MEMBER: there is no member `slto` here
              at: triggers.schedule.b.with.day
              help: did you mean `slot`?
            7:16-7:29 error CRON_INVALID: `MON` is no day of the week: it is written in digits, from 0 to 7
              at: triggers.schedule.c.cron
            8:5-8:6 error INPUT_NOT_BOUND: the trigger does not bind the required input `day`
              at: triggers.schedule.d
              help: add `day:` to the trigger's `with`
            8:29-8:33 error UNKNOWN_KEY: unknown key `zone`
              at: triggers.schedule.d.zone
              help: known here: `cron`, `timezone`, `with`
            9:5-9:6 error MISSING_KEY: the key `cron` is missing
              at: triggers.schedule.e
            10:39-10:45 error UNKNOWN_TIMEZONE: there is no time zone `Berlin`
              at: triggers.schedule.f.timezone
              help: write it like `Europe/Berlin`
            10:65-10:71 error UNKNOWN_NAME: `inputs` does not exist here
              at: triggers.schedule.f.with.day
              help: a trigger's `with` sees `trigger.*` and `now()` only
        "#]],
    );
}

#[test]
fn the_name_of_a_schedule_is_its_own() {
    check(
        "triggers:\n  itemChanged: {}\n  schedule:\n    itemChanged: { cron: \"0 9 * * 1\" }\n    start: { cron: \"0 9 * * 1\" }\n    1st: { cron: \"0 9 * * 1\" }\n  scheduel: {}\nsteps:\n  - noop: {}\n",
        expect![[r#"
            4:5-4:16 error NAME_TAKEN: `itemChanged` is the name of another trigger
              at: triggers.schedule.itemChanged
              help: a name such as `nightly` has letters, digits and `_`, and does not start with a digit
            5:5-5:10 error NAME_RESERVED: `start` is reserved: it has a meaning of its own
              at: triggers.schedule.start
              help: a name such as `nightly` has letters, digits and `_`, and does not start with a digit
            6:5-6:8 error NAME_INVALID: `1st` is no name of a schedule: it has at most 100 characters
              at: triggers.schedule.1st
              help: a name such as `nightly` has letters, digits and `_`, and does not start with a digit
            7:3-7:11 error UNKNOWN_TRIGGER: there is no trigger `scheduel`
              at: triggers.scheduel
              help: did you mean `schedule`?
        "#]],
    );
    check(
        "triggers:\n  schedule: {}\nsteps:\n  - noop: {}\n",
        expect![[r#"
        2:3-2:11 error TRIGGERS_EMPTY: `schedule` is empty
          at: triggers.schedule
          help: give each schedule a name: `nightly: { cron: "30 2 * * *" }`
    "#]],
    );
    check(
        "triggers:\n  schedule: \"0 9 * * 1\"\nsteps:\n  - noop: {}\n",
        expect![[r#"
        2:13-2:24 error NOT_A_MAPPING: `schedule` is a mapping; this is a text
          at: triggers.schedule
    "#]],
    );
}
