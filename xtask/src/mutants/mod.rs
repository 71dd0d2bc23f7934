//! `cargo xtask mutants`: changes the core in small ways and sees whether its tests notice.

mod listed;
mod outcomes;
mod patches;

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::process;
use crate::tools;
use crate::workspace::Workspace;
use outcomes::Outcomes;

const HELP: &str = "\
Mutates the deciding part of the core, one change at a time, and runs the core's tests against each.
At least 95 % must be caught, and docs/mutants.md must list exactly those that are not, with the reason.

Usage: cargo xtask mutants [--file GLOB]... [--shard K/N]
       cargo xtask mutants --patches

  --file GLOB    only files that match, instead of the deciding part
  --shard K/N    only part K (from 0) of N; says what to add to the list, but not what to take off
  --patches      instead, applies each patch of xtask/patches to a copy: the crash matrix must fail with every one
  -h, --help     this text";

const PACKAGE: &str = "surefoot-kernel-core";

/// The deciding part of the core: what a run does next, and what a fact does to it.
const MUTATED: &[&str] = &[
    "crates/kernel-core/src/{run,decide,apply,fold,interpreter}.rs",
    "crates/kernel-core/src/{run,decide,apply,fold,interpreter}/**/*.rs",
];

const CAUGHT_PERCENT_MIN: usize = 95;

/// What of the core a run looks at; it decides what the run can say about the list.
#[derive(Debug, PartialEq, Eq)]
enum Extent {
    Whole,
    Files(Vec<String>),
    /// With the globs it is a part of; none stands for the whole.
    Shard(String, Vec<String>),
}

/// Runs the pass, judges its result and fails if it is not as it should be.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    if arguments == ["--patches"] {
        return patches::run();
    }
    let Some(extent) = extent(arguments)? else {
        println!("{HELP}");
        return Ok(());
    };
    let workspace = Workspace::load()?;
    let outcomes = mutate(&workspace, &extent)?;
    let listed = listed::parse(&workspace.read(listed::PLACE)?)?;
    let differences = listed::compare(&listed, &outcomes, &extent);
    for line in &differences {
        println!("{line}");
    }
    println!("{outcomes}");
    judge(&outcomes, differences.len())
}

fn extent(arguments: &[String]) -> Result<Option<Extent>, Failure> {
    let mut globs = Vec::new();
    let mut shard = None;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || {
            let missing = || Failure::usage(format!("`{argument}` needs a value"), HELP);
            arguments.next().cloned().ok_or_else(missing)
        };
        match argument.as_str() {
            "-h" | "--help" => return Ok(None),
            "--file" => globs.push(value()?),
            "--shard" => shard = Some(value()?),
            other => return Err(Failure::usage(format!("`{other}` is not known here"), HELP)),
        }
    }
    Ok(Some(match shard {
        Some(shard) => Extent::Shard(shard, globs),
        None if globs.is_empty() => Extent::Whole,
        None => Extent::Files(globs),
    }))
}

fn mutate(workspace: &Workspace, extent: &Extent) -> Result<Outcomes, Failure> {
    let (root, target) = (&workspace.root, workspace.target());
    let mutants = tools::MUTANTS.program(root, target)?;
    tools::NEXTEST.program(root, target)?;
    let output = target.join("mutants");
    if output.exists() {
        fs::remove_dir_all(&output).map_err(|error| {
            Failure::new(format!("{} cannot be removed: {error}", output.display()))
        })?;
    }
    fs::create_dir_all(&output)
        .map_err(|error| Failure::new(format!("{} cannot be made: {error}", output.display())))?;

    let mut command = command(&mutants, root, &output, extent);
    // It starts `cargo nextest`, which must find ours.
    command.env("PATH", tools::search_path(target)?);
    let report = output.join("mutants.out/outcomes.json");
    // 2: some were missed. 3: some ran out of time. Both are for us to judge.
    match process::exit_code("mutants", &mut command)? {
        // Without anything to change, there is no report.
        0 if !report.exists() => Ok(Outcomes::default()),
        0 | 2 | 3 => outcomes::read(&report),
        4 => Err(Failure::new("the tests of the core fail without any change; mend that first")),
        code => Err(Failure::new(format!("cargo-mutants failed (exit code {code}); see above"))),
    }
}

fn command(program: &Path, root: &Path, output: &Path, extent: &Extent) -> Command {
    let (globs, shard) = match extent {
        Extent::Whole => (&[] as &[String], None),
        Extent::Files(globs) => (globs.as_slice(), None),
        Extent::Shard(shard, globs) => (globs.as_slice(), Some(shard)),
    };
    let mut command = Command::new(program);
    command
        .current_dir(root)
        .args(["mutants", "--no-config", "--package", PACKAGE, "--test-tool", "nextest"])
        // In a copy: the tree stays as it is while somebody works in it.
        .args(["--jobs", "2", "--minimum-test-timeout", "30", "--build-timeout", "300"])
        .arg("--output")
        .arg(output);
    if globs.is_empty() {
        command.args(MUTATED.iter().flat_map(|glob| ["--file", glob]));
    }
    command.args(globs.iter().flat_map(|glob| ["--file", glob]));
    command.args(shard.into_iter().flat_map(|shard| ["--shard", shard]));
    command
}

fn judge(outcomes: &Outcomes, differences: usize) -> Result<(), Failure> {
    let (caught, missed) = (outcomes.caught, outcomes.missed.len());
    let judged = caught + missed;
    if judged == 0 {
        return Err(Failure::new("nothing was mutated, so nothing is shown; do the files exist?"));
    }
    if caught * 100 < judged * CAUGHT_PERCENT_MIN {
        return Err(Failure::new(format!(
            "{caught} of {judged} mutants were caught, which is less than {CAUGHT_PERCENT_MIN} %: \
             write tests that notice the changes above"
        )));
    }
    if differences > 0 {
        return Err(Failure::new(format!("{} and the result differ; see above", listed::PLACE)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::outcomes::Mutant;
    use super::*;

    fn given(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn outcomes(caught: usize, missed: usize) -> Outcomes {
        let missed = vec![Mutant::new("f.rs", Some("f"), "replace f with ()"); missed];
        Outcomes { caught, missed, ..Outcomes::default() }
    }

    #[test]
    fn what_is_asked_for_is_what_is_mutated() {
        assert_eq!(extent(&[]), Ok(Some(Extent::Whole)));
        assert_eq!(extent(&given("--help")), Ok(None));
        let asked = extent(&given("--file a.rs --shard 0/4 --file b.rs")).unwrap().unwrap();
        assert_eq!(asked, Extent::Shard("0/4".to_owned(), given("a.rs b.rs")));
        let command = command(Path::new("m"), Path::new("."), Path::new("out"), &asked);
        let words: Vec<&str> = command.get_args().map(|word| word.to_str().unwrap()).collect();
        assert!(words.ends_with(&["out", "--file", "a.rs", "--file", "b.rs", "--shard", "0/4"]));
        assert!(extent(&given("--shard")).is_err());
        assert!(extent(&given("--fast")).is_err());
    }

    #[test]
    fn the_share_of_caught_mutants_is_judged_at_its_limit() {
        assert_eq!(judge(&outcomes(95, 5), 0), Ok(()));
        assert!(judge(&outcomes(94, 5), 0).unwrap_err().to_string().starts_with("94 of 99 "));
    }

    #[test]
    fn a_pass_that_mutated_nothing_or_differs_from_the_list_fails() {
        assert!(judge(&outcomes(0, 0), 0).is_err());
        assert!(judge(&outcomes(100, 0), 1).is_err());
    }
}
