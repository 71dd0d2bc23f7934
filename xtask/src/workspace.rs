//! What the tasks know of this workspace: where it is, its packages, its files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{CargoOpt, Metadata, MetadataCommand, Package};

use crate::failure::Failure;
use crate::process;

/// The workspace as cargo and git see it.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) metadata: Metadata,
}

/// A text file that git tracks, or would track once it is added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    /// From the root, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Workspace {
    /// Reads the workspace that this program belongs to, with every feature of every package resolved.
    pub(crate) fn load() -> Result<Self, Failure> {
        let root = root()?;
        let metadata = MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .features(CargoOpt::AllFeatures)
            .other_options(vec!["--locked".to_owned()])
            .exec()
            .map_err(|error| Failure::new(format!("cargo cannot read the workspace: {error}")))?;
        Ok(Self { root, metadata })
    }

    /// The folder that everything built goes to.
    pub(crate) fn target(&self) -> &Path {
        self.metadata.target_directory.as_std_path()
    }

    /// A package of this workspace by its name, or by its name without the `surefoot-` in front.
    pub(crate) fn package(&self, name: &str) -> Result<&Package, Failure> {
        let full = format!("surefoot-{name}");
        let packages = self.metadata.workspace_packages();
        let found = packages.iter().find(|package| package.name == name || package.name == full);
        found.copied().ok_or_else(|| {
            let mut names: Vec<&str> =
                packages.iter().map(|package| package.name.as_str()).collect();
            names.sort_unstable();
            Failure::new(format!(
                "there is no crate `{name}` here; there are: {}",
                names.join(", ")
            ))
        })
    }

    /// The text of one file.
    pub(crate) fn read(&self, path: &str) -> Result<String, Failure> {
        fs::read_to_string(self.root.join(path))
            .map_err(|error| Failure::new(format!("{path} cannot be read: {error}")))
    }

    /// Every text file under version control, and those that are new and not ignored.
    pub(crate) fn files(&self) -> Result<Vec<File>, Failure> {
        let listed = process::capture(Command::new("git").current_dir(&self.root).args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]))?;
        let mut files = Vec::new();
        for path in listed.split_terminator('\0') {
            let place = self.root.join(path);
            // A file can be listed and gone: it was deleted, and that is not committed yet.
            if !place.is_file() {
                continue;
            }
            let bytes = fs::read(&place)
                .map_err(|error| Failure::new(format!("{path} cannot be read: {error}")))?;
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(File { path: path.to_owned(), text });
            }
        }
        Ok(files)
    }
}

/// Cargo tells a program that it runs where its package is; else we look upwards from here.
fn root() -> Result<PathBuf, Failure> {
    let start = match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => std::env::current_dir()
            .map_err(|error| Failure::new(format!("the current folder cannot be read: {error}")))?,
    };
    start
        .ancestors()
        .find(|folder| folder.join("xtask/Cargo.toml").is_file())
        .map(Path::to_owned)
        .ok_or_else(|| Failure::new("this is not the Surefoot workspace, nor a folder in it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_found_by_either_name_and_an_unknown_one_is_answered_with_the_list() {
        let workspace = Workspace::load().unwrap();
        assert_eq!(workspace.package("worker").unwrap().name, "surefoot-worker");
        assert_eq!(workspace.package("surefoot-worker").unwrap().name, "surefoot-worker");
        let failure = workspace.package("wroker").unwrap_err().to_string();
        assert!(failure.starts_with("there is no crate `wroker` here; there are: surefoot, "));
    }

    #[test]
    fn the_files_are_those_of_the_repository() {
        let files = Workspace::load().unwrap().files().unwrap();
        assert!(files.iter().any(|file| file.path == "xtask/src/workspace.rs"));
        assert!(!files.iter().any(|file| file.path.starts_with("target/")));
    }
}
