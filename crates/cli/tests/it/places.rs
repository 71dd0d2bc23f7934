//! What is misspelt, narrowed to a scope, or in somebody else's file: it is told, never shown as nothing.

use crate::shell::{Shell, normal};

#[test]
fn emit_says_which_mistake_it_was() {
    let shell = Shell::published();
    for (line, says) in [
        ("emit inventory.stockLow --scope berln", "there are workflows in berlin"),
        ("emit surefoot.start --workflow reordr --scope berlin", "it has reorder"),
        ("emit surefoot.start --scope berlin", "name it with `--workflow`"),
        ("emit inventory.stockLo --scope berlin", "but to inventory.stockLow"),
    ] {
        let did = shell.run(line);
        assert_eq!(did.code, 0, "{line}: {did:?}");
        assert!(did.out.contains("it starts nothing: ") && did.out.contains(says), "{did:?}");
    }
    let off = "disable reorder stockLow --scope berlin --reason late --yes";
    assert_eq!(shell.run(off).code, 0);
    let did = shell.run("emit inventory.stockLow --scope berlin");
    let says = "    surefoot enable reorder stockLow --app shop --scope berlin --reason '<why>'\n";
    assert!(did.out.contains(says), "{did:?}");
    let json = shell.json("emit inventory.stockLow --scope berlin");
    assert!(json["why_nothing"].as_str().unwrap().contains("switched off"), "{json}");
    let typed = json["command"].as_str().unwrap().replace("<why>", "mended");
    let typed = typed.strip_prefix("surefoot ").unwrap().replace('\'', "");
    assert_eq!(shell.run(&format!("{typed} --yes")).code, 0, "{typed}");
}

#[test]
fn a_name_that_is_not_there_is_told_and_one_that_is_none_is_wrong_usage() {
    let shell = Shell::published();
    let missing = format!("runs --parent run_{}", "0".repeat(32));
    for line in ["doctor --app nope", "runs --workflow nope", &missing] {
        let did = shell.run(line);
        assert_eq!((did.code, did.out.as_str()), (1, ""), "{line}: {did:?}");
        assert!(did.err.starts_with("error: there is no "), "{line}: {did:?}");
    }
    let place = ["--scope", "berlin", "--app", "shop"];
    let long = "x".repeat(201);
    for arguments in [
        vec!["emit", ""],
        vec!["emit", &long],
        vec!["emit", "x", "--key", ""],
        vec!["signal", "", "k"],
        vec!["retry", "--failed", "--code", "a b", "--reason", "x", "--yes"],
    ] {
        let did = shell.with(&[&arguments[..], &place].concat());
        assert_eq!(did.code, 2, "{arguments:?}: {did:?}");
    }
    let budget =
        "publish reorder.yaml --manifest manifest.json --scope berlin --budget payments=1e-9";
    let did = shell.run(budget);
    assert_eq!(did.code, 2, "{did:?}");
    assert!(did.err.contains("counts in millionths"), "{did:?}");
    let activate = "activate reorder 99 --scope berlin --reason x --yes";
    let did = shell.run(activate);
    assert_eq!(did.err, "error: there is no version 99 of workflow `reorder`\n");
}

#[test]
fn an_emit_under_the_key_of_a_pruned_run_says_so() {
    let shell = Shell::published();
    let run = shell.failed();
    let prune = "prune --older-than 0s --state failed --reason late --yes --scope berlin";
    assert_eq!(shell.json(prune)["runs"], 1);
    let data = r#"{"item": "bolt"}"#;
    let again =
        ["emit", "inventory.stockLow", "--scope", "berlin", "--key", "bolt", "--data", data];
    let did = shell.with(&again);
    assert!(did.out.contains(&format!("run   {run} (pruned since)\n")), "{did:?}");
    assert!(did.out.contains("emit it under another key"), "{did:?}");
}

#[test]
fn a_scope_narrows_lists_guards_runs_and_is_refused_where_it_means_nothing() {
    let shell = Shell::published();
    let run = shell.unknown();
    for list in ["runs", "effects", "events", "audit", "workflows"] {
        let here = shell.run(&format!("{list} --scope berlin"));
        assert_eq!((here.code, here.out.lines().count() > 1), (0, true), "{list}: {here:?}");
        let there = shell.run(&format!("{list} --scope bonn"));
        assert_eq!((there.code, there.out.as_str()), (1, ""), "{list}: {there:?}");
        assert!(there.err.contains("there are workflows in berlin"), "{list}: {there:?}");
    }
    assert_eq!(shell.run("signals --scope bonn").code, 1);
    for verb in ["show", "explain", "watch"] {
        let elsewhere = shell.run(&format!("{verb} {run} --scope bonn"));
        assert_eq!(elsewhere.code, 1, "{verb}: {elsewhere:?}");
        assert!(elsewhere.err.contains("it is in shop/berlin"), "{verb}: {elsewhere:?}");
    }
    assert_eq!(shell.run(&format!("show {run} --scope berlin")).code, 0);
    let cancel = shell.run(&format!("cancel {run} --scope bonn --reason late --yes"));
    assert_eq!((cancel.code, shell.state(run).as_str()), (1, "needs_attention"), "{cancel:?}");
    for verb in ["health", "doctor"] {
        let typed = shell.run(&format!("{verb} --scope berlin"));
        assert_eq!(typed.code, 2, "{verb}: {typed:?}");
        assert!(typed.err.contains("`--scope` means nothing here"), "{verb}: {typed:?}");
        let mut command = shell.command(&[verb]);
        let of_environment = command.env("SUREFOOT_SCOPE", "berlin").output().unwrap();
        assert_ne!(of_environment.status.code(), Some(2), "{verb}: it is meant for other commands");
    }
}

