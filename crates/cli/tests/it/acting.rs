//! Verbs: the resulting state is printed, and the audit has it.

use expect_test::{Expect, expect};

use crate::shell::{Shell, normal};

#[track_caller]
fn prints(shell: &Shell, arguments: &[&str], code: i32, expected: Expect) {
    let did = shell.with(arguments);
    assert_eq!(did.code, code, "{did:?}");
    expected.assert_eq(&normal(&did.out));
}

/// Covers behaviour 139.
#[test]
fn resolve_succeeded() {
    let shell = Shell::published();
    let run = shell.unknown();
    let (id, seen) = (run.to_string(), shell.revision(run).to_string());
    let with = |output: &str| {
        let why = "seen on the statement";
        let it = ["resolve", &id, "steps.1", "--succeeded", output, "--revision", &seen];
        shell.with(&[&it[..], &["--reason", why, "--yes"]].concat())
    };
    let refused = with(r#"{"id": 7}"#);
    assert_eq!(refused.code, 1);
    assert_eq!(
        refused.err,
        "error: the output does not fit the schema of `pay`: `/id` must be a string, not a number\n"
    );
    assert_eq!(with("{").code, 2);
    let done = with(r#"{"id": "p-1"}"#);
    assert_eq!(done.code, 0, "{done:?}");
    expect![[r#"
        done: run run_00000000000000000000000000000000
        state queued, revision 6
    "#]]
    .assert_eq(&normal(&done.out));
    assert_eq!(shell.audit()[0], "resolve by tester: seen on the statement");
    // The second one is too late: it says so, and nothing changes.
    let again = with(r#"{"id": "p-1"}"#);
    assert_eq!((again.code, shell.state(run).as_str()), (4, "queued"));
}

/// Covers behaviour 140.
#[test]
fn resolve_failed() {
    let shell = Shell::published();
    let run = shell.unknown();
    let (id, seen) = (run.to_string(), shell.revision(run).to_string());
    let it = ["resolve", &id, "steps.1", "--failed", "the bank says no", "--code", "DECLINED"];
    let rest = ["--revision", &seen, "--reason", "asked the bank", "--yes", "--json"];
    prints(
        &shell,
        &[&it[..], &rest].concat(),
        0,
        expect![[r#"
        {
          "outcome": "done",
          "run": {
            "id": "run_00000000000000000000000000000000",
            "app": "shop",
            "scope": "berlin",
            "workflow": "reorder",
            "version": 1,
            "mode": "execute",
            "state": "failed",
            "revision": 6,
            "attempt": 1,
            "created_at": "0000-00-00T00:00:00.000000Z",
            "started_at": "0000-00-00T00:00:00.000000Z",
            "finished_at": "0000-00-00T00:00:00.000000Z",
            "error": {
              "code": "DECLINED",
              "message": "the bank says no"
            },
            "parent": null
          }
        }
    "#]],
    );
}

#[test]
fn the_commands_of_an_explanation_work_once_their_places_are_filled_in() {
    for index in 0..6 {
        let shell = Shell::published();
        let run = shell.unknown();
        let explanation = shell.json(&format!("explain {run}"));
        let actions = explanation["legal_actions"].as_array().unwrap();
        assert_eq!(actions.len(), 6);
        let command = actions[index]["command"].as_str().unwrap();
        let but_for_why = command
            .replace("'<output as JSON>'", r#"{"id":"p-1"}"#)
            .replace("'<message>'", "declined")
            .replace("'<why>'", "<why>");
        let words: Vec<&str> = but_for_why.split(' ').skip(1).chain(["--yes"]).collect();
        let did = shell.with(&words);
        assert_eq!(did.code, 2, "{command}: its reason is no answer as it stands: {did:?}");
        assert!(did.err.contains("words of your own"), "{did:?}");
        assert_eq!(shell.revision(run), explanation["revision"].as_u64().unwrap());
        let typed = but_for_why.replace("<why>", "looked-it-up");
        let words: Vec<&str> = typed.split(' ').skip(1).chain(["--yes"]).collect();
        let did = shell.with(&words);
        assert_eq!(did.code, 0, "{command}: {did:?}");
        assert_ne!(shell.revision(run), explanation["revision"].as_u64().unwrap());
    }
}

/// Covers field fault 114.
#[test]
fn retry() {
    let shell = Shell::published();
    let run = shell.failed();
    let (id, seen) = (run.to_string(), shell.revision(run).to_string());
    let it = ["retry", &id, "--revision", &seen, "--reason", "it has one now", "--yes"];
    prints(
        &shell,
        &it,
        0,
        expect![[r#"
        done: run run_00000000000000000000000000000000
        state queued, revision 4
    "#]],
    );
    assert_eq!(shell.audit()[0], "retry by tester: it has one now");
}

#[test]
fn retry_all_that_failed() {
    let shell = Shell::published();
    let run = shell.failed();
    let it = ["retry", "--failed", "--workflow", "reorder", "--reason", "mended", "--yes"];
    prints(
        &shell,
        &it,
        0,
        expect![[r#"
        RUN                                   STATE   REFUSED
        run_00000000000000000000000000000000  queued  -
    "#]],
    );
    assert_eq!(shell.state(run), "queued");
    prints(
        &shell,
        &[&it[..], &["--json"]].concat(),
        0,
        expect![[r#"
        {
          "verdicts": [],
          "next": null
        }
    "#]],
    );
    let id = run.to_string();
    for both in [&["--failed", &id][..], &["--failed", "--revision", "1"], &["--since", "1h"]] {
        let did = shell.with(&[&["retry", "--reason", "x", "--yes"], both].concat());
        assert_eq!(did.code, 2, "{both:?}: {did:?}");
    }
}

#[test]
fn abandon_and_reconcile() {
    let shell = Shell::published();
    let run = shell.unknown();
    let (id, seen) = (run.to_string(), shell.revision(run).to_string());
    let rest = ["--revision", &seen, "--reason", "nobody knows", "--yes"];
    let refused = shell.with(&[&["abandon", &id][..], &rest].concat());
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("resolve or reconcile it first"), "{}", refused.err);
    prints(
        &shell,
        &[&["reconcile", &id, "steps.1"][..], &rest].concat(),
        0,
        expect![[r#"
        done: run run_00000000000000000000000000000000
        state queued, revision 6
    "#]],
    );
    // Queued to be reconciled, and no live worker can take it.
    let seen = shell.revision(run).to_string();
    let rest = ["--accept-unknown", "--revision", &seen, "--reason", "nobody knows", "--yes"];
    prints(
        &shell,
        &[&["abandon", &id][..], &rest].concat(),
        0,
        expect![[r#"
        done: run run_00000000000000000000000000000000
        state failed, revision 7
        ABANDONED: an operator gave the run up
    "#]],
    );
}

/// Covers field fault 131.
#[test]
fn cancel_says_what_came_of_it() {
    let shell = Shell::published();
    let run = shell.emitted().to_string();
    let cancel = ["cancel", &run, "--reason", "no longer wanted", "--yes", "--actor", "ann"];
    prints(
        &shell,
        &cancel,
        0,
        expect![[r#"
        canceled: run run_00000000000000000000000000000000
        state canceled, revision 1
    "#]],
    );
    prints(
        &shell,
        &cancel,
        0,
        expect![[r#"
        already ended, nothing was changed: run run_00000000000000000000000000000000
        state canceled, revision 1
    "#]],
    );
    assert_eq!(shell.audit()[0], "cancel by ann: no longer wanted");

    let shell = Shell::published();
    let run = shell.failed().to_string();
    prints(
        &shell,
        &["cancel", &run, "--reason", "x", "--yes"],
        1,
        expect![[r#"
        already ended, nothing was changed: run run_00000000000000000000000000000000
        state failed, revision 3
        NO_ADDRESS: the supplier has no address
    "#]],
    );

    let shell = Shell::published();
    let run = shell.unknown().to_string();
    prints(
        &shell,
        &["cancel", &run, "--reason", "x", "--yes"],
        0,
        expect![[r#"
        will be canceled once its effect is explained: run run_00000000000000000000000000000000
        state needs_attention, revision 6
        EFFECT_OUTCOME_UNKNOWN: nobody can tell whether the effect of `steps.1` happened: no such service
    "#]],
    );
}

#[test]
fn activate() {
    let shell = Shell::published();
    let draft = "publish reorder.yaml --manifest manifest.json --scope berlin --draft";
    assert_eq!(shell.run(draft).code, 0);
    let it = ["activate", "reorder", "2", "--scope", "berlin", "--reason", "reviewed", "--yes"];
    let stale = shell.with(&[&it[..], &["--revision", "7"]].concat());
    assert_eq!(stale.code, 4, "{stale:?}");
    prints(
        &shell,
        &[&it[..], &["--revision", "1"]].concat(),
        0,
        expect![[r#"
        reorder version 2 is live
    "#]],
    );
    assert_eq!(shell.audit()[0], "activate by tester: reviewed");
}
