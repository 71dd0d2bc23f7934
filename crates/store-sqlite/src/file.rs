//! The file that was opened, and whether its path still leads to it.
//!
//! A file that was moved, replaced or deleted can be read and written by whoever has it open, and by nobody else: what
//! is acknowledged then is lost.

use std::path::{Path, PathBuf};

use surefoot_kernel_core::StoreError;

use crate::error::unavailable;

/// Where a file is, and which one it was.
#[derive(Debug)]
pub(crate) struct OpenFile {
    path: PathBuf,
    /// Absent where the system does not tell.
    opened: Option<Identity>,
}

/// Device and number of a file.
type Identity = (u64, u64);

/// What a look at a path comes to.
#[derive(PartialEq, Eq)]
enum Found {
    Nothing,
    File(Identity),
    Unknown,
}

impl OpenFile {
    /// # Errors
    /// It is gone already.
    pub(crate) fn at(path: &Path) -> Result<Self, StoreError> {
        let opened = match look(path) {
            Found::File(identity) => Some(identity),
            Found::Unknown => None,
            Found::Nothing => return Err(gone()),
        };
        Ok(Self { path: path.to_owned(), opened })
    }

    /// One question to the system, which has the answer in memory.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let Some(opened) = self.opened else { return Ok(()) };
        match look(&self.path) {
            Found::Unknown => Ok(()),
            Found::File(found) if found == opened => Ok(()),
            Found::File(_) | Found::Nothing => Err(gone()),
        }
    }
}

fn gone() -> StoreError {
    unavailable(
        "the file was moved, replaced or deleted while it was open: end every process that has it open, put the right file in \
         its place, and start them again",
    )
}

#[cfg(unix)]
fn look(path: &Path) -> Found {
    use std::io::ErrorKind;
    use std::os::unix::fs::MetadataExt as _;

    match std::fs::metadata(path) {
        Ok(found) => Found::File((found.dev(), found.ino())),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Found::Nothing
        }
        Err(_) => Found::Unknown,
    }
}

/// Files have no number that lasts.
#[cfg(not(unix))]
fn look(_: &Path) -> Found {
    Found::Unknown
}
