//! The folder of load programs that is given: used as a copy, since they install and write beside themselves.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;

/// Where they install, unless the variable says otherwise.
const WORK: &str = "PEERS_WORK";

/// A folder of load programs, copied.
#[derive(Debug)]
pub(super) struct Given {
    folder: PathBuf,
    work: OsString,
}

/// Whether a variable is set to `0`.
pub(super) fn is_off(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "0")
}

impl Given {
    /// Brings the copy up to date. What they install stays, so that the next time is faster.
    pub(super) fn copy(from: &Path, target: &Path) -> Result<Self, Failure> {
        let place = target.join("peers");
        let folder = place.join("given");
        copy_all(from, &folder)
            .map_err(|error| Failure::new(format!("{}: {error}", from.display())))?;
        let work = std::env::var_os(WORK).unwrap_or_else(|| place.join("work").into_os_string());
        Ok(Self { folder, work })
    }

    /// A script of the folder.
    pub(super) fn script(&self, path: &str) -> Command {
        let mut command = Command::new("bash");
        command.arg(self.folder.join(path)).env(WORK, &self.work);
        command
    }

    /// A few lines for the shell, with the folder as `$1`.
    pub(super) fn shell(&self, lines: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", lines, "bash"]).arg(&self.folder).env(WORK, &self.work);
        command
    }
}

/// Files that are the same already are left alone.
fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let there = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_all(&entry.path(), &there)?;
            continue;
        }
        let text = fs::read(entry.path())?;
        if fs::read(&there).is_ok_and(|before| before == text) {
            continue;
        }
        if there.exists() {
            fs::remove_file(&there)?;
        }
        fs::write(&there, text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_follows_what_it_is_of_and_keeps_what_else_is_there() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("a")).unwrap();
        let (ours, theirs) = (from.path().join("a/run.sh"), to.path().join("a/run.sh"));
        fs::write(&ours, "one").unwrap();
        copy_all(from.path(), to.path()).unwrap();
        fs::write(to.path().join("a/installed"), "kept").unwrap();
        fs::write(&ours, "two").unwrap();
        copy_all(from.path(), to.path()).unwrap();
        assert_eq!(fs::read_to_string(theirs).unwrap(), "two");
        assert_eq!(fs::read_to_string(to.path().join("a/installed")).unwrap(), "kept");
    }
}
