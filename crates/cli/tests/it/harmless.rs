//! Nothing that users or actions wrote acts on a terminal, whatever is printed of it and wherever.

use serde_json::{Value, json};
use surefoot_kernel_core::Failure;

use crate::shell::{Did, Shell};

/// A colour, a cleared screen, a title, a bell, another direction, what nobody sees, and markup.
const HOSTILE: &str = "\u{1b}[31m\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\r\u{202e}evil\u{200b}\u{2066}\u{3164}\u{ad}\u{e0041}<script>&\"'";

#[track_caller]
fn is_harmless(line: &[&str], did: &Did) {
    for text in [&did.out, &did.err] {
        let odd = text.chars().find(|it| {
            let turns = matches!(it, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
            let is_nothing = matches!(it, '\u{3164}' | '\u{ad}' | '\u{e0000}'..='\u{e0fff}');
            (it.is_control() && *it != '\n') || turns || is_nothing
        });
        assert_eq!(odd, None, "{line:?}: {}", text.escape_debug().take(2_000).collect::<String>());
    }
}

/// A run with hostile data and a megabyte of it, that failed with a hostile sentence.
fn failed(shell: &Shell) -> String {
    let long = "\u{202e}x".repeat(250_000);
    let data = json!({ "item": format!("{HOSTILE}{long}") });
    shell.write("data.json", &data.to_string());
    let key = format!("key{HOSTILE}");
    let emit = ["emit", "inventory.stockLow", "--scope", "berlin", "--key", &key];
    let emit = [&emit[..], &["--data", "data.json", "--json"]].concat();
    let did = shell.with(&emit);
    is_harmless(&emit, &did);
    let emitted: Value = serde_json::from_str(&did.out).unwrap_or_else(|_| panic!("{did:?}"));
    let run = emitted["runs"][0].as_str().unwrap().to_owned();
    shell.fails_with(run.parse().unwrap(), Failure::new("BAD", HOSTILE));
    run
}

#[test]
fn nothing_acts_on_a_terminal() {
    let shell = Shell::published();
    let run = failed(&shell);
    let kind = format!("kind{HOSTILE}");
    let hostile_id = format!("run_{HOSTILE}");
    for line in [
        &["show", &run][..],
        &["explain", &run],
        &["watch", &run],
        &["runs", "--state", "failed"],
        &["events"],
        &["effects"],
        &["audit"],
        &["signal", &kind, HOSTILE, "--scope", "berlin", "--data", "true"],
        &["signals"],
        &["health"],
        &["workflows"],
        &["versions", "reorder", "--scope", "berlin"],
        // What is refused is told without harm too.
        &["show", &hostile_id],
        &["runs", "--workflow", HOSTILE],
        &["runs", "--scope", HOSTILE],
        &["emit", HOSTILE, "--scope", "berlin"],
        &["emit", "inventory.stockLow", "--scope", "berlin", "--data", HOSTILE],
        &["emit", "inventory.stockLow", "--scope", "berlin", "--data", "{\"item\": \"a\\u0000b\"}"],
        &["retry", &run, "--reason", HOSTILE, "--yes"],
        &["events", "--status", HOSTILE],
    ] {
        is_harmless(line, &shell.with(line));
        let json = [line, &["--json"]].concat();
        is_harmless(&json, &shell.with(&json));
    }
}

#[test]
fn nothing_in_a_file_acts_on_a_terminal() {
    let shell = Shell::new();
    for yaml in [
        format!("steps:\n  - mail: {{ to: {HOSTILE} }}\n"),
        format!("steps:\n  - \"{}\": {{}}\n", HOSTILE.replace('"', "")),
        format!("{HOSTILE}: 1\nsteps: []\n"),
        "steps:\n  - fail: { message: \"\\e[2J\\u202e\", code: \"\\e[2J\" }\n".to_owned(),
        "steps:\n  - mail: {}\u{0}\n".to_owned(),
        format!("steps:\n  - mail: {{}}\n    label: \"{}\"\n", "\u{202e}".repeat(50_000)),
    ] {
        shell.write("bad.yaml", &yaml);
        for line in [
            &["check", "bad.yaml", "--manifest", "manifest.json"][..],
            &["check", "bad.yaml", "--json"],
        ] {
            is_harmless(line, &shell.with(line));
        }
    }
}

/// Covers field fault 113.
#[test]
fn a_retry_shows_what_it_would_do_and_refuses_what_is_unexplained() {
    let shell = Shell::published();
    let failed = shell.failed();
    let told = shell.json(&format!("explain {failed}"));
    let legal = told["legal_actions"].as_array().unwrap();
    let retry = legal.iter().find(|it| it["verb"] == "retry").unwrap();
    let why = retry["why"].as_str().unwrap();
    assert!(why.contains("steps.0"), "{why}");
    let shell = Shell::published();
    let open = shell.unknown();
    let before = shell.fingerprint();
    let told = shell.json(&format!("explain {open}"));
    let legal = told["legal_actions"].as_array().unwrap();
    assert!(legal.iter().all(|it| it["verb"] != "retry"), "{legal:?}");
    let revision = shell.revision(open).to_string();
    let run = open.to_string();
    let did =
        shell.with(&["retry", &run, "--revision", &revision, "--reason", "impatience", "--yes"]);
    assert_eq!((did.code, shell.fingerprint() == before), (1, true), "{did:?}");
}
