//! The cargo tools that the tasks need, pinned; installed under `target/tools` where they are lacking.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::process;

/// A cargo subcommand: crate and program have its name with `cargo-` in front.
pub(crate) struct Tool {
    name: &'static str,
    version: Version,
    /// Whether a newer one found on the path will do as well.
    newer_too: bool,
    /// Further arguments for `cargo install`.
    install: &'static [&'static str],
}

pub(crate) const NEXTEST: Tool = Tool {
    name: "nextest",
    version: Version(0, 9, 143),
    newer_too: true,
    install: &["--no-default-features", "--features", "default-no-update"],
};

pub(crate) const DENY: Tool =
    Tool { name: "deny", version: Version(0, 20, 2), newer_too: true, install: &[] };

/// Exactly this version: another one makes other mutants, and `docs/mutants.md` names them.
pub(crate) const MUTANTS: Tool =
    Tool { name: "mutants", version: Version(27, 1, 0), newer_too: false, install: &[] };

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32, u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

impl Version {
    /// The first word of `NAME --version` that is a version.
    fn said(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(|word| {
            let mut numbers = word.split('.').map(|number| number.parse().ok());
            let version = Self(numbers.next()??, numbers.next()??, numbers.next()??);
            numbers.next().is_none().then_some(version)
        })
    }
}

/// Where the tools are kept. What tests need at run time (servers) goes to `target/services` beside it.
fn tools(target: &Path) -> PathBuf {
    target.join("tools")
}

/// The search path with our own tools first, for tools that call each other.
pub(crate) fn search_path(target: &Path) -> Result<std::ffi::OsString, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = std::iter::once(tools(target).join("bin"));
    std::env::join_paths(own.chain(std::env::split_paths(&path)))
        .map_err(|error| Failure::new(format!("PATH cannot be extended: {error}")))
}

impl Tool {
    /// The program, installed first if this machine lacks it.
    pub(crate) fn program(&self, root: &Path, target: &Path) -> Result<PathBuf, Failure> {
        let path = search_path(target)?;
        if let Some(found) = self.find(std::env::split_paths(&path)) {
            return Ok(found);
        }
        eprintln!(
            "== cargo-{} {} is not on this machine and goes to target/tools; this takes minutes, once",
            self.name, self.version
        );
        self.install(root, target)?;
        self.find(std::iter::once(tools(target).join("bin"))).ok_or_else(|| {
            let Self { name, version, .. } = self;
            Failure::new(format!("cargo-{name} {version} was installed but does not answer"))
        })
    }

    fn find(&self, folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
        folders
            .map(|folder| {
                folder.join(format!("cargo-{}{}", self.name, std::env::consts::EXE_SUFFIX))
            })
            .filter(|program| program.is_file())
            .find(|program| {
                process::capture(Command::new(program).args([self.name, "--version"]))
                    .is_ok_and(|said| Version::said(&said).is_some_and(|found| self.takes(found)))
            })
    }

    fn takes(&self, found: Version) -> bool {
        found == self.version || (self.newer_too && found > self.version)
    }

    /// Built without optimisation or debug information: these tools wait for compilers most of the time, and
    /// building them is most of what a new machine has to do.
    fn install(&self, root: &Path, target: &Path) -> Result<(), Failure> {
        let build = tools(target).join("build");
        let mut install = process::cargo();
        install
            .current_dir(root)
            .args([
                "install",
                &format!("cargo-{}", self.name),
                "--version",
                &format!("={}", self.version),
            ])
            .args(["--locked", "--debug", "--force"])
            .arg("--root")
            .arg(tools(target))
            .arg("--target-dir")
            .arg(&build)
            .args(self.install)
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_INCREMENTAL", "0")
            .env_remove("RUSTFLAGS");
        process::run(&format!("installing cargo-{}", self.name), &mut install)?;
        fs::remove_dir_all(&build).map_err(|error| {
            Failure::new(format!("{} cannot be removed: {error}", build.display()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_out_of_what_a_tool_says() {
        let said = "cargo-nextest 0.9.143 (60fa45f63 2026-08-04)\nrelease: 0.9.143\n";
        assert_eq!(Version::said(said), Some(Version(0, 9, 143)));
        assert_eq!(Version::said("cargo-deny 0.20"), None);
        assert_eq!(Version::said("no version in here"), None);
    }

    #[test]
    fn an_older_tool_never_will_do_and_a_newer_one_only_where_that_is_said() {
        assert!(NEXTEST.takes(Version(0, 9, 143)));
        assert!(NEXTEST.takes(Version(0, 10, 0)));
        assert!(!NEXTEST.takes(Version(0, 9, 99)));
        assert!(MUTANTS.takes(Version(27, 1, 0)));
        assert!(!MUTANTS.takes(Version(27, 1, 1)));
    }

    #[test]
    fn a_tool_is_found_only_where_it_is() {
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(NEXTEST.find(std::iter::once(empty.path().to_owned())), None);
    }
}
