//! The folder of one show.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use surefoot_inventory::provider::{CHARGES_FILE, REQUESTS_FILE};

use super::DemoError;

/// Where shows go that nobody gave a folder.
const SHOWS: &str = "surefoot-demo";
const STORE_FILE: &str = "inventory.db";

/// The folder of one show, and what is in it.
#[derive(Debug, Clone)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// A folder for a new show: the given one, or the next free one.
    pub(super) fn create(chosen: Option<&Path>) -> Result<Self, DemoError> {
        let made = chosen.map_or_else(next_free, made_empty);
        made.and_then(Self::absolute).map_err(|error| {
            let name = chosen.unwrap_or_else(|| Path::new(SHOWS)).display();
            DemoError::io(format!("the folder {name} cannot be used"), error)
        })
    }

    /// The folder of a show that was played before.
    pub(super) fn open(folder: &Path) -> Result<Self, DemoError> {
        let folder = Self::absolute(folder.to_owned()).ok();
        folder.filter(|folder| folder.store().is_file()).ok_or_else(|| {
            DemoError::Refused(
                "there is no show to finish in this folder: give the one that `demo` named"
                    .to_owned(),
            )
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn store(&self) -> PathBuf {
        self.0.join(STORE_FILE)
    }

    pub(super) fn charges(&self) -> PathBuf {
        self.0.join(CHARGES_FILE)
    }

    pub(super) fn requests(&self) -> PathBuf {
        self.0.join(REQUESTS_FILE)
    }

    /// What the module of the show offers, for `check` and `publish`.
    pub(super) fn manifest(&self) -> PathBuf {
        self.0.join("manifest.json")
    }

    /// The source of a workflow of the show.
    pub(super) fn source(&self, workflow: &str) -> PathBuf {
        self.0.join(format!("{workflow}.yaml"))
    }

    pub(super) fn log_of(&self, process: &str) -> PathBuf {
        self.0.join(format!("{process}.log"))
    }

    /// The processes of the show may stand in other folders.
    fn absolute(folder: PathBuf) -> io::Result<Self> {
        folder.canonicalize().map(Self)
    }
}

/// What lies in a folder already would be mixed up with the show: its charges would be counted.
fn made_empty(folder: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    if fs::read_dir(folder)?.next().is_some() {
        let message = "it is not empty; name a new one, or one that is";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    Ok(folder.to_owned())
}

fn next_free() -> io::Result<PathBuf> {
    fs::create_dir_all(SHOWS)?;
    for number in 1_u32.. {
        let folder = Path::new(SHOWS).join(number.to_string());
        // Creating it is also the question whether it is free: two shows that begin together get two folders.
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
    Err(io::Error::other("there are too many shows"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_something_in_it_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let store = Folder::create(Some(folder.path())).unwrap().store();
        fs::write(&store, "old").unwrap();
        let refused = Folder::create(Some(folder.path())).unwrap_err();
        assert!(refused.to_string().contains("cannot be used"), "{refused}");
        assert_eq!(fs::read_to_string(store).unwrap(), "old");
    }

    #[test]
    fn a_folder_without_a_show_cannot_be_finished() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(Folder::open(folder.path()), Err(DemoError::Refused(_))));
        assert!(matches!(Folder::open(&folder.path().join("none")), Err(DemoError::Refused(_))));
    }
}
