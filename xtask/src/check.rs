//! `cargo xtask check`: what CI asks besides the tests.

use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::process;
use crate::tidy;
use crate::tools;
use crate::workspace::Workspace;

const HELP: &str = "\
Checks format, lints, docs, licences and sources of what we depend on, and the architecture.
Every check runs, even if one before it failed. Takes no options.

Usage: cargo xtask check   (`cargo xtask ci` runs the tests as well)";

/// Runs every check, and fails with the names of those that failed.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    match arguments {
        [] => {}
        [argument] if argument == "-h" || argument == "--help" => {
            println!("{HELP}");
            return Ok(());
        }
        [other, ..] => return Err(Failure::usage(format!("`{other}` is not known here"), HELP)),
    }
    let workspace = Workspace::load()?;
    let mut failures = Vec::new();
    for (what, command) in &mut commands(&workspace.root) {
        failures.extend(process::run(what, command).err());
    }
    failures.extend(licences(&workspace).err());
    failures.extend(tidy::all(&workspace).err());
    if failures.is_empty() {
        return Ok(());
    }
    let said: Vec<String> = failures.iter().map(ToString::to_string).collect();
    Err(Failure::new(said.join("\nxtask: ")))
}

fn commands(root: &Path) -> [(&'static str, Command); 3] {
    let cargo = |line: &str| {
        let mut command = process::cargo();
        command.current_dir(root).args(line.split_whitespace());
        command
    };
    let mut docs = cargo("doc --workspace --no-deps --locked");
    docs.env("RUSTDOCFLAGS", "-D warnings");
    [
        ("format", cargo("fmt --all --check")),
        ("lints", cargo("clippy --workspace --all-targets --locked -- -D warnings")),
        ("docs", docs),
    ]
}

fn licences(workspace: &Workspace) -> Result<(), Failure> {
    let deny = tools::DENY.program(&workspace.root, workspace.target())?;
    let mut command = Command::new(deny);
    command.current_dir(&workspace.root).args([
        "--workspace",
        "--locked",
        "check",
        "bans",
        "licenses",
        "sources",
    ]);
    process::run("licences and sources", &mut command)
}
