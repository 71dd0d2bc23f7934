//! Golden outputs: everything that people and programs read.

use expect_test::{Expect, expect};

use crate::shell::{Shell, normal};

#[track_caller]
fn prints(shell: &Shell, line: &str, code: i32, expected: Expect) {
    let did = shell.run(line);
    assert_eq!(did.code, code, "{did:?}");
    expected.assert_eq(&normal(&did.out));
}

#[test]
fn workflows_and_versions() {
    let shell = Shell::published();
    prints(
        &shell,
        "workflows",
        0,
        expect![[r#"
        WORKFLOW  SCOPE   LIVE  LATEST  STARTS ON
        reorder   berlin  1     1       surefoot.start, inventory.stockLow
    "#]],
    );
    prints(
        &shell,
        "versions reorder --scope berlin",
        0,
        expect![[r#"
            VERSION  LIVE  CREATED               AUTHOR  MODULE     BUDGET  ID
            1        yes   0000-00-00T00:00:00Z  ann     inventory  -       ver_00000000000000000000000000000000
        "#]],
    );
    prints(
        &shell,
        "workflows --json",
        0,
        expect![[r#"
        {
          "workflows": [
            {
              "scope": "berlin",
              "workflow": "reorder",
              "active": 1,
              "latest": 1,
              "activations": [
                {
                  "key": "start",
                  "event": "surefoot.start",
                  "enabled": true
                },
                {
                  "key": "stockLow",
                  "event": "inventory.stockLow",
                  "enabled": true
                }
              ]
            }
          ]
        }
    "#]],
    );
    prints(
        &shell,
        "versions reorder --scope berlin --json",
        0,
        expect![[r#"
            {
              "versions": [
                {
                  "id": "ver_00000000000000000000000000000000",
                  "revision": 1,
                  "active": true,
                  "created_at": "0000-00-00T00:00:00.000000Z",
                  "author": "ann",
                  "plan_hash": "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
                  "module": "inventory",
                  "budget": {}
                }
              ]
            }
        "#]],
    );
}

#[test]
fn runs() {
    let shell = Shell::published();
    shell.unknown();
    prints(
        &shell,
        "runs",
        0,
        expect![[r#"
        RUN                                   WORKFLOW  VERSION  SCOPE   STATE            REV  CREATED               ERROR
        run_00000000000000000000000000000000  reorder   1        berlin  needs_attention  5    0000-00-00T00:00:00Z  EFFECT_OUTCOME_UNKNOWN
    "#]],
    );
    prints(
        &shell,
        "runs --json",
        0,
        expect![[r#"
        {
          "runs": [
            {
              "id": "run_00000000000000000000000000000000",
              "app": "shop",
              "scope": "berlin",
              "workflow": "reorder",
              "version": 1,
              "mode": "execute",
              "state": "needs_attention",
              "revision": 5,
              "attempt": 1,
              "created_at": "0000-00-00T00:00:00.000000Z",
              "started_at": "0000-00-00T00:00:00.000000Z",
              "finished_at": null,
              "error": {
                "code": "EFFECT_OUTCOME_UNKNOWN",
                "message": "nobody can tell whether the effect of `steps.1` happened: no such service"
              },
              "parent": null
            }
          ],
          "next": null
        }
    "#]],
    );
    prints(
        &shell,
        "runs --state failed,queued",
        0,
        expect![[r#"
        RUN  WORKFLOW  VERSION  SCOPE  STATE  REV  CREATED  ERROR
    "#]],
    );
    prints(
        &shell,
        "runs --since 1h --mode execute --workflow reorder --limit 1 --json --state waiting",
        0,
        expect![[r#"
            {
              "runs": [],
              "next": null
            }
        "#]],
    );
}

#[test]
fn show() {
    let shell = Shell::published();
    let run = shell.unknown();
    prints(
        &shell,
        &format!("show {run}"),
        0,
        expect![[r#"
        run       run_00000000000000000000000000000000
        state     needs_attention (revision 5, attempt 1)
        workflow  reorder version 1 in shop/berlin
        event     evt_00000000000000000000000000000000 (inventory.stockLow, key bolt)
        trigger   stockLow
        created   0000-00-00T00:00:00Z
        started   0000-00-00T00:00:00Z
        finished  -
        error     EFFECT_OUTCOME_UNKNOWN: nobody can tell whether the effect of `steps.1` happened: no such service
        inputs    {"item":"bolt"}

        Steps
        STEP     ACTION  CLASS       STATE            EFFECT     FINISHED              ERROR
        steps.0  mail    idempotent  completed        succeeded  0000-00-00T00:00:00Z  -
        steps.1  pay     ambiguous   needs_attention  marked     -                     EFFECT_OUTCOME_UNKNOWN
    "#]],
    );
    prints(
        &shell,
        &format!("show {run} --json"),
        0,
        expect![[r#"
            {
              "id": "run_00000000000000000000000000000000",
              "app": "shop",
              "scope": "berlin",
              "workflow": "reorder",
              "version": 1,
              "mode": "execute",
              "state": "needs_attention",
              "revision": 5,
              "attempt": 1,
              "created_at": "0000-00-00T00:00:00.000000Z",
              "started_at": "0000-00-00T00:00:00.000000Z",
              "finished_at": null,
              "error": {
                "code": "EFFECT_OUTCOME_UNKNOWN",
                "message": "nobody can tell whether the effect of `steps.1` happened: no such service"
              },
              "parent": null,
              "inputs": {
                "item": "bolt"
              },
              "result": null,
              "result_message": null,
              "event": {
                "id": "evt_00000000000000000000000000000000",
                "type": "inventory.stockLow",
                "key": "bolt",
                "trigger": "stockLow",
                "occurred_at": "0000-00-00T00:00:00.000000Z",
                "payload": {
                  "context": null,
                  "data": {
                    "item": "bolt"
                  }
                }
              },
              "budget": [],
              "steps": [
                {
                  "key": "steps.0",
                  "action": "mail",
                  "class": "idempotent",
                  "state": "completed",
                  "effect_state": "succeeded",
                  "effect_key": "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
                  "attempt": null,
                  "started_at": "0000-00-00T00:00:00.000000Z",
                  "finished_at": "0000-00-00T00:00:00.000000Z",
                  "error": null
                },
                {
                  "key": "steps.1",
                  "action": "pay",
                  "class": "ambiguous",
                  "state": "needs_attention",
                  "effect_state": "marked",
                  "effect_key": "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
                  "attempt": 1,
                  "started_at": "0000-00-00T00:00:00.000000Z",
                  "finished_at": null,
                  "error": {
                    "code": "EFFECT_OUTCOME_UNKNOWN",
                    "message": "nobody can tell whether the effect of `steps.1` happened: no such service"
                  }
                }
              ],
              "children": []
            }
        "#]],
    );
}

#[test]
fn explain() {
    let shell = Shell::published();
    let run = shell.unknown();
    prints(
        &shell,
        &format!("explain {run}"),
        0,
        expect![[r#"
        Needs a person at step `steps.1` (`pay`): EFFECT_OUTCOME_UNKNOWN: nobody can tell whether the effect of `steps.1` happened: no such service
        run run_00000000000000000000000000000000, needs_attention, revision 5, read 0000-00-00T00:00:00.000000Z

        Why it stands here
        - EFFECT_OUTCOME_UNKNOWN: nobody can tell whether the effect of `steps.1` happened: no such service

        Steps
        STEP     ACTION  CLASS       STATE            EFFECT
        steps.0  mail    idempotent  completed        succeeded
        steps.1  pay     ambiguous   needs_attention  marked     EFFECT_OUTCOME_UNKNOWN: nobody can tell whether the effect of `steps.1` happened: no such service

        Happened
        - steps.0 (`mail`, idempotent): its outcome is recorded
            effect key ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff

        May have happened
        - steps.1 (`pay`, ambiguous): its call was marked, and nothing is known since
            effect key ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff

        What you may do
        resolve: it happened: the run goes on with the output that you give; the step is not called again
            surefoot resolve run_00000000000000000000000000000000 steps.1 --succeeded '<output as JSON>' --revision 5 --reason '<why>'
        resolve: the provider refused it: the run fails
            surefoot resolve run_00000000000000000000000000000000 steps.1 --failed '<message>' --revision 5 --reason '<why>'
        resolve: it is certain that it did not happen: the step is called again
            surefoot resolve run_00000000000000000000000000000000 steps.1 --not-performed --revision 5 --reason '<why>'
        reconcile: the provider may know by now: a worker asks it again, nothing is repeated
            surefoot reconcile run_00000000000000000000000000000000 steps.1 --revision 5 --reason '<why>'
        cancel: nobody wants it any more: it ends once its effect is explained
            surefoot cancel run_00000000000000000000000000000000 --revision 5 --reason '<why>'
        abandon: nobody will ever know: it ends as failed, and the effect stays listed as unknown
            surefoot abandon run_00000000000000000000000000000000 --accept-unknown --revision 5 --reason '<why>'
    "#]],
    );
    let json = shell.json(&format!("explain {run}"));
    let names: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    expect!["effects headline legal_actions mode read_at revision run state steps why_not_moving would_repeat"].assert_eq(&names.join(" "));
}

#[test]
fn explain_a_failure() {
    let shell = Shell::published();
    let run = shell.failed();
    prints(
        &shell,
        &format!("explain {run}"),
        0,
        expect![[r#"
            Failed at step `steps.0` (`mail`) with NO_ADDRESS: the supplier has no address
            run run_00000000000000000000000000000000, failed, revision 3, read 0000-00-00T00:00:00.000000Z

            Why it stands here
            - it has ended: nothing moves it any more

            Steps
            STEP     ACTION  CLASS       STATE        EFFECT
            steps.0  mail    idempotent  failed       -       NO_ADDRESS: the supplier has no address
            steps.1  pay     ambiguous   not_reached  -       the run failed at `steps.0`

            May have happened
            - steps.0 (`mail`, idempotent): a worker came to it before it failed; a retry repeats it under the same key
                effect key ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff

            Did not start
            - steps.1 (`pay`, ambiguous): the run failed at `steps.0`

            What you may do
            retry: the cause is mended: recorded outcomes and effect keys stay, the count of failures begins anew; then step `steps.0` (`mail`) comes: it is called, under the effect key that it has
                surefoot retry run_00000000000000000000000000000000 --revision 3 --reason '<why>'
        "#]],
    );
}

/// Covers behaviour 181.
#[test]
fn effects() {
    let shell = Shell::published();
    shell.unknown();
    let effects = shell.json("effects")["effects"].as_array().unwrap().clone();
    assert_eq!(effects.len(), 1);
    let names: Vec<&str> = effects[0].as_object().unwrap().keys().map(String::as_str).collect();
    expect!["action age_ms effect_key run since state step"].assert_eq(&names.join(" "));
    prints(
        &shell,
        "effects --older-than 5m",
        0,
        expect![[r#"
        RUN  STEP  ACTION  EFFECT  AGE  RUN STATE  WORKFLOW
    "#]],
    );
    prints(
        &shell,
        "effects --older-than 5m --json",
        0,
        expect![[r#"
        {
          "effects": []
        }
    "#]],
    );
}

#[test]
fn events_and_signals() {
    let shell = Shell::published();
    shell.emitted();
    prints(
        &shell,
        "emit inventory.unheard --scope berlin",
        0,
        expect![[r#"
            event evt_00000000000000000000000000000000
            it starts nothing: no workflow in scope `berlin` listens to events of type `inventory.unheard`, but to inventory.stockLow. The event is recorded and starts nothing later: once that is mended, emit it again
        "#]],
    );
    prints(
        &shell,
        "events",
        0,
        expect![[r#"
        EVENT                                 TYPE                KEY   SCOPE   STATUS      RUNS  RECORDED              ERROR
        evt_00000000000000000000000000000000  inventory.unheard   -     berlin  unmatched   0     0000-00-00T00:00:00Z  -
        evt_00000000000000000000000000000000  inventory.stockLow  bolt  berlin  dispatched  1     0000-00-00T00:00:00Z  -
    "#]],
    );
    prints(
        &shell,
        "events --status unmatched --json",
        0,
        expect![[r#"
            {
              "events": [
                {
                  "id": "evt_00000000000000000000000000000000",
                  "scope": "berlin",
                  "type": "inventory.unheard",
                  "key": null,
                  "status": "unmatched",
                  "matched": 0,
                  "attempts": 0,
                  "error": null,
                  "occurred_at": "0000-00-00T00:00:00.000000Z",
                  "recorded_at": "0000-00-00T00:00:00.000000Z",
                  "runs": [],
                  "expired": false
                }
              ],
              "next": null
            }
        "#]],
    );
    prints(
        &shell,
        "signal approval 7 --scope berlin --data true",
        0,
        expect![[r#"
        recorded
    "#]],
    );
    prints(
        &shell,
        "signal approval 7 --scope berlin --data false",
        0,
        expect![[r#"
        it was recorded before; the first one stays
    "#]],
    );
    prints(
        &shell,
        "signal approval 7 --app-wide --json",
        0,
        expect![[r#"
        {
          "new": true,
          "woken": []
        }
    "#]],
    );
    let signals = shell.json("signals")["signals"].as_array().unwrap().clone();
    assert_eq!(signals.len(), 2);
    assert_eq!(signals[0]["data"], true, "the first one stays");
}

/// Covers behaviour 180.
#[test]
fn health_is_red_for_a_person_and_not_for_an_event_that_nobody_hears() {
    let shell = Shell::published();
    assert_eq!(shell.run("emit inventory.unheard --scope berlin").code, 0);
    prints(
        &shell,
        "health",
        0,
        expect![[r#"
        shop: ok
        - note: 1 event matched no workflow
        runs      canceled 0, failed 0, needs_attention 0, queued 0, running 0, succeeded 0, waiting 0
        start lag 0 ms
        effects   0 unexplained
        events    0 pending, 0 dead-lettered, 1 unmatched
        workers   none
    "#]],
    );
    shell.unknown();
    let did = shell.run("health");
    assert_eq!(did.code, 1);
    assert!(did.out.starts_with("shop: RED\n- 1 run waits for a person\n"), "{}", did.out);
    let hint = "`surefoot runs --state needs_attention --children` lists the runs that wait";
    assert!(did.out.contains(hint), "{}", did.out);
    let json = shell.json("health");
    assert_eq!((&json["ok"], &json["apps"][0]["app"]), (&false.into(), &"shop".into()));
}

#[test]
fn a_page_tells_how_to_get_the_next_one() {
    let shell = Shell::published();
    for item in ["bolt", "nut"] {
        let data = format!(r#"{{"item": "{item}"}}"#);
        let did = shell.with(&[
            "emit",
            "surefoot.start",
            "--workflow",
            "reorder",
            "--scope",
            "berlin",
            "--data",
            &data,
        ]);
        assert_eq!(did.code, 0, "{did:?}");
    }
    let did = shell.run("runs --limit 1");
    let next = did.out.split('`').nth(1).unwrap().strip_prefix("--cursor ").unwrap();
    let second = shell.json(&format!("runs --limit 1 --cursor {next}"));
    assert_eq!(second["runs"].as_array().unwrap().len(), 1);
    assert!(second["next"].is_null());
}

#[test]
fn what_comes_from_a_store_cannot_act_on_a_terminal() {
    let shell = Shell::published();
    let data = "{\"item\": \"bolt\"}";
    let key = "bolt\u{1b}[2J";
    let emit = ["emit", "inventory.stockLow", "--scope", "berlin", "--data", data, "--key", key];
    assert_eq!(shell.with(&emit).code, 0);
    let did = shell.run("events");
    assert!(!did.out.contains('\u{1b}') && did.out.contains("bolt\\u{1b}[2J"), "{}", did.out);
    // JSON is exact.
    assert_eq!(shell.json("events")["events"][0]["key"], key);
}

#[test]
fn no_colours_where_nobody_looks() {
    let shell = Shell::published();
    let run = shell.failed();
    for no_color in [None, Some("1")] {
        let run = run.to_string();
        let mut command = shell.command(&["explain", &run]);
        command.env_remove("NO_COLOR").env("CLICOLOR_FORCE", "");
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        let output = command.output().unwrap();
        assert!(!output.stdout.contains(&0x1b) && output.status.success());
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let shell = Shell::published();
    let mut child = shell
        .command(&["runs", "--json"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

/// What health counts, the command that it names lists: children too, each with its parent.
#[test]
fn a_child_that_waits_for_a_person_is_listed() {
    let shell = Shell::published();
    shell.write("all.yaml", ALL);
    let publish = "publish all.yaml --manifest manifest.json --app shop --scope berlin";
    assert_eq!(shell.run(publish).code, 0);
    let start = "emit surefoot.start --workflow all --scope berlin";
    let parent: surefoot_kernel_core::RunId =
        shell.json(start)["runs"][0].as_str().unwrap().parse().unwrap();
    shell.parked(parent);
    let child = &shell.json(&format!("runs --parent {parent}"))["runs"][0]["id"];
    let child = child.as_str().unwrap().parse().unwrap();
    shell.unexplained(child);
    let health = shell.run("health");
    assert!(health.out.contains("- 1 run waits for a person\n"), "{health:?}");
    let hint = health.out.lines().find_map(|line| line.strip_prefix("`surefoot ")).unwrap();
    let listed = shell.run(hint.split('`').next().unwrap());
    let (child, parent) = (child.to_string(), parent.to_string());
    assert!(listed.out.contains(&child) && listed.out.contains(&parent), "{listed:?}");
    let without = shell.run("runs --state needs_attention");
    assert!(
        without.out.contains("add `--children`") && !without.out.contains(&child),
        "{without:?}"
    );
    // Whoever cancels the parent is told of the child.
    let cancel = format!("cancel {parent} --reason enough --yes");
    assert_eq!(shell.run(&cancel).code, 0);
    let told = shell.run(&format!("explain {parent}"));
    assert!(told.out.contains("1 of its 1 children (1 of them in a person's list)"), "{told:?}");
    assert!(
        told.out.contains(&format!("    surefoot runs --parent {parent} --state needs_attention"))
    );
}

/// A program that reads JSON gets the refusal as JSON too.
#[test]
fn a_refusal_is_json_where_json_is_asked_for() {
    let shell = Shell::published();
    let missing = format!("show run_{} --json", "0".repeat(32));
    let did = shell.run(&missing);
    assert_eq!((did.code, did.out.as_str()), (1, ""), "{did:?}");
    let error: serde_json::Value = serde_json::from_str(&did.err).unwrap();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("there is no run run_"), "{error}");
    assert_eq!(error["error"]["exit"], 1);
}

const ALL: &str = "steps:\n  - runWorkflow: { workflow: reorder, inputs: { item: bolt } }\n";
