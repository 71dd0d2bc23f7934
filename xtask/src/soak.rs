//! `cargo xtask soak`: the tests that take minutes each.

use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::workspace::Workspace;
use crate::{process, test, tools};

const HELP: &str = "\
Runs the tests that `cargo xtask test` leaves out since they take minutes: those with #[ignore = \"soak\"].

Usage: cargo xtask soak [-p CRATE]...

  -p, --package CRATE   only this crate (`-p testkit` and `-p surefoot-testkit` are the same)
  -h, --help            this text";

/// Runs the tests that the arguments name.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
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
    fn a_wrong_command_line_is_refused_with_the_help() {
        let failure = run(&["--fast".to_owned()]).unwrap_err();
        assert_eq!(failure, Failure::usage("`--fast` is not known here", HELP));
    }
}
