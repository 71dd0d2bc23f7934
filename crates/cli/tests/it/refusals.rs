//! What is refused changes nothing, and says what to do.

use crate::shell::{Shell, normal};

/// Covers behaviour 184.
#[test]
fn a_verb_that_nobody_confirmed_changes_nothing() {
    let shell = Shell::published();
    let run = shell.unknown();
    let (id, seen) = (run.to_string(), shell.revision(run).to_string());
    let before = shell.fingerprint();
    let with = ["--reason", "x", "--revision", &seen];
    for verb in [
        vec!["cancel", &id],
        vec!["resolve", &id, "steps.1", "--not-performed"],
        vec!["reconcile", &id, "steps.1"],
        vec!["retry", &id],
        vec!["abandon", &id, "--accept-unknown"],
        vec!["activate", "reorder", "1", "--scope", "berlin"],
    ] {
        let did = shell.with(&[&verb[..], &with].concat());
        assert_eq!(did.code, 2, "{verb:?}: {did:?}");
        assert_eq!(
            did.err,
            format!(
                "error: `{}` was not confirmed, and nothing was changed: add `--yes`, or answer on a terminal\n",
                verb[0]
            )
        );
        assert_eq!(did.out, "");
    }
    assert_eq!(shell.fingerprint(), before);
}

#[test]
fn a_verb_needs_a_reason_and_the_revision_that_was_looked_at() {
    let shell = Shell::published();
    let run = shell.failed();
    let id = run.to_string();
    let before = shell.fingerprint();
    let long = "x".repeat(2_001);
    for (arguments, code, says) in [
        (vec!["retry", &id, "--yes", "--revision", "1"], 2, "--reason"),
        (
            vec!["retry", &id, "--yes", "--reason", &long, "--revision", "1"],
            2,
            "the reason has 2001 characters, the limit is 2000",
        ),
        // Before the server is looked for.
        (
            vec![
                "sync",
                "--nats",
                "nats://127.0.0.1:1",
                "pause",
                "jobs:mail",
                "--yes",
                "--reason",
                &long,
            ],
            2,
            "the limit is 2000",
        ),
        (vec!["retry", &id, "--yes", "--reason", "x"], 2, "--revision"),
        (vec!["retry", &id, "--yes", "--reason", " ", "--revision", "1"], 2, "words of your own"),
        (
            vec!["retry", &id, "--yes", "--reason", "<why>", "--revision", "1"],
            2,
            "words of your own",
        ),
        (vec!["retry", &id, "--yes", "--reason", "x", "--revision", "-1"], 2, "-1"),
        (
            vec!["cancel", &id, "--yes", "--reason", "x", "--revision", "0"],
            4,
            "nothing was changed",
        ),
        (vec!["retry", &id, "--yes", "--reason", "x", "--revision", "0"], 4, "at revision 0"),
    ] {
        let did = shell.with(&arguments);
        assert_eq!(did.code, code, "{arguments:?}: {did:?}");
        assert!(did.err.contains(says), "{arguments:?}: {}", did.err);
        assert_eq!(did.out, "");
    }
    assert_eq!(shell.fingerprint(), before);
}

#[test]
fn an_effect_has_one_verdict() {
    let shell = Shell::published();
    let id = shell.unknown();
    let (run, seen) = (id.to_string(), shell.revision(id).to_string());
    let rest = ["--revision", &seen, "--reason", "x", "--yes"];
    for verdict in [
        vec![],
        vec!["--not-performed", "--succeeded", "{}"],
        vec!["--not-performed", "--code", "X"],
    ] {
        let it = [&["resolve", &run, "steps.1"][..], &verdict, &rest].concat();
        assert_eq!(shell.with(&it).code, 2, "{verdict:?}");
    }
    for code in ["", "card declined", "CARD\u{1b}[31m", &"X".repeat(101)] {
        let it = ["resolve", &run, "steps.1", "--failed", "no", "--code", code];
        let did = shell.with(&[&it[..], &rest].concat());
        assert_eq!(did.code, 2, "{code}: {did:?}");
        assert!(did.err.contains("is no code"), "{}", did.err);
    }
}

#[test]
fn malformed_ids_are_refused_with_what_was_expected() {
    let shell = Shell::published();
    for (id, says) in [
        ("run_12", "after the prefix come 32 hexadecimal digits"),
        ("evt_00000000000000000000000000000000", "expected an id that starts with `run_`"),
        ("", "expected an id that starts with `run_`"),
        ("run_ｆ0000000000000000000000000000000", "`run_"),
    ] {
        for verb in ["show", "explain"] {
            let did = shell.with(&[verb, id]);
            assert_eq!(did.code, 2, "{did:?}");
            assert!(did.err.contains(says), "{}", did.err);
        }
    }
    let missing = format!("run_{}", "0".repeat(32));
    let did = shell.with(&["show", &missing]);
    assert_eq!((did.code, did.err), (1, format!("error: there is no run {missing}\n")));
    for (line, says) in [
        ("runs --state dead", "the states are queued, running"),
        ("runs --mode fast", "the modes are execute, dry_run"),
        ("events --status gone", "the statuses are pending"),
        ("runs --limit 0", "1..=1000"),
        ("runs --since yesterday", "how long ago"),
        ("effects --older-than 5", "not a duration"),
        ("runs --childs", "unexpected argument"),
        ("frobnicate", "unrecognized subcommand"),
    ] {
        let did = shell.run(line);
        assert_eq!(did.code, 2, "{line}: {did:?}");
        assert!(did.err.contains(says), "{line}: {}", did.err);
    }
    for line in ["runs --cursor x", "events --cursor x"] {
        let did = shell.run(line);
        let says = "error: the cursor is not one of this list: begin again without a cursor\n";
        assert_eq!((did.code, &*did.err), (2, says), "{line}");
    }
}

