//! The demo as a user starts it: one show, field by field, and what a person does after it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::database::Database;

const EVENTS: u64 = 40;

/// The demo ends by itself when nothing changes any more, so nothing here looks at a clock.
fn surefoot(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_surefoot")).args(args).output().unwrap()
}

fn report(output: &Output) -> BTreeMap<String, Value> {
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{talk}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn number(report: &BTreeMap<String, Value>, field: &str) -> u64 {
    let value = report.get(field).and_then(Value::as_u64);
    assert!(value.is_some(), "`{field}` is no number in {report:?}");
    value.unwrap()
}

/// How often each key stands in the provider's log, which holds charges and nothing else.
fn charges(log: &Path) -> BTreeMap<String, u64> {
    let mut times = BTreeMap::new();
    for line in fs::read_to_string(log).unwrap().lines() {
        let charge: Value = serde_json::from_str(line).unwrap();
        *times.entry(charge["effect_key"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    times
}

#[test]
fn a_worker_is_killed_in_a_charge_and_nothing_is_lost_or_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("show");
    let dir = dir.to_str().unwrap();
    let output = surefoot(&["demo", "--json", "--events", &EVENTS.to_string(), "--dir", dir]);
    let shown = report(&output);
    check(&output, &shown);
    assert!(Path::new(shown["store"].as_str().unwrap()).is_file());

    a_person_decides(dir, &[]);

    // The same folder again would mix two shows up.
    let again = surefoot(&["demo", "--json", "--events", "40", "--dir", dir]);
    assert_eq!((again.status.code(), again.stdout.as_slice()), (Some(1), &b""[..]));
    assert!(String::from_utf8_lossy(&again.stderr).contains("not empty"));
}

#[test]
fn the_same_show_plays_on_a_server() {
    let database = Database::new();
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("show");
    let (dir, url) = (dir.to_str().unwrap(), database.url());
    let events = EVENTS.to_string();
    let output = surefoot(&["demo", "--json", "--events", &events, "--dir", dir, "--store", url]);
    let shown = report(&output);
    check(&output, &shown);
    assert!(shown["store"].as_str().unwrap().starts_with("postgres://"), "{shown:?}");

    a_person_decides(dir, &["--store", url]);

    // The same database again would mix two shows up.
    let other = folder.path().join("other");
    let other = ["demo", "--dir", other.to_str().unwrap(), "--store", url];
    let again = surefoot(&other);
    assert_eq!((again.status.code(), again.stdout.as_slice()), (Some(1), &b""[..]));
    assert!(String::from_utf8_lossy(&again.stderr).contains("holds runs"), "{again:?}");
}

/// Both logs agree, and everything was shown.
fn check(output: &Output, shown: &BTreeMap<String, Value>) {
    let get = |field| number(shown, field);
    let fields = [
        "charges_confirmed",
        "charges_open",
        "charges_provider",
        "failed",
        "killed_in_call",
        "lost",
        "needs_attention",
        "provider_log",
        "reconciled",
        "recovery_ms",
        "repeated",
        "runs",
        "store",
        "succeeded",
        "workers_killed",
    ];
    assert!(shown.keys().eq(fields), "{shown:?}");
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 1, "one line of data");

    assert_eq!(get("runs"), EVENTS);
    assert_eq!(get("succeeded") + get("failed") + get("needs_attention"), EVENTS);
    assert!(get("succeeded") > 0 && get("failed") > 0 && get("needs_attention") > 0, "{shown:?}");
    assert_eq!((get("lost"), get("repeated"), get("workers_killed")), (0, 0, 1));
    assert!(get("killed_in_call") >= 1 && get("reconciled") >= 1, "{shown:?}");
    assert!(get("recovery_ms") > 0);

    let log = charges(Path::new(shown["provider_log"].as_str().unwrap()));
    assert_eq!(log.len() as u64, get("charges_provider"));
    assert!(get("charges_provider") * 4 >= EVENTS);
    assert!(log.values().all(|times| *times == 1), "{log:?}");
    // What the provider charged is confirmed or open; what is open may also be a call that never reached it.
    let explained = get("charges_confirmed") + get("charges_open");
    assert!(
        explained >= get("charges_provider") && get("charges_confirmed") <= get("charges_provider")
    );
}

/// Types what the show says to type, and lets a worker go on, until there is nothing left to decide.
fn a_person_decides(dir: &str, store: &[&str]) {
    let finish = [&["demo", "--json", "--finish", dir], store].concat();

    loop {
        let table =
            String::from_utf8(surefoot(&[&["demo", "--finish", dir], store].concat()).stdout)
                .unwrap();
        let commands: Vec<&str> = table.lines().filter(|it| it.contains(" resolve ")).collect();
        for command in &commands {
            // As in the shell that it was printed for.
            let typed = Command::new("sh").args(["-c", command]).output().unwrap();
            assert!(
                typed.status.success(),
                "{command}\n{}",
                String::from_utf8_lossy(&typed.stderr)
            );
        }
        if commands.is_empty() {
            break;
        }
    }
    let finished = report(&surefoot(&finish));
    let get = |field| number(&finished, field);
    assert_eq!((get("needs_attention"), get("charges_open")), (0, 0), "{finished:?}");
    assert_eq!((get("lost"), get("repeated")), (0, 0), "{finished:?}");
    assert_eq!(get("charges_provider"), get("charges_confirmed"));
}
