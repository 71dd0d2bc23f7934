//! Packages of other people, unpacked once into a folder that names their version.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use surefoot_test_servers::Folder;

use crate::failure::Failure;

/// The folder of a package, made by `fill` in an empty one if it is not there yet. It appears all at once, so two tasks
/// may do this at the same time.
pub(crate) fn once(
    place: &Path,
    name: &str,
    fill: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<PathBuf, Failure> {
    let home = place.join(name);
    if home.is_dir() {
        return Ok(home);
    }
    let draft = Folder::new(place, "fetch").map_err(|error| Failure::new(error.to_string()))?;
    let unpacked = draft.path().join("unpacked");
    fs::create_dir(&unpacked).map_err(|error| failed("make the folder", &unpacked, &error))?;
    fill(&unpacked)?;
    open(&unpacked)?;
    match fs::rename(&unpacked, &home) {
        Err(_) if home.is_dir() => Ok(home),
        Ok(()) => Ok(home),
        Err(error) => Err(failed("make the folder", &home, &error)),
    }
}

/// Lets everybody read and run everything: archives lose that bit, and servers run under another account.
fn open(path: &Path) -> Result<(), Failure> {
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(path, mode).map_err(|error| failed("open", path, &error))?;
    if path.is_dir() {
        for entry in entries(path)? {
            open(&entry)?;
        }
    }
    Ok(())
}

/// The file of this name in a folder, however deep.
pub(super) fn find(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    let found = search(folder, name)?;
    found.ok_or_else(|| Failure::new(format!("{} holds no `{name}`", folder.display())))
}

fn search(folder: &Path, name: &str) -> Result<Option<PathBuf>, Failure> {
    for path in entries(folder)? {
        let found = if path.is_dir() {
            search(&path, name)?
        } else {
            (path.file_name() == Some(name.as_ref())).then_some(path)
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// What is in a folder, links aside.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let read = |error: io::Error| failed("read", folder, &error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(read)? {
        let entry = entry.map_err(read)?;
        if !entry.file_type().map_err(read)?.is_symlink() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

pub(crate) fn failed(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_unpacked_once_and_everybody_may_run_it() {
        let place = tempfile::tempdir().unwrap();
        let home = once(place.path(), "server-1", |folder| {
            fs::create_dir(folder.join("bin")).unwrap();
            fs::write(folder.join("bin/server"), "").unwrap();
            Ok(())
        });
        let home = home.unwrap();
        let program = find(&home, "server").unwrap();
        assert_eq!(program, place.path().join("server-1/bin/server"));
        assert_eq!(fs::metadata(&program).unwrap().permissions().mode() & 0o777, 0o755);
        let again = once(place.path(), "server-1", |_| Err(Failure::new("asked again")));
        assert_eq!(again, Ok(home));
    }

    #[test]
    fn half_a_package_is_none() {
        let place = tempfile::tempdir().unwrap();
        let fill = |folder: &Path| {
            fs::write(folder.join("half"), "").unwrap();
            Err(Failure::new("no network"))
        };
        assert_eq!(once(place.path(), "server-1", fill), Err(Failure::new("no network")));
        assert!(!place.path().join("server-1").exists());
        assert_eq!(fs::read_dir(place.path().join("run")).unwrap().count(), 0);
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let place = tempfile::tempdir().unwrap();
        let failure = find(place.path(), "server").unwrap_err().to_string();
        assert!(failure.ends_with("holds no `server`"), "{failure}");
    }
}
