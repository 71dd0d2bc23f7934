//! `run` works for the run that it was given, and for no other; what was interrupted is gone on with when somebody says so.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::shell::{Did, Shell, did};
use crate::supplier::Supplier;

const PATIENCE: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_millis(50);

/// Waits for a word, then orders.
const PATIENT: &str = r#"
inputs:
  supplier: { type: text, required: true }
steps:
  - waitFor: { kind: go, key: now }
  - httpRequest:
      method: POST
      url: "${{ inputs.supplier }}/orders"
      headers: { Authorization: { secret: SUPPLIER_KEY } }
      json: { token: { secret: SUPPLIER_KEY }, pieces: 3 }
"#;
const OTHER: &str = "steps:\n  - succeed: { message: Done }\n";
const GO: &str = "signal go now --app local --scope local";

fn inputs(supplier: &Supplier) -> String {
    json!({ "supplier": format!("http://{}", supplier.address) }).to_string()
}

/// A command with all that the workflow needs.
fn equipped(shell: &Shell, line: &[&str]) -> std::process::Command {
    let mut command = shell.command(line);
    command.args(["--allow-network", "127.0.0.0/8"]).env("SUREFOOT_SECRET_SUPPLIER_KEY", "k-1");
    command
}

/// Started in the background, until its run waits. The run's id comes with it.
fn waiting(shell: &Shell, supplier: &Supplier, more: &[&str]) -> (Child, String) {
    let inputs = inputs(supplier);
    let line = [&["run", "patient.yaml", "--inputs", &inputs], more].concat();
    let mut command = equipped(shell, &line);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let since = Instant::now();
    loop {
        let listed = shell.run("runs --json");
        let listed: Value = serde_json::from_str(&listed.out).unwrap_or_default();
        let run = listed["runs"].as_array().into_iter().flatten();
        if let Some(run) = run.into_iter().find(|run| run["state"] == "waiting") {
            return (child, run["id"].as_str().unwrap().to_owned());
        }
        let has_ended = child.try_wait().unwrap().is_some();
        if has_ended || since.elapsed() >= PATIENCE {
            child.kill().unwrap();
            panic!("it does not wait: {:?}", did(child.wait_with_output().unwrap()));
        }
        std::thread::sleep(SOON);
    }
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

fn killed(child: Child) -> Did {
    send(&child, Signal::KILL);
    did(child.wait_with_output().unwrap())
}

fn shell() -> Shell {
    let shell = Shell::new();
    shell.write("patient.yaml", PATIENT);
    shell.write("other.yaml", OTHER);
    shell
}

#[test]
fn another_command_leaves_a_run_alone_and_says_how_to_go_on() {
    let (shell, supplier) = (shell(), Supplier::open());
    let (child, run) = waiting(&shell, &supplier, &[]);
    killed(child);
    assert_eq!(shell.run(GO).code, 0);
    // It has neither the network nor the secret.
    let other = shell.run("run other.yaml");
    assert_eq!(other.code, 0, "{other:?}");
    let resume = format!("surefoot run --resume {run}");
    assert!(other.err.contains("left alone") && other.err.contains(&resume), "{other:?}");
    assert_eq!((shell.state(run.parse().unwrap()).as_str(), supplier.asked().len()), ("queued", 0));

    // Going on with it without what it needs fails nothing.
    let bare = shell.run(&format!("run --resume {run}"));
    assert_eq!(bare.code, 2, "{bare:?}");
    assert!(bare.err.contains("SUREFOOT_SECRET_SUPPLIER_KEY"), "{bare:?}");
    assert_eq!(shell.state(run.parse().unwrap()), "queued");

    let resumed = did(equipped(&shell, &["run", "--resume", &run]).output().unwrap());
    assert_eq!(resumed.code, 0, "{resumed:?}");
    let asked = supplier.asked();
    assert_eq!((asked.len(), asked[0].secret.as_str()), (1, "k-1"));
    assert_eq!(asked[0].body, json!({ "pieces": 3, "token": "k-1" }).to_string());
    // Whoever asks again is told how it ended.
    let again = did(equipped(&shell, &["run", "--resume", &run]).output().unwrap());
    assert_eq!((again.code, supplier.asked().len()), (0, 1), "{again:?}");
    assert!(again.out.contains(": succeeded"), "{again:?}");
}

#[test]
fn the_same_key_is_the_same_run() {
    let (shell, supplier) = (shell(), Supplier::open());
    let (child, run) = waiting(&shell, &supplier, &["--key", "order-7"]);
    killed(child);
    assert_eq!(shell.run(GO).code, 0);
    let inputs = inputs(&supplier);
    let again = || {
        let line = ["run", "patient.yaml", "--inputs", &inputs, "--key", "order-7"];
        did(equipped(&shell, &line).output().unwrap())
    };
    for _ in 0..2 {
        let did = again();
        assert_eq!(did.code, 0, "{did:?}");
        assert!(did.err.contains("was started before") && did.out.contains(&run), "{did:?}");
        assert!(!did.err.contains("left alone"), "{did:?}");
    }
    assert_eq!(supplier.asked().len(), 1);
    assert_eq!(shell.json("runs")["runs"].as_array().unwrap().len(), 1);
    // A workflow that is live as it stands is not published again.
    let versions = shell.json("versions patient --app local --scope local");
    assert_eq!(versions["versions"].as_array().unwrap().len(), 1, "{versions}");

    let line = ["run", "patient.yaml", "--inputs", r#"{"supplier": "x"}"#, "--key", "order-7"];
    let other = did(equipped(&shell, &line).output().unwrap());
    assert_eq!(other.code, 2, "{other:?}");
    assert!(other.err.contains("other inputs") && other.err.contains(&run), "{other:?}");
}

#[test]
fn an_interrupt_tells_how_to_go_on() {
    let (shell, supplier) = (shell(), Supplier::open());
    let (child, run) = waiting(&shell, &supplier, &[]);
    send(&child, Signal::INT);
    let did = did(child.wait_with_output().unwrap());
    assert_eq!(did.code, 1, "{did:?}");
    assert!(did.err.contains(&format!("surefoot run --resume {run}")), "{did:?}");
    assert_eq!(shell.state(run.parse().unwrap()), "waiting");
}

/// What a person reads, a program reads too.
#[test]
fn that_a_run_can_be_gone_on_with_is_said_as_text_and_as_json() {
    let (shell, supplier) = (shell(), Supplier::open());
    let (child, run) = waiting(&shell, &supplier, &[]);
    send(&child, Signal::INT);
    did(child.wait_with_output().unwrap());
    assert_eq!(shell.run(GO).code, 0);
    let command = format!("surefoot run --resume {run}");
    let legal = shell.json(&format!("explain {run}"))["legal_actions"].clone();
    let legal = legal.as_array().unwrap();
    assert!(legal.iter().any(|it| it["verb"] == "resume" && it["command"] == command), "{legal:?}");
    let text = shell.run(&format!("explain {run}")).out;
    for action in legal {
        let line =
            format!("{}: {}", action["verb"].as_str().unwrap(), action["why"].as_str().unwrap());
        assert!(
            text.contains(&line) && text.contains(action["command"].as_str().unwrap()),
            "{text}"
        );
    }
}

#[test]
fn what_is_no_run_of_its_own_is_not_gone_on_with() {
    let shell = Shell::published();
    let run = shell.emitted();
    let did = shell.run(&format!("run --resume {run}"));
    assert_eq!(did.code, 2, "{did:?}");
    assert!(did.err.contains("a worker of its application"), "{did:?}");
    let nothing = shell.run(&format!("run --resume run_{}", "0".repeat(32)));
    assert_eq!(nothing.code, 1, "{nothing:?}");
    let both = shell.run(&format!("run reorder.yaml --resume {run}"));
    assert_eq!(both.code, 2, "{both:?}");
}

/// Before anything of it is done.
#[test]
fn a_child_that_asks_a_model_is_found_before_the_start() {
    let shell = Shell::new();
    shell.write("think.yaml", "steps:\n  - generateText: { prompt: Hello }\n");
    shell.write("middle.yaml", "steps:\n  - runWorkflow: { workflow: think }\n");
    shell.write("outer.yaml", "steps:\n  - runWorkflow: { workflow: middle }\n");
    for file in ["think", "middle"] {
        let line = format!("publish {file}.yaml --ready-made --app local --scope local");
        let did = shell.run(&line);
        assert_eq!(did.code, 0, "{did:?}");
    }
    let did = shell.run("run outer.yaml");
    assert_eq!(did.code, 2, "{did:?}");
    assert!(did.err.contains("`think` asks a model") && did.err.contains("--ai-url"), "{did:?}");
    assert_eq!(shell.json("runs")["runs"], json!([]));
    let half = shell.run("run outer.yaml --ai-url http://127.0.0.1:1/v1");
    assert_eq!(half.code, 2, "{half:?}");
    assert!(half.err.contains("--ai-model"), "{half:?}");
}

#[test]
fn a_child_of_another_module_is_found_before_the_start() {
    let shell = Shell::new();
    let line = "publish reorder.yaml --manifest manifest.json --app local --scope local";
    assert_eq!(shell.run(line).code, 0);
    shell.write("outer.yaml", "steps:\n  - runWorkflow: { workflow: reorder }\n");
    let did = shell.run("run outer.yaml");
    assert_eq!(did.code, 2, "{did:?}");
    assert!(did.err.contains("`reorder`, which it runs, needs"), "{did:?}");
}

#[test]
fn a_dry_run_says_what_would_be_sent_and_stores_nothing() {
    let shell = shell();
    let inputs = r#"{"supplier": "https://api.example.com"}"#;
    let did = shell.with(&["run", "patient.yaml", "--inputs", inputs, "--dry-run"]);
    assert_eq!(did.code, 0, "{did:?}");
    assert!(did.out.contains("POST https://api.example.com/orders"), "{did:?}");
    assert!(did.out.contains("httpRequests: 1 for sure"), "{did:?}");
    assert!(!shell.has("surefoot.db"));
    shell.write("think.yaml", "steps:\n  - generateText: { prompt: Hello }\n");
    let did = shell.run("run think.yaml --dry-run --json");
    assert_eq!(did.code, 0, "{did:?}");
    let view: Value = serde_json::from_str(&did.out).unwrap();
    assert_eq!(view["bill"]["costs"][0]["dimension"], "aiCalls", "{view}");
}
