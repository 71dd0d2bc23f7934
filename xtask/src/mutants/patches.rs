//! Large changes that the crash matrix has to notice: each a patch in xtask/patches, each taking one promise away.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::process;
use crate::tools;
use crate::workspace::Workspace;

const PATCHES: &str = "xtask/patches";
/// What has to fail: the matrix on the store in memory.
const MATRIX: &str = "test(every_crash_point_keeps_the_contract_in_memory)";

/// Applies each patch to a copy of the workspace and runs the matrix there. Unpatched it must pass.
pub(super) fn run() -> Result<(), Failure> {
    let workspace = Workspace::load()?;
    let copy = workspace.target().join("patches");
    copy_to(&workspace, &copy)?;
    let matrix = Matrix { workspace: &workspace, copy: &copy };
    if matrix.failures("no patch")? != 0 {
        return Err(Failure::new("the matrix fails without any patch; mend that first"));
    }
    let mut missed = Vec::new();
    for patch in patches(&workspace.root)? {
        let name = patch.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        apply(&copy, &patch, &[])?;
        let failures = matrix.failures(&name);
        apply(&copy, &patch, &["--reverse"])?;
        match failures? {
            0 => missed.push(name),
            failures => println!("{name}: noticed, by {failures} failures"),
        }
    }
    if missed.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("the crash matrix does not notice: {}", missed.join(", "))))
}

struct Matrix<'a> {
    workspace: &'a Workspace,
    copy: &'a Path,
}

impl Matrix<'_> {
    /// How many cases break the contract. That the matrix has other points than it should have does not count.
    fn failures(&self, patch: &str) -> Result<u64, Failure> {
        let (root, target) = (&self.workspace.root, self.workspace.target());
        let mut command = Command::new(tools::NEXTEST.program(root, target)?);
        // What the workspace depends on is built already: the copy builds our own crates only.
        command.current_dir(self.copy).env("CARGO_TARGET_DIR", target);
        command.args(["nextest", "run", "--locked", "--package", "surefoot-testkit"]);
        command.args(["--no-capture", "--filterset", MATRIX]);
        eprintln!("== the matrix with {patch}");
        let output = command.stdin(Stdio::null()).output();
        let output = output.map_err(|error| {
            Failure::new(format!("cargo-nextest could not be started: {error}"))
        })?;
        let said = String::from_utf8_lossy(&output.stdout);
        failures_in(&said).ok_or_else(|| {
            let why = String::from_utf8_lossy(&output.stderr);
            Failure::new(format!("with {patch} the matrix did not come to an end:\n{why}"))
        })
    }
}

/// The number in the report's first line: `37 points, 259 cases, 3 failures`.
fn failures_in(said: &str) -> Option<u64> {
    let line =
        said.lines().find(|line| line.contains(" points, ") && line.ends_with(" failures"))?;
    line.rsplit(' ').nth(1)?.parse().ok()
}

fn patches(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error| Failure::new(format!("{PATCHES} cannot be read: {error}"));
    let entries = fs::read_dir(root.join(PATCHES)).map_err(unreadable)?;
    let mut patches = Vec::new();
    for entry in entries {
        patches.push(entry.map_err(unreadable)?.path());
    }
    patches.sort();
    if patches.is_empty() {
        return Err(Failure::new(format!("{PATCHES} is empty, so nothing would be shown")));
    }
    Ok(patches)
}

/// The files of the workspace as they are now. A file that did not change is left alone, so that it is not built anew.
fn copy_to(workspace: &Workspace, copy: &Path) -> Result<(), Failure> {
    for file in workspace.files()? {
        let place = copy.join(&file.path);
        if fs::read_to_string(&place).is_ok_and(|text| text == file.text) {
            continue;
        }
        let folder = place.parent().unwrap_or(copy);
        fs::create_dir_all(folder).and_then(|()| fs::write(&place, file.text)).map_err(
            |error| Failure::new(format!("{} is not written: {error}", place.display())),
        )?;
    }
    Ok(())
}

fn apply(copy: &Path, patch: &Path, how: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new("git");
    // The copy is no repository, and must not be taken for a folder of ours.
    command.current_dir(copy).env("GIT_CEILING_DIRECTORIES", copy.parent().unwrap_or(copy));
    command.arg("apply").args(how).arg(patch);
    process::capture(&mut command).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_tells_how_many_cases_failed() {
        let said = "running 1 test\n37 points, 259 cases, 12 failures\ncall 3: ..\n";
        assert_eq!(failures_in(said), Some(12));
        assert_eq!(failures_in("running 1 test\nit panicked"), None);
    }

    #[test]
    fn each_patch_fits_the_code_as_it_is() {
        let workspace = Workspace::load().unwrap();
        let patches = patches(&workspace.root).unwrap();
        assert_eq!(patches.len(), 3);
        for patch in patches {
            let mut command = Command::new("git");
            command.current_dir(&workspace.root).args(["apply", "--check"]).arg(&patch);
            process::capture(&mut command).unwrap();
        }
    }
}
