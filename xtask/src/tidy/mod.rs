//! `cargo xtask tidy`: the rules of the architecture that no compiler checks. Each is a file here, has a test
//! that breaks it, and runs on this workspace as a test of its own.

mod allowance;
mod arrows;
mod attest;
mod code_docs;
mod facade;
mod features;
mod manifests;
mod reach;
mod size;
mod tokens;
mod words;

use std::fmt;

use crate::failure::Failure;
use crate::workspace::Workspace;

const HELP: &str = "\
Checks the rules of the architecture (CONTRIBUTING.md lists them). Takes no options.

Usage: cargo xtask tidy";

/// One place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    place: String,
    problem: String,
}

impl Finding {
    fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { place: place.into(), problem: problem.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

type Rule = fn(&Workspace) -> Result<Vec<Finding>, Failure>;

const RULES: &[(&str, Rule)] = &[
    ("arrows between our crates", arrows::findings),
    ("what pure crates pull in", reach::findings),
    ("manifests", manifests::findings),
    ("features that would change what JSON means", features::findings),
    ("sizes of files and functions", size::findings),
    ("words and paths", words::findings),
    ("who may attest a commit", attest::findings),
    ("a place in the docs for each error code", code_docs::findings),
    ("the facade defines nothing", facade::findings),
];

/// Runs the command.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    match arguments {
        [] => all(&Workspace::load()?),
        [argument] if argument == "-h" || argument == "--help" => {
            println!("{HELP}");
            Ok(())
        }
        [other, ..] => Err(Failure::usage(format!("`{other}` is not known here"), HELP)),
    }
}

/// Checks every rule, prints each place that breaks one, and fails if there is any.
pub(crate) fn all(workspace: &Workspace) -> Result<(), Failure> {
    let mut broken = 0;
    for (name, rule) in RULES {
        let findings = rule(workspace)?;
        eprintln!("== {name}: {}", if findings.is_empty() { "as it should be" } else { "broken" });
        for finding in &findings {
            eprintln!("   {finding}");
        }
        broken += findings.len();
    }
    match broken {
        0 => Ok(()),
        1 => Err(Failure::new("one place breaks a rule of the architecture; see above")),
        many => {
            Err(Failure::new(format!("{many} places break a rule of the architecture; see above")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn holds(rule: Rule) {
        let findings = rule(&Workspace::load().unwrap()).unwrap();
        let shown: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(shown.is_empty(), "{}", shown.join("\n"));
    }

    #[test]
    fn arrows_point_as_drawn() {
        holds(arrows::findings);
    }

    #[test]
    fn pure_crates_pull_in_no_io() {
        holds(reach::findings);
    }

    #[test]
    fn manifests_take_all_from_the_workspace() {
        holds(manifests::findings);
    }

    #[test]
    fn no_feature_changes_what_json_means() {
        holds(features::findings);
    }

    #[test]
    fn files_and_functions_are_small() {
        holds(size::findings);
    }

    #[test]
    fn no_file_has_words_or_paths_that_are_not_ours() {
        holds(words::findings);
    }

    #[test]
    fn only_stores_attest_a_commit() {
        holds(attest::findings);
    }

    #[test]
    fn each_error_code_has_its_place_in_the_docs() {
        holds(code_docs::findings);
    }

    #[test]
    fn the_facade_defines_nothing() {
        holds(facade::findings);
    }
}
