//! `cargo xtask docs`: the pages that are made from tests that ran and passed.

mod cases;
mod claims;
mod junit;
mod page;

use std::fs;

use cases::Cases;
use claims::Claim;

use crate::failure::Failure;
use crate::workspace::Workspace;

/// Where the page is.
const PAGE: &str = "docs/behaviour.md";

const HELP: &str = "\
Writes docs/behaviour.md: one row a case, with the tests that show it, from the last `cargo xtask test`.

Usage: cargo xtask docs [--check]

  --check      writes nothing; fails if the page is out of date, or a case has neither test nor reason
  -h, --help   this text

A test names its cases in its documentation: `/// Covers behaviour 12.` or `/// Covers field faults 3, 4.`
The cases are in xtask/cases.txt, a line each; there too stands which are left out, and why.
With CI set, the report of the `ci` profile is read.";

/// Runs the command.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    match arguments {
        [] => {
            let workspace = Workspace::load()?;
            let text = made(&workspace)?;
            fs::write(workspace.root.join(PAGE), text)
                .map_err(|error| Failure::new(format!("{PAGE} cannot be written: {error}")))
        }
        [argument] if argument == "--check" => check(&Workspace::load()?),
        [argument] if argument == "-h" || argument == "--help" => {
            println!("{HELP}");
            Ok(())
        }
        [other, ..] => Err(Failure::usage(format!("`{other}` is not known here"), HELP)),
    }
}

/// Fails if the page is not what the last run of the tests makes of it.
fn check(workspace: &Workspace) -> Result<(), Failure> {
    if made(workspace)? == workspace.read(PAGE)? {
        eprintln!("== {PAGE}: up to date");
        return Ok(());
    }
    Err(Failure::new(format!("{PAGE} is out of date: run `cargo xtask docs` and commit it")))
}

fn made(workspace: &Workspace) -> Result<String, Failure> {
    let cases = Cases::parse(&workspace.read(cases::PLACE)?)?;
    let passed = junit::read(&junit::place(workspace.target()))?;
    page::page(&cases, &all_claims(workspace)?, &passed)
        .map_err(|wrong| Failure::new(format!("{PAGE} cannot be made:\n  {}", wrong.join("\n  "))))
}

/// Every claim in the workspace. Our own folder speaks of claims in its tests.
fn all_claims(workspace: &Workspace) -> Result<Vec<Claim>, Failure> {
    let mut all = Vec::new();
    for file in workspace.files()? {
        if file.path.ends_with(".rs") && !file.path.starts_with("xtask/src/docs/") {
            all.extend(claims::of(&file)?);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_of_this_workspace_names_cases_of_the_list() {
        let workspace = Workspace::load().unwrap();
        let cases = Cases::parse(&workspace.read(cases::PLACE).unwrap()).unwrap();
        let claims = all_claims(&workspace).unwrap();
        assert!(claims.len() > 100, "{}", claims.len());
        for claim in claims {
            for case in &claim.cases {
                assert!(cases.sentences.contains_key(case), "{claim:?}");
            }
        }
    }
}
