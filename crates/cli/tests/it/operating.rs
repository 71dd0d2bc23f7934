//! The pages for those on call and for authors: each command is one that this binary takes, and nothing leads astray.

use std::path::Path;
use std::process::Command;

use crate::shell::{Shell, did};

const OPERATING: &str = include_str!("../../../../docs/operating.md");
const ERRORS: &str = include_str!("../../../../docs/errors.md");

/// Lines of consoles that call the binary.
fn commands(page: &str) -> Vec<&str> {
    let consoles = page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = consoles.flat_map(str::lines).filter_map(|line| line.strip_prefix("$ "));
    lines.filter(|line| line.starts_with("surefoot ")).collect()
}

/// The ids that a page's headings have where it is shown.
fn anchors(page: &str) -> Vec<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let text = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        text.chars().filter(|it| it.is_alphanumeric() || "-_".contains(*it)).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_command_for_those_on_call_does_what_it_says() {
    let commands = commands(OPERATING);
    assert!(commands.len() > 12, "{commands:?}");
    for line in commands {
        let shell = Shell::published();
        let run = match line {
            _ if line.contains("surefoot retry RUN") => shell.failed(),
            _ => shell.unknown(),
        };
        let revision = format!("--revision {} ", shell.revision(run));
        let line = line.replace("RUN", &run.to_string()).replace("--revision N ", &revision);
        let line = line.replace("EVENT", "evt_00000000000000000000000000000000");
        let binary = Path::new(env!("CARGO_BIN_EXE_surefoot"));
        let path = format!("{}:/usr/bin:/bin", binary.parent().unwrap().display());
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(shell.path("")).env_clear();
        let did = did(command.env("PATH", path).env("USER", "tester").output().unwrap());
        // Red health, nobody at work and an event that nobody knows are findings.
        let is_finding = ["health", "doctor", "redrive"].iter().any(|it| line.contains(it));
        assert_eq!(did.code, i32::from(is_finding), "{line}: {did:?}");
    }
}

#[test]
fn every_error_code_leads_to_its_section() {
    let codes = ERRORS.lines().filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`'));
    for code in codes {
        let link = format!("[`{code}`](errors.md#{})", code.to_lowercase());
        assert!(OPERATING.contains(&link), "{link} is missing");
    }
}

#[test]
fn no_link_of_the_guides_leads_astray() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for name in ["operating.md", "authoring.md", "embedding.md"] {
        let page = std::fs::read_to_string(docs.join(name)).unwrap();
        for link in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = docs.join(if file.is_empty() { name } else { file });
            let target = std::fs::read_to_string(&file);
            let target = target.unwrap_or_else(|error| panic!("{name}: {link}: {error}"));
            let is_there = anchor.is_empty() || anchors(&target).iter().any(|it| it == anchor);
            assert!(is_there, "{name}: {link} leads to no heading");
        }
    }
}
