//! Switches, redrives, prunes, deletions: nothing happens without a yes, and the result is printed.

use std::process::Stdio;

use serde_json::Value;

use crate::shell::Shell;

const YES: &str = "--scope berlin --reason late --yes";

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Covers behaviour 184.
#[test]
fn nothing_is_switched_pruned_or_deleted_without_a_yes() {
    let shell = Shell::published();
    let run = shell.failed();
    let audits = shell.audit().len();
    for line in [
        "disable reorder --scope berlin --reason late",
        "enable reorder --scope berlin --reason late",
        "prune --older-than 0s --state failed --reason late",
        "delete reorder --scope berlin --reason late",
        "delete --whole-scope --scope berlin --reason late",
        "redrive evt_00000000000000000000000000000000 --reason late",
    ] {
        let did = shell.run(line);
        assert_eq!(did.code, 2, "{line}: {did:?}");
        assert!(did.err.contains("was not confirmed, and nothing was changed"), "{did:?}");
        let without = shell.run(&format!("{} --yes", line.replace(" --reason late", "")));
        assert_eq!(without.code, 2, "{line} without a reason: {without:?}");
    }
    assert_eq!(shell.state(run), "failed");
    assert_eq!(shell.audit().len(), audits);
}

/// Covers behaviours 64, 68.
#[test]
fn a_switch_is_printed_audited_and_outlives_a_publish() {
    let shell = Shell::published();
    let off = shell.run(&format!("disable reorder stockLow {YES}"));
    assert_eq!((off.code, off.out.as_str()), (0, "disabled: stockLow of reorder\n"), "{off:?}");
    let again = shell.run(&format!("disable reorder stockLow {YES}"));
    assert!(again.out.contains("already"), "{again:?}");
    let publish = "publish reorder.yaml --manifest manifest.json --app shop --scope berlin";
    assert_eq!(shell.run(publish).code, 0);
    let listed = shell.json("workflows");
    let activations = listed["workflows"][0]["activations"].as_array().unwrap();
    let low = activations.iter().find(|it| it["key"] == "stockLow").unwrap();
    assert_eq!(low["enabled"], false);
    let on = shell.json(&format!("enable reorder {YES}"));
    assert_eq!(on["changed"], serde_json::json!(["stockLow"]));
    let unknown = shell.run(&format!("disable reorder nothing {YES}"));
    assert_eq!(unknown.code, 1, "{unknown:?}");
    let audit = shell.json("audit --limit 2");
    let verbs: Vec<&str> = audit["audit"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["verb"].as_str().unwrap())
        .collect();
    assert_eq!(verbs[0], "enable");
}

#[test]
fn a_prune_says_what_it_deleted_and_refuses_what_has_not_ended() {
    let shell = Shell::published();
    let run = shell.failed();
    let refused = shell.run(&format!("prune --older-than 0s --state queued {YES}"));
    assert_eq!(refused.code, 2, "{refused:?}");
    let nothing = shell.run(&format!("prune --older-than 0s {YES}"));
    assert_eq!(nothing.code, 2, "{nothing:?}");
    let young = shell.json(&format!("prune --older-than 1d --state failed {YES}"));
    assert_eq!(young["runs"], 0);
    let pruned = shell.json(&format!("prune --older-than 0s --state failed,succeeded {YES}"));
    assert_eq!((&pruned["runs"], &pruned["audit"]), (&1.into(), &0.into()));
    assert_eq!(shell.run(&format!("show {run}")).code, 1);
    assert!(shell.audit()[0].starts_with("prune by tester"));
}

/// Covers behaviours 69, 70.
#[test]
fn a_deletion_names_what_holds_it_up_and_is_forced_with_a_reason() {
    let shell = Shell::published();
    let run = shell.unknown();
    let held = shell.run(&format!("delete reorder {YES}"));
    assert_eq!(held.code, 1, "{held:?}");
    assert!(held.err.contains(&run.to_string()) && held.err.contains("steps.1"), "{held:?}");
    let forced = shell.json(&format!("delete reorder --force {YES}"));
    assert_eq!((&forced["done"], &forced["runs"]), (&true.into(), &1.into()));
    assert!(shell.json("workflows")["workflows"].as_array().unwrap().is_empty());
    let gone = shell.run(&format!("delete reorder {YES}"));
    assert_eq!(gone.code, 1, "{gone:?}");
}

