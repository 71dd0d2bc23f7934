//! `run`: a workflow of ready-made actions, without any application.

use serde_json::{Value, json};

use crate::shell::{Shell, did};
use crate::supplier::Supplier;

const ORDER: &str = include_str!("../../../../examples/actions/order.yaml");
const CANARY: &str = "canary-0815";

#[test]
fn the_example_runs_without_any_code_and_its_secret_is_shown_nowhere() {
    let (shell, supplier) = (Shell::new(), Supplier::open());
    shell.write("order.yaml", ORDER);
    let inputs = json!({ "supplier": format!("http://{}", supplier.address) }).to_string();
    let line = ["run", "order.yaml", "--inputs", &inputs, "--allow-network", "127.0.0.0/8"];
    let mut command = shell.command(&line);
    command.env("SUREFOOT_SECRET_SUPPLIER_KEY", CANARY).env("SUREFOOT_LOG", "trace");
    let did = did(command.output().unwrap());
    assert_eq!(did.code, 0, "{did:?}");
    assert!(did.out.contains(": succeeded"), "{did:?}");
    let asked = supplier.asked();
    let asked: Vec<(&str, &str)> =
        asked.iter().map(|it| (it.method.as_str(), it.path.as_str())).collect();
    assert_eq!(asked, [("GET", "/prices/bolt"), ("POST", "/orders")]);
    assert!(
        supplier
            .asked()
            .iter()
            .all(|it| it.key.len() == 64 && it.secret == format!("Bearer {CANARY}"))
    );

    let runs = shell.json("runs");
    let run = runs["runs"][0]["id"].as_str().unwrap().to_owned();
    let shown = shell.run(&format!("show {run} --json"));
    let view: Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(view["result_message"], "Ordered 3 boxes of bolt (o-1)");
    let all = [did.out, did.err, shown.out, shell.run(&format!("explain {run}")).out];
    assert!(!all.concat().contains("canary"), "{all:?}");
    for file in ["surefoot.db", "surefoot.db-wal"] {
        let bytes = std::fs::read(shell.path(file)).unwrap_or_default();
        assert!(!bytes.windows(6).any(|part| part == b"canary"), "{file}");
    }
}

#[test]
fn what_cannot_run_creates_nothing() {
    let shell = Shell::new();
    shell.write("bad.yaml", "steps:\n  - httpReqest: { url: x }\n");
    let did = shell.run("run bad.yaml");
    assert_eq!(did.code, 1, "{did:?}");
    assert!(did.out.contains("did you mean `httpRequest`"), "{did:?}");
    assert!(!shell.has("surefoot.db"));
    shell.write("think.yaml", "steps:\n  - generateText: { prompt: x }\n");
    let did = shell.run("run think.yaml");
    assert_eq!(did.code, 2, "{did:?}");
    assert!(did.err.contains("--ai-url"), "{did:?}");
    let did = shell.run("run reorder.yaml --store postgres://nowhere/x");
    assert_eq!(did.code, 2, "{did:?}");
}

#[test]
fn a_run_that_fails_says_why() {
    let shell = Shell::new();
    shell.write("inside.yaml", "steps:\n  - httpCall: { url: 'http://127.0.0.1:1/' }\n");
    let did = shell.run("run inside.yaml");
    assert_eq!(did.code, 1, "{did:?}");
    assert!(did.out.contains("FORBIDDEN"), "{did:?}");
    assert!(did.out.contains("not an address of the public internet"), "{did:?}");
}
