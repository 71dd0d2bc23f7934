//! The folder of one show.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use surefoot_inventory::provider::{CHARGES_FILE, REQUESTS_FILE};

use super::DemoError;
use crate::store::{is_embedded, without_password};

/// Where shows go that nobody gave a folder.
const SHOWS: &str = "surefoot-demo";
const STORE_FILE: &str = "inventory.db";

/// The folder of one show, and what is in it.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    path: PathBuf,
    /// The store, if it is elsewhere.
    server: Option<String>,
    /// Where its processes send their traces, if that was named.
    collector: Option<String>,
}

impl Folder {
    /// A folder for a new show: the given one, or the next free one. The show's store is in it, unless a server is named.
    pub(super) fn create(chosen: Option<&Path>, store: &str) -> Result<Self, DemoError> {
        let made = chosen.map_or_else(next_free, made_empty);
        made.and_then(|folder| Self::absolute(&folder, store)).map_err(|error| {
            let name = chosen.unwrap_or_else(|| Path::new(SHOWS)).display();
            DemoError::io(format!("the folder {name} cannot be used"), error)
        })
    }

    /// The folder of a show that was played before.
    pub(super) fn open(folder: &Path, store: &str) -> Result<Self, DemoError> {
        let folder = Self::absolute(folder, store).ok();
        let is_show = |it: &Self| {
            it.charges().is_file() && (it.server.is_some() || it.path.join(STORE_FILE).is_file())
        };
        folder.filter(is_show).ok_or_else(|| {
            DemoError::Refused(
                "there is no show to finish in this folder: give the one that `demo` named, and its `--store` if it \
                 named one"
                    .to_owned(),
            )
        })
    }

    /// Whose processes send their traces there.
    pub(super) fn traced(self, collector: Option<String>) -> Self {
        Self { collector, ..self }
    }

    /// Where they do.
    pub(super) fn collector(&self) -> Option<&str> {
        self.collector.as_deref()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The store, as it is opened.
    pub(super) fn store_url(&self) -> String {
        self.server.clone().unwrap_or_else(|| self.store_argument())
    }

    /// The store, as `--store` takes it; a password is not shown.
    pub(super) fn store_argument(&self) -> String {
        let file = || format!("sqlite:{}", self.path.join(STORE_FILE).display());
        self.server.as_deref().map_or_else(file, without_password)
    }

    /// The store, as a program reads it in the report: a file, or a URL.
    pub(super) fn store(&self) -> String {
        let argument = self.store_argument();
        argument.strip_prefix("sqlite:").map(ToOwned::to_owned).unwrap_or(argument)
    }

    pub(super) const fn is_on_server(&self) -> bool {
        self.server.is_some()
    }

    pub(super) fn charges(&self) -> PathBuf {
        self.path.join(CHARGES_FILE)
    }

    pub(super) fn requests(&self) -> PathBuf {
        self.path.join(REQUESTS_FILE)
    }

    /// What the module of the show offers, for `check` and `publish`.
    pub(super) fn manifest(&self) -> PathBuf {
        self.path.join("manifest.json")
    }

    /// The source of a workflow of the show.
    pub(super) fn source(&self, workflow: &str) -> PathBuf {
        self.path.join(format!("{workflow}.yaml"))
    }

    pub(super) fn log_of(&self, process: &str) -> PathBuf {
        self.path.join(format!("{process}.log"))
    }

    /// The processes of the show may stand in other folders.
    fn absolute(folder: &Path, store: &str) -> io::Result<Self> {
        let server = (!is_embedded(store)).then(|| store.to_owned());
        Ok(Self { path: folder.canonicalize()?, server, collector: None })
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

    const EMBEDDED: &str = "sqlite:surefoot.db";
    const SERVER: &str = "postgres://shop:s3cret@db/shop";

    #[test]
    fn a_password_is_used_and_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Folder::create(Some(folder.path()), SERVER).unwrap();
        assert_eq!(folder.store_url(), SERVER);
        assert_eq!(folder.store_argument(), "postgres://shop@db/shop");
        assert_eq!(folder.store(), "postgres://shop@db/shop");
    }

    #[test]
    fn a_folder_with_something_in_it_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let store = Folder::create(Some(folder.path()), EMBEDDED).unwrap().store();
        fs::write(&store, "old").unwrap();
        let refused = Folder::create(Some(folder.path()), EMBEDDED).unwrap_err();
        assert!(refused.to_string().contains("cannot be used"), "{refused}");
        assert_eq!(fs::read_to_string(store).unwrap(), "old");
    }

    #[test]
    fn a_folder_without_a_show_cannot_be_finished() {
        let folder = tempfile::tempdir().unwrap();
        let none = folder.path().join("none");
        for (folder, store) in
            [(folder.path(), EMBEDDED), (&none, EMBEDDED), (folder.path(), SERVER)]
        {
            assert!(matches!(Folder::open(folder, store), Err(DemoError::Refused(_))));
        }
    }
}
