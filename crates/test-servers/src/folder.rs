//! Folders of servers: under one root, named after the process that made them, gone when they are not needed.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::Pid;

use crate::account::Account;
use crate::given::SERVICES_FOLDER;
use crate::{Error, programs};

/// The folders of what runs now, within the root.
const RUNNING: &str = "run";

/// A folder that is removed with this value.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// A new folder under `root`, for this process only.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be made.
    pub fn new(root: &Path, name: &str) -> Result<Self, Error> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let nth = MADE.fetch_add(1, Ordering::Relaxed);
        let path = root.join(RUNNING).join(format!("{name}-{}-{nth}", std::process::id()));
        fs::create_dir_all(&path).map_err(Error::io("make the folder", &path))?;
        Ok(Self { path })
    }

    /// A new folder that belongs to the account of servers, where [`SERVICES_FOLDER`] says if nobody else does.
    pub(crate) fn of_server(
        root: Option<&Path>,
        name: &str,
        account: Account,
    ) -> Result<Self, Error> {
        let root = match (root, programs(SERVICES_FOLDER)) {
            (Some(root), _) => root.to_owned(),
            (None, Ok(root)) => root,
            (None, Err(_)) => services_folder(&[])?,
        };
        let folder = Self::new(&root, name)?;
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(&folder.path, private)
            .map_err(Error::io("close the folder", &folder.path))?;
        account.own(&folder.path)?;
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed now is removed by a later sweep.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The folder for all that has to do with servers: the first of `wanted`, or else one in the system's folder for
/// temporary files, that the account of servers can reach. It is there afterwards.
///
/// # Errors
/// [`Error::NoFolder`] if it can reach none, [`Error::Io`] if one cannot be made.
pub fn services_folder(wanted: &[PathBuf]) -> Result<PathBuf, Error> {
    let user = rustix::process::geteuid();
    let temporary = std::env::temp_dir().join(format!("surefoot-services-{}", user.as_raw()));
    let account = Account::of_servers()?;
    let mut tried = wanted.to_vec();
    tried.push(temporary);
    for path in &tried {
        make(path)?;
        let mine = fs::metadata(path).is_ok_and(|found| found.uid() == user.as_raw());
        if mine && (account == Account::Own || everybody_reaches(path)) {
            return Ok(path.clone());
        }
    }
    Err(Error::NoFolder { tried, variable: SERVICES_FOLDER })
}

fn make(path: &Path) -> Result<(), Error> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o755).create(path);
    made.map_err(Error::io("make the folder", path))
}

/// Whether everybody may search the folder and all that it is in.
fn everybody_reaches(path: &Path) -> bool {
    let open = |folder: &Path| {
        fs::metadata(folder).is_ok_and(|found| found.permissions().mode() & 0o001 != 0)
    };
    path.ancestors().filter(|folder| !folder.as_os_str().is_empty()).all(open)
}

/// Removes what processes left behind under `root` that were killed before they could.
///
/// # Errors
/// [`Error::Io`] if the folder cannot be read.
pub fn sweep(root: &Path) -> Result<(), Error> {
    let running = root.join(RUNNING);
    let entries = match fs::read_dir(&running) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("read", &running)(error)),
    };
    for entry in entries {
        let path = entry.map_err(Error::io("read", &running))?.path();
        let maker = path.file_name().and_then(|name| maker(name.to_str()?));
        if maker.is_some_and(|pid| rustix::process::test_kill_process(pid).is_err()) {
            // Two sweeps may meet here; what one removed is gone for both.
            let _ = fs::remove_dir_all(&path);
        }
    }
    Ok(())
}

/// The process that made a folder of this name.
fn maker(name: &str) -> Option<Pid> {
    let mut fields = name.rsplit('-');
    fields.next()?;
    Pid::from_raw(fields.next()?.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_names_its_maker_and_goes_with_its_value() {
        let root = services_folder(&[]).unwrap();
        let folder = Folder::new(&root, "two-words").unwrap();
        let path = folder.path().to_owned();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(maker(name), Pid::from_raw(std::process::id().try_into().unwrap()));
        assert!(path.is_dir());
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn a_sweep_removes_what_the_dead_left_and_nothing_else() {
        let own = Folder::new(&services_folder(&[]).unwrap(), "sweep").unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let dead = own.path().join(format!("{RUNNING}/postgres-{}-0", child.id()));
        let odd = own.path().join(RUNNING).join("odd");
        fs::create_dir_all(dead.join("data")).unwrap();
        fs::create_dir_all(&odd).unwrap();
        let alive = Folder::new(own.path(), "alive").unwrap();

        sweep(own.path()).unwrap();
        assert!(!dead.exists());
        assert!(odd.is_dir());
        assert!(alive.path().is_dir());
        sweep(&own.path().join("nothing")).unwrap();
    }

    #[test]
    fn a_folder_that_is_closed_to_others_is_passed_over() {
        let own = Folder::new(&services_folder(&[]).unwrap(), "closed").unwrap();
        let closed = own.path().join("closed/services");
        fs::create_dir_all(&closed).unwrap();
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(own.path().join("closed"), private).unwrap();
        assert!(!everybody_reaches(&closed));
        assert!(everybody_reaches(&std::env::temp_dir()));

        let chosen = services_folder(std::slice::from_ref(&closed)).unwrap();
        let as_root = Account::of_servers().unwrap() != Account::Own;
        assert_eq!(chosen == closed, !as_root);
    }
}
