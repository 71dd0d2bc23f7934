//! `cargo xtask soak`: a load that goes on for minutes, and the tests that take minutes each.

use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::workspace::Workspace;
use crate::{bench, process, test, tools};

const HELP: &str = "\
Runs a load for ten minutes on PostgreSQL, at 70 % of what is possible, and fails if memory, latencies or dead rows grow or
the log has a warning. Then it runs the tests that `cargo xtask test` leaves out since they take minutes: those with
#[ignore = \"soak\"].

Usage: cargo xtask soak
       cargo xtask soak --load [MINUTES]
       cargo xtask soak -p CRATE...

  --load                the load alone; with fewer than eight minutes there is nothing to compare
  -p, --package CRATE   the tests of this crate alone (`-p testkit` and `-p surefoot-testkit` are the same)
  -h, --help            this text";

/// How long the load goes on.
const MINUTES: u32 = 10;

/// Runs what the arguments name.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--load"] => return bench::soak(MINUTES),
        ["--load", minutes] => return bench::soak(minutes_of(minutes)?),
        [] => bench::soak(MINUTES)?,
        _ => {}
    }
    tests(arguments)
}

fn minutes_of(text: &str) -> Result<u32, Failure> {
    let minutes = text.parse().ok().filter(|minutes| *minutes > 0);
    minutes.ok_or_else(|| Failure::usage(format!("`{text}` is no number of minutes"), HELP))
}

/// Runs the tests that the arguments name.
fn tests(arguments: &[String]) -> Result<(), Failure> {
    let Some(names) = test::packages(arguments, HELP)? else {
        println!("{HELP}");
        return Ok(());
    };
    let workspace = Workspace::load()?;
    let chosen = names.iter().map(|name| workspace.package(name)).collect::<Result<Vec<_>, _>>()?;
    let packages = chosen.into_iter().map(|package| package.name.to_string()).collect();
    let nextest = tools::NEXTEST.program(&workspace.root, workspace.target())?;
    process::run("soak", &mut command(&nextest, &workspace.root, packages))
}

fn command(nextest: &Path, root: &Path, packages: Vec<String>) -> Command {
    let mut command = Command::new(nextest);
    command.current_dir(root).args(["nextest", "run", "--locked", "--profile", "soak"]);
    command.args(["--run-ignored", "only"]);
    if packages.is_empty() {
        command.arg("--workspace");
    }
    for package in packages {
        command.args(["--package", &package]);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_left_out_otherwise_is_run() {
        let all = format!("{:?}", command(Path::new("n"), Path::new("."), Vec::new()));
        assert!(
            all.ends_with(r#""--profile" "soak" "--run-ignored" "only" "--workspace""#),
            "{all}"
        );
        let one = vec!["surefoot-testkit".to_owned()];
        let one = format!("{:?}", command(Path::new("n"), Path::new("."), one));
        assert!(one.ends_with(r#""only" "--package" "surefoot-testkit""#), "{one}");
    }

    #[test]
    fn minutes_are_a_number() {
        assert_eq!(minutes_of("3"), Ok(3));
        for text in ["0", "-1", "x"] {
            assert!(minutes_of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_wrong_command_line_is_refused_with_the_help() {
        let failure = run(&["--fast".to_owned()]).unwrap_err();
        assert_eq!(failure, Failure::usage("`--fast` is not known here", HELP));
    }
}