#[test]
fn watch_prints_each_step_once_and_ends_with_the_run() {
    let shell = Shell::published();
    let run = shell.failed();
    let did = shell.run(&format!("watch {run} --json"));
    assert_eq!(did.code, 1, "{did:?}");
    let lines = lines(&did.out);
    let (last, steps) = lines.split_last().unwrap();
    assert_eq!((&last["id"], &last["state"]), (&run.to_string().into(), &"failed".into()));
    assert!(!steps.is_empty());
    assert!(steps.iter().all(|step| step["step"].is_string() && step["at"].is_string()));
    let people = shell.run(&format!("watch {run}"));
    let last = format!("run {run}: failed, NO_ADDRESS: the supplier has no address\n");
    assert!(people.out.ends_with(&last), "{people:?}");
}

#[test]
fn watch_follows_a_run_that_is_still_alive() {
    let shell = Shell::published();
    let run = shell.emitted().to_string();
    let mut watch = shell.command(&["watch", &run, "--every", "20ms"]);
    let watch = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let canceled = shell.run(&format!("cancel {run} --reason late --yes"));
    assert_eq!(canceled.code, 0, "{canceled:?}");
    let ended = watch.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert_eq!(String::from_utf8(ended.stdout).unwrap(), format!("run {run}: canceled\n"));
}

#[test]
fn failed_runs_are_retried_by_their_code() {
    let shell = Shell::published();
    let run = shell.failed();
    let none = shell.json("retry --failed --code OTHER --reason mended --yes");
    assert!(none["verdicts"].as_array().unwrap().is_empty());
    assert_eq!(shell.state(run), "failed");
    let done = shell.json("retry --failed --code NO_ADDRESS --reason mended --yes");
    assert_eq!(done["verdicts"][0]["run"], run.to_string());
    assert_eq!(shell.state(run), "queued");
}

#[test]
fn diff_compares_two_versions() {
    let shell = Shell::published();
    let changed = crate::shell::REORDER.replace("  - mail: {}\n", "");
    shell.write("reorder.yaml", &changed);
    let publish = "publish reorder.yaml --manifest manifest.json --app shop --scope berlin";
    assert_eq!(shell.run(publish).code, 0);
    let same = shell.run("diff reorder@1 reorder@1 --scope berlin");
    assert_eq!((same.code, same.out.as_str()), (0, "the two do the same\n"));
    let diff = shell.json("diff reorder@1 reorder@2 --scope berlin");
    let step = &diff["steps"][0];
    let shape = (step["change"].as_str(), step["does"].as_str(), step["before"].as_str());
    assert_eq!(shape, (Some("removed"), Some("mail"), Some("steps.0")));
    assert_eq!(diff["actions"][0]["action"], "mail");
    let people = shell.run("diff reorder@1 reorder@2 --scope berlin");
    assert!(people.out.contains("removed") && people.out.contains("not used"), "{people:?}");
    assert_eq!(shell.run("diff reorder@1 reorder@9 --scope berlin").code, 1);
    assert_eq!(shell.run("diff reorder@1 nonsense --scope berlin").code, 2);
}

#[test]
fn doctor_looks_at_store_clock_and_modules() {
    let shell = Shell::published();
    let well = shell.json("doctor");
    assert_eq!(well["ok"], true, "{well}");
    shell.emitted();
    let lacking = shell.run("doctor");
    assert_eq!(lacking.code, 1, "{lacking:?}");
    assert!(lacking.out.contains("BAD modules of shop: no live worker offers module `inventory`"));
    assert!(lacking.out.contains("ok  journal mode: wal"));
}