#[test]
fn what_is_no_name_creates_nothing() {
    let shell = Shell::new();
    shell.write("my flow.yaml", crate::shell::REORDER);
    let place = ["--app", "shop", "--scope", "berlin", "--manifest", "manifest.json"];
    for (arguments, says) in [
        (vec!["publish", "my flow.yaml"], "name it with `--workflow`"),
        (vec!["publish", "reorder.yaml", "--workflow", "a b"], "white space"),
        (vec!["publish", "reorder.yaml", "--workflow", "\u{1b}[2J"], "nobody sees, U+001B"),
    ] {
        let did = shell.with(&[&arguments[..], &place].concat());
        assert_eq!(did.code, 2, "{arguments:?}: {did:?}");
        assert!(did.err.contains(says), "{arguments:?}: {did:?}");
    }
    for (app, scope) in [("shop", " "), ("", "berlin"), ("shop", "ber\u{200b}lin")] {
        let did = shell.with(&["emit", "x", "--app", app, "--scope", scope]);
        assert_eq!(did.code, 2, "{app:?} {scope:?}: {did:?}");
    }
    assert!(!shell.has("surefoot.db"));
}

/// A slip of the pen must not put tables into another program's file.
#[test]
fn a_database_of_another_program_is_left_alone() {
    use surefoot_store_sqlite::sqlx::{self, ConnectOptions as _, Connection as _};
    let shell = Shell::new();
    let path = shell.path("songs.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
        let mut theirs = options.create_if_missing(true).connect().await.unwrap();
        sqlx::raw_sql("CREATE TABLE song (title TEXT)").execute(&mut theirs).await.unwrap();
        theirs.close().await.unwrap();
    });
    let before = std::fs::read(&path).unwrap();
    for line in [
        "publish reorder.yaml --manifest manifest.json --app shop --scope berlin --store sqlite:songs.db",
        "emit x --app shop --scope berlin --store sqlite:songs.db",
        "runs --store sqlite:songs.db",
    ] {
        let did = shell.run(line);
        assert_eq!(did.code, 3, "{line}: {did:?}");
        assert!(did.err.contains("another program (with the tables song)"), "{line}: {did:?}");
        assert!(did.err.contains("Name another file"), "{line}: {did:?}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_refusal_names_the_flag_that_helps() {
    let shell = Shell::published();
    let run = shell.unknown();
    let seen = shell.revision(run);
    for (line, code, says) in [
        (format!("abandon {run} --revision {seen} --reason late --yes"), 1, "`--accept-unknown`"),
        ("delete reorder --scope berlin --reason late --yes".to_owned(), 1, "`--force`"),
        ("delete --scope berlin --reason late --yes".to_owned(), 2, "`--whole-scope`"),
        ("retry --reason late --yes".to_owned(), 2, "`--failed`"),
        (format!("retry {run} --reason late --yes"), 2, "`--revision`"),
    ] {
        let did = shell.run(&line);
        assert_eq!(did.code, code, "{line}: {did:?}");
        assert!(did.err.contains(says), "{line}: {did:?}");
    }
}

#[test]
fn the_audit_says_what_was_done_to_what() {
    let shell = Shell::published();
    let run = shell.unknown();
    let seen = shell.revision(run);
    let resolve =
        format!("resolve {run} steps.1 --failed declined --revision {seen} --reason late --yes");
    assert_eq!(shell.run(&resolve).code, 0);
    let prune = "prune --older-than 0s --state failed --reason late --yes";
    assert_eq!(shell.json(prune)["runs"], 1);
    let off = "disable reorder stockLow --scope berlin --reason late --yes";
    assert_eq!(shell.run(off).code, 0);
    let did = shell.run("audit");
    expect_test::expect![[r#"
        AT                    WHO     VERB     WHAT                               WORKFLOW  SCOPE   RUN                                   WHY
        0000-00-00T00:00:00Z  tester  disable  activations stockLow               reorder   berlin  -                                     late
        0000-00-00T00:00:00Z  tester  prune    older than 0 ms, runs failed       -                 -                                     late
        0000-00-00T00:00:00Z  tester  resolve  steps.1, failed, message declined  reorder   berlin  run_00000000000000000000000000000000  late
        0000-00-00T00:00:00Z  ann     publish  version 1                          reorder   berlin  -
    "#]].assert_eq(&normal(&did.out));
}

#[test]
fn caps_are_shown_and_compared() {
    let shell = Shell::published();
    let publish = "publish reorder.yaml --manifest manifest.json --app shop --scope berlin --budget payments=3";
    assert_eq!(shell.run(publish).code, 0);
    let versions = shell.run("versions reorder --scope berlin");
    assert!(versions.out.contains("payments=3"), "{versions:?}");
    let diff = shell.run("diff reorder@1 reorder@2 --scope berlin");
    assert_eq!((diff.code, diff.out.as_str()), (0, "budget payments: no cap -> 3\n"));
}

/// A run that stands still is no reason to show nothing.
#[test]
fn watch_says_where_a_run_stands_that_does_not_move() {
    let shell = Shell::published();
    let run = shell.emitted().to_string();
    let mut command = shell.command(&["watch", &run, "--every", "20ms"]);
    let mut watch = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let stderr = watch.stderr.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stderr), &mut line).unwrap();
    assert!(line.starts_with("queued: Queued, and no live worker can run it."), "{line}");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

/// Whoever copies a hint must end up in the same store.
#[test]
fn hints_name_the_store_that_was_named() {
    let shell = Shell::published();
    shell.unknown();
    let effects = shell.run("effects --store sqlite:./surefoot.db");
    let says = "`surefoot --store sqlite:./surefoot.db explain RUN`";
    assert!(effects.out.contains(says), "{effects:?}");
    let bill = [
        "dry-run",
        "reorder",
        "--scope",
        "berlin",
        "--wait",
        "0",
        "--store",
        "sqlite:./surefoot.db",
    ];
    let data = ["--data", r#"{"item": "bolt"}"#];
    let bill = shell.with(&[&bill[..], &data].concat());
    assert!(bill.out.contains("surefoot --store sqlite:./surefoot.db show run_"), "{bill:?}");
    let runs = shell.run("runs --store sqlite:./surefoot.db");
    assert!(runs.out.contains("reorder (dry run)"), "{runs:?}");
}

#[test]
fn an_emptied_payload_is_told_in_the_list() {
    let shell = Shell::published();
    assert_eq!(shell.run("emit inventory.unheard --scope berlin").code, 0);
    let prune = "prune --older-than 0s --unmatched --reason late --yes";
    assert_eq!(shell.json(prune)["events"], 1);
    let events = shell.run("events");
    assert!(events.out.contains("unmatched (emptied)"), "{events:?}");
}

/// As the app is: where there is one alone, nobody has to name it.
#[test]
fn the_only_scope_of_an_app_need_not_be_named() {
    let shell = Shell::published();
    assert_eq!(shell.json("versions reorder")["versions"].as_array().unwrap().len(), 1);
    let place = "--reason test --yes";
    for line in [
        "signal paid o-1".to_owned(),
        "diff reorder@1 reorder@1".to_owned(),
        format!("disable reorder {place}"),
        format!("enable reorder {place}"),
    ] {
        let did = shell.run(&line);
        assert_eq!(did.code, 0, "{line}: {did:?}");
    }
    let emitted = shell.with(&["emit", "inventory.stockLow", "--data", r#"{"item":"bolt"}"#]);
    assert!(emitted.code == 0 && emitted.out.contains("run_"), "{emitted:?}");
    let signals = shell.json("signals");
    assert_eq!(signals["signals"][0]["scope"], "berlin", "{signals}");

    let line = "publish reorder.yaml --manifest manifest.json --app shop --scope hamburg";
    assert_eq!(shell.run(line).code, 0);
    for line in ["versions reorder", "signal paid o-1", "emit inventory.stockLow"] {
        let did = shell.run(line);
        assert_eq!(did.code, 2, "{line}: {did:?}");
        assert!(
            did.err.contains("several scopes, name one with `--scope`: `berlin`, `hamburg`"),
            "{did:?}"
        );
    }
    // What is deleted is named.
    let did = shell.run("delete reorder --reason test --yes");
    assert!(did.code == 2 && did.err.contains("this needs a scope"), "{did:?}");
}

#[test]
fn without_a_scope_no_store_is_created() {
    let shell = Shell::new();
    for line in ["emit inventory.stockLow --app shop", "signal paid o-1", "versions reorder"] {
        let did = shell.run(line);
        assert_ne!(did.code, 0, "{line}: {did:?}");
        assert!(!shell.has("surefoot.db"), "{line}");
    }
}