#[test]
fn whoever_only_looks_creates_no_store() {
    let shell = Shell::new();
    let id = format!("run_{}", "0".repeat(32));
    let lines = [
        "runs".to_owned(),
        "events".to_owned(),
        "signals".to_owned(),
        "effects".to_owned(),
        "health".to_owned(),
        "workflows".to_owned(),
        "versions x --scope y".to_owned(),
        "signal approval 7 --scope berlin".to_owned(),
        format!("show {id}"),
        format!("explain {id}"),
        format!("cancel {id} --reason x --yes"),
    ];
    for line in &lines {
        let did = shell.run(line);
        assert_eq!(did.code, 3, "{line}: {did:?}");
        assert!(did.err.starts_with("error: there is no store at `surefoot.db`"), "{}", did.err);
        assert!(!shell.has("surefoot.db"), "{line}");
    }
    // An empty file is no store either, and stays empty.
    shell.write("surefoot.db", "");
    assert_eq!(shell.run("runs").code, 3);
    assert_eq!(std::fs::metadata(shell.path("surefoot.db")).unwrap().len(), 0);
}

#[test]
fn stores_that_cannot_be_used_say_why() {
    let shell = Shell::published();
    shell.write("text.db", &"this is no database. ".repeat(100));
    for (store, code, says) in [
        ("postgres://mia:s3cret@127.0.0.1:1/shop", 3, "`postgres://mia@127.0.0.1:1/shop` cannot"),
        ("postgresql://127.0.0.1:1/shop", 3, "cannot be used"),
        ("mysql:shop", 2, "names no store"),
        ("", 2, "names no store"),
        ("sqlite:", 2, "names no store"),
        ("sqlite:nowhere/surefoot.db", 3, "there is no store"),
        ("sqlite:text.db", 3, "the store `sqlite:text.db` cannot be used"),
        ("sqlite:.", 3, "cannot be used"),
    ] {
        let did = shell.with(&["runs", "--store", store]);
        assert_eq!(did.code, code, "{store}: {did:?}");
        assert!(did.err.contains(says), "{store}: {}", did.err);
    }
    let did = shell.with(&["runs", "--store", "sqlite:text.db"]);
    assert!(did.err.contains("\n  caused by: "), "{}", did.err);
}

#[test]
fn the_environment_names_store_app_and_scope() {
    let shell = Shell::published();
    let url = format!("sqlite:{}", shell.path("surefoot.db").display());
    let elsewhere = Shell::new();
    let mut command = elsewhere.command(&["versions", "reorder", "--json"]);
    command.env("SUREFOOT_STORE", url).env("SUREFOOT_APP", "shop").env("SUREFOOT_SCOPE", "berlin");
    assert!(command.output().unwrap().status.success());
}

#[test]
fn the_app_must_be_known_where_there_are_several() {
    let shell = Shell::published();
    let publish = "publish reorder.yaml --manifest manifest.json --app other --scope berlin";
    assert_eq!(shell.run(publish).code, 0);
    let did = shell.run("runs");
    assert_eq!(did.code, 2);
    assert_eq!(
        did.err,
        "error: the store holds several apps (other, shop): name one with `--app`\n"
    );
    assert_eq!(shell.run("runs --app shop").code, 0);
    // A misspelt name is not an app where nothing happens.
    let did = shell.run("health --app shopp");
    assert_eq!(did.code, 1, "{did:?}");
    assert!(did.err.contains("it holds other, shop"), "{}", did.err);
    assert_eq!(shell.json("health")["apps"].as_array().unwrap().len(), 2);
}

/// A file without an end, or a wrong one, must not take all memory before it is refused.
#[cfg(unix)]
#[test]
fn input_that_does_not_end_is_refused() {
    let shell = Shell::published();
    for line in ["check /dev/zero", "emit x --scope berlin --data - </dev/zero"] {
        let (line, endless) = line.split_once(" <").unwrap_or((line, "/dev/null"));
        let arguments: Vec<&str> = line.split(' ').collect();
        let stdin = std::fs::File::open(endless).unwrap();
        let did = shell.command(&arguments).stdin(stdin).output().unwrap();
        let err = String::from_utf8(did.stderr).unwrap();
        assert_eq!(did.status.code(), Some(2), "{line}: {err}");
        assert!(err.contains("it has more than 64 MiB"), "{line}: {err}");
    }
}

#[test]
fn help_and_version_are_data() {
    let shell = Shell::new();
    for line in ["--help", "--version", "resolve --help", "help explain"] {
        let did = shell.run(line);
        assert_eq!((did.code, did.err.as_str()), (0, ""), "{line}");
        assert!(!did.out.is_empty());
    }
    let did = shell.run("");
    assert_eq!(did.code, 2);
    assert!(normal(&did.err).contains("Usage: surefoot"), "{}", did.err);
}
