//! `cargo xtask test`: every test, with what it needs.

use std::path::Path;
use std::process::Command;

use cargo_metadata::Package;

use crate::failure::Failure;
use crate::process;
use crate::services::{self, Services};
use crate::tools;
use crate::workspace::Workspace;

const HELP: &str = "\
Runs every test: doc tests with cargo, then unit and integration tests with cargo-nextest.

Usage: cargo xtask test [-p CRATE]...

  -p, --package CRATE   only this crate (`-p worker` and `-p surefoot-worker` are the same)
  -h, --help            this text

SUREFOOT_CASES=N sets how many cases each property test tries; it is passed on to the tests.
With CI set, the `ci` profile of .config/nextest.toml is used: no test is left out after a failure.
What a test needs and the machine lacks is installed under target/; what cannot be had is a failure.
Servers are fetched to target/services and run as long as the tests, for crates that name them in their manifest;
`cargo xtask services --help` tells how to give your own.";

/// Runs the tests that the arguments name: both kinds, even if the first failed, so that one run tells all.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let Some(names) = packages(arguments, HELP)? else {
        println!("{HELP}");
        return Ok(());
    };
    let workspace = Workspace::load()?;
    let chosen = names.iter().map(|name| workspace.package(name)).collect::<Result<Vec<_>, _>>()?;
    let nextest = tools::NEXTEST.program(&workspace.root, workspace.target())?;

    let all = workspace.metadata.workspace_packages();
    let wanted = services::wanted(if chosen.is_empty() { &all } else { &chosen })?;
    // They run until this function returns.
    let services = Services::start(&wanted, workspace.target())?;

    let documented = with_docs(&chosen);
    let docs = if chosen.is_empty() || !documented.is_empty() {
        let mut command = doc_command(&workspace.root, &documented);
        process::run("doc tests", command.envs(services.variables()))
    } else {
        eprintln!("== doc tests: a crate without a library has none");
        Ok(())
    };
    let mut command = nextest_command(&nextest, &workspace.root, &chosen);
    let tests = process::run("tests", command.envs(services.variables()));
    match (tests, docs) {
        (Ok(()), Ok(())) => Ok(()),
        (Err(failure), Ok(())) | (Ok(()), Err(failure)) => Err(failure),
        (Err(tests), Err(docs)) => Err(Failure::new(format!("{tests}; {docs}"))),
    }
}

/// The packages asked for, none meaning all; or nothing at all when help was asked for.
pub(crate) fn packages<'a>(
    arguments: &'a [String],
    help: &str,
) -> Result<Option<Vec<&'a str>>, Failure> {
    let mut names = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-h" | "--help" => return Ok(None),
            "-p" | "--package" => match arguments.next() {
                Some(name) => names.push(name.as_str()),
                None => return Err(Failure::usage(format!("`{argument}` needs a crate"), help)),
            },
            other => return Err(Failure::usage(format!("`{other}` is not known here"), help)),
        }
    }
    Ok(Some(names))
}

fn with_docs<'a>(chosen: &[&'a Package]) -> Vec<&'a Package> {
    let library = |package: &&&Package| package.targets.iter().any(|target| target.doctest);
    chosen.iter().filter(library).copied().collect()
}

fn nextest_command(nextest: &Path, root: &Path, chosen: &[&Package]) -> Command {
    let mut command = Command::new(nextest);
    command.current_dir(root).args(["nextest", "run", "--locked", "--all-targets"]);
    if std::env::var_os("CI").is_some() {
        command.args(["--profile", "ci"]);
    }
    select(&mut command, chosen);
    command
}

fn doc_command(root: &Path, chosen: &[&Package]) -> Command {
    let mut command = process::cargo();
    command.current_dir(root).args(["test", "--locked", "--doc"]);
    select(&mut command, chosen);
    command
}

fn select(command: &mut Command, chosen: &[&Package]) {
    if chosen.is_empty() {
        command.arg("--workspace");
    }
    for package in chosen {
        command.args(["--package", &package.name]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> String {
        command.get_args().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    fn given(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn without_arguments_the_whole_workspace_is_tested() {
        assert_eq!(packages(&[], HELP), Ok(Some(vec![])));
        let root = Path::new(".");
        let command = words(&nextest_command(Path::new("n"), root, &[]));
        assert!(command.starts_with("nextest run --locked --all-targets"), "{command}");
        assert!(command.ends_with("--workspace"), "{command}");
        assert_eq!(words(&doc_command(root, &[])), "test --locked --doc --workspace");
    }

    #[test]
    fn a_crate_can_be_chosen_and_one_without_a_library_has_no_doc_tests() {
        let workspace = Workspace::load().unwrap();
        let line = given("-p worker --package xtask");
        let chosen: Vec<_> = packages(&line, HELP)
            .unwrap()
            .unwrap()
            .into_iter()
            .map(|name| workspace.package(name).unwrap())
            .collect();
        assert_eq!(
            words(&doc_command(Path::new("."), &with_docs(&chosen))),
            "test --locked --doc --package surefoot-worker"
        );
    }

    #[test]
    fn a_wrong_command_line_is_refused_with_the_help() {
        for (line, problem) in
            [("-p", "`-p` needs a crate"), ("--fast", "`--fast` is not known here")]
        {
            let failure = packages(&given(line), HELP).unwrap_err();
            assert_eq!(failure, Failure::usage(problem, HELP));
        }
    }
}
