//! What `run` finds out before it starts anything, and what it says of what it leaves to others.

use serde_json::{Value, json};

use crate::shell::{Did, Shell};

const HELLO: &str = r#"inputs:
  name: { type: text, required: true }
  count: { type: integer }
steps:
  - succeed: { message: "Hello ${{ inputs.name }}" }
"#;
const ADA: &str = r#"{"name":"Ada"}"#;

fn shell() -> Shell {
    let shell = Shell::new();
    shell.write("hello.yaml", HELLO);
    shell
}

fn hello(shell: &Shell, key: &str) -> Did {
    shell.with(&["run", "hello.yaml", "--inputs", ADA, "--key", key])
}

fn versions(shell: &Shell) -> usize {
    let listed = shell.json("versions hello --app local --scope local");
    listed["versions"].as_array().unwrap().len()
}

/// The run that a command ended with.
fn run_of(did: &Did) -> String {
    let at = did.out.rfind("run_").unwrap_or_else(|| panic!("{did:?}"));
    did.out[at..at + 36].to_owned()
}

/// A key is for what is done once; nothing was.
#[test]
fn inputs_that_do_not_fit_leave_the_key_free() {
    let shell = shell();
    for (inputs, why) in [
        ("{}", "input `name` is required and missing (at `/name`)"),
        (r#"{"name":"Ada","count":"two"}"#, "input `count` must be integer, it is a text"),
        (r#"{"nmae":"Ada"}"#, "the workflow declares no input `nmae`"),
        ("[]", "must be an object"),
    ] {
        let did = shell.with(&["run", "hello.yaml", "--inputs", inputs, "--key", "order-7"]);
        assert_eq!(did.code, 2, "{did:?}");
        assert!(did.err.contains(why) && did.err.contains("nothing was started"), "{did:?}");
        assert!(did.err.contains("it takes `count` (integer), `name` (text, required)"), "{did:?}");
        assert!(!shell.has("surefoot.db"));
    }
    let did = shell.run("run hello.yaml --key order-7 --json");
    let error: Value = serde_json::from_str(&did.err).unwrap();
    assert_eq!(error["error"]["code"], "INPUT_INVALID");
    assert_eq!(shell.run("run hello.yaml --dry-run").code, 2);
    let did = hello(&shell, "order-7");
    assert_eq!(did.code, 0, "{did:?}");
    assert!(!did.err.contains("before"), "{did:?}");
}

#[test]
fn a_workflow_that_is_switched_off_leaves_the_key_free() {
    let shell = shell();
    assert_eq!(hello(&shell, "order-1").code, 0);
    let place = "--app local --scope local --reason test --yes";
    assert_eq!(shell.run(&format!("disable hello {place}")).code, 0);
    let off = hello(&shell, "order-2");
    assert_eq!(off.code, 2, "{off:?}");
    assert!(off.err.contains("`hello` is switched off, and nothing was started"), "{off:?}");
    assert_eq!(shell.run(&format!("enable hello {place}")).code, 0);
    let on = hello(&shell, "order-2");
    assert_eq!(on.code, 0, "{on:?}");
}

/// What was started from another file is not reported as this one's, and this one is not published.
#[test]
fn a_key_belongs_to_the_file_that_it_started() {
    let shell = shell();
    let first = hello(&shell, "order-7");
    assert_eq!(first.code, 0, "{first:?}");
    let run = run_of(&first);
    shell.write("hello.yaml", &HELLO.replace("Hello", "Good morning,"));
    let other = hello(&shell, "order-7");
    assert_eq!(other.code, 2, "{other:?}");
    for said in [
        &format!("the key `order-7` belongs to {run}"),
        "version 1 of `hello`",
        "nothing was published or started",
        &format!("`surefoot run --resume {run}`"),
        "choose another key",
    ] {
        assert!(other.err.contains(said), "{said}: {other:?}");
    }
    assert_eq!((other.out.as_str(), versions(&shell)), ("", 1));

    let second = hello(&shell, "order-8");
    assert_eq!((second.code, versions(&shell)), (0, 2), "{second:?}");
    // With its own file the first is found again, and that file does not become live by it.
    shell.write("hello.yaml", HELLO);
    let again = hello(&shell, "order-7");
    assert_eq!((again.code, run_of(&again), versions(&shell)), (0, run, 2), "{again:?}");
}

#[test]
fn runs_that_an_event_starts_are_named_with_what_works_on_them() {
    let shell = Shell::new();
    shell.write("part.yaml", "steps:\n  - succeed: { message: Done }\n");
    let published = shell.run("publish part.yaml --ready-made --app local --scope local");
    assert_eq!(published.code, 0, "{published:?}");
    shell.write(
        "main.yaml",
        "steps:\n  - emitEvent: { type: surefoot.start, workflow: part }\n  - succeed: { message: Sent }\n",
    );
    let did = shell.run("run main.yaml");
    assert_eq!(did.code, 0, "{did:?}");
    assert!(did.err.contains("nothing works on them by itself"), "{did:?}");
    let at = did.err.find("part, queued:  surefoot run --resume run_");
    assert!(at.is_some(), "{did:?}");

    let did = shell.run("run main.yaml --json");
    let last: Value = serde_json::from_str(did.out.lines().last().unwrap()).unwrap();
    assert_eq!(last["state"], "succeeded");
    let started = &last["started_by_events"][0];
    assert_eq!(
        (&started["workflow"], &started["state"]),
        (&json!("part"), &json!("queued")),
        "{did:?}"
    );
    let command = started["command"].as_str().unwrap();
    let resumed = shell.run(command.strip_prefix("surefoot ").unwrap());
    assert_eq!(resumed.code, 0, "{resumed:?}");
    let run = started["run"].as_str().unwrap().parse().unwrap();
    assert_eq!(shell.state(run), "succeeded");
    let quiet = shell.run(&format!("run --resume {run} --json"));
    let last: Value = serde_json::from_str(quiet.out.lines().last().unwrap()).unwrap();
    assert_eq!(last["started_by_events"], json!([]));
}

/// Also those that children have started, at any depth; those of another command are not among them.
#[test]
fn runs_that_events_of_children_start_are_named_as_well() {
    let shell = Shell::new();
    for (name, source) in [
        ("part", "steps:\n  - succeed: { message: Done }\n"),
        ("child", "steps:\n  - emitEvent: { type: surefoot.start, workflow: part }\n"),
        ("middle", "steps:\n  - runWorkflow: { workflow: child }\n"),
    ] {
        shell.write(&format!("{name}.yaml"), source);
        let line = format!("publish {name}.yaml --ready-made --app local --scope local");
        assert_eq!(shell.run(&line).code, 0);
    }
    let steps =
        ["child", "middle", "child"].map(|it| format!("  - runWorkflow: {{ workflow: {it} }}\n"));
    shell.write("main.yaml", &format!("steps:\n{}", steps.concat()));
    let started = || {
        let did = shell.run("run main.yaml --json");
        let last: Value = serde_json::from_str(did.out.lines().last().unwrap()).unwrap();
        let started = last["started_by_events"].as_array().unwrap().clone();
        started.iter().map(|it| it["run"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (first, second) = (started(), started());
    assert_eq!((first.len(), second.len()), (3, 3));
    assert!(first.iter().all(|run| !second.contains(run)));
}

#[test]
fn what_cannot_be_is_refused_before_the_start() {
    let shell = shell();
    let nowhere = shell.path("nofile.json").display().to_string();
    for (more, said) in [
        (vec!["--key", " "], "a key is not blank"),
        (vec!["--ai-url", "ftp://models.example", "--ai-model", "m"], "must begin with `https://`"),
        (vec!["--ai-url", "nonsense", "--ai-model", "m"], "`--ai-url nonsense`: the URL cannot be"),
        (vec!["--ai-url", "http://10.0.0.1/v1", "--ai-model", "m"], "`--allow-network`"),
        (vec!["--inputs", "nofile.json"], &format!("there is no file `{nowhere}`")),
    ] {
        let line = [&["run", "hello.yaml"], &more[..]].concat();
        let did = shell.with(&line);
        assert_eq!(did.code, 2, "{more:?}: {did:?}");
        assert!(did.err.contains(said), "{more:?}: {did:?}");
    }
    assert!(!shell.has("surefoot.db"));
}

#[test]
fn a_schedule_is_not_waited_for_and_run_says_so() {
    let shell = Shell::new();
    let source = "triggers:\n  schedule:\n    nightly: { cron: '0 3 * * *', timezone: Europe/Berlin }\nsteps:\n  - succeed: { message: Done }\n";
    shell.write("nightly.yaml", source);
    let did = shell.run("run nightly.yaml");
    assert_eq!(did.code, 0, "{did:?}");
    assert!(did.err.contains("waits for no trigger"), "{did:?}");
    let hello = shell.run("run nightly.yaml --dry-run");
    assert!(!hello.err.contains("waits for no trigger"), "{hello:?}");
}
