//! Chromium, for the tests of the console: the one that is installed, or else Debian's.

use std::path::PathBuf;
use std::process::Command;

use super::debian;
use crate::failure::Failure;
use crate::process;

/// What it is called on various systems.
const NAMES: [&str; 6] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];
const PACKAGE: &str = "chromium";

/// The program.
pub(super) fn browser() -> Result<PathBuf, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if let Some(found) = find(&folders) {
        return Ok(found);
    }
    install()?;
    let failure = || Failure::new(format!("the package `{PACKAGE}` holds no {}", NAMES[0]));
    find(&folders).ok_or_else(failure)
}

/// A name with a folder in it stands for itself.
fn find(folders: &[PathBuf]) -> Option<PathBuf> {
    let of = |name: &str| -> Option<PathBuf> {
        if name.contains('/') {
            return Some(PathBuf::from(name)).filter(|program| program.is_file());
        }
        folders.iter().map(|folder| folder.join(name)).find(|program| program.is_file())
    };
    NAMES.into_iter().find_map(of)
}

/// Where the system's packages can be installed without asking anybody.
fn install() -> Result<(), Failure> {
    debian::needs_nobodys_word(|| {
        let name = NAMES[0];
        format!(
            "no {name} is on the search path; install Chromium, or Chrome, by the packages of your system"
        )
    })?;
    eprintln!("== installing the package {PACKAGE} with apt-get");
    debian::update()?;
    let mut install = Command::new("apt-get");
    install
        .args(["install", "-y", "-qq", "--no-install-recommends", PACKAGE])
        .env("DEBIAN_FRONTEND", "noninteractive");
    process::run("installing Chromium", &mut install)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_installed_one_is_taken() {
        let place = tempfile::tempdir().unwrap();
        let folders = [place.path().join("none"), place.path().to_owned()];
        let is_there =
            |found: Option<PathBuf>| found.is_some_and(|it| it.starts_with(place.path()));
        assert!(!is_there(find(&folders)));
        fs::write(place.path().join("google-chrome"), "").unwrap();
        assert_eq!(find(&folders), Some(place.path().join("google-chrome")));
        fs::write(place.path().join("chromium"), "").unwrap();
        assert_eq!(find(&folders), Some(place.path().join("chromium")));
    }
}
