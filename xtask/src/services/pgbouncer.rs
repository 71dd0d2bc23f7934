//! PgBouncer: the one that is installed, or else Debian's, unpacked and not installed, since an installed one is started.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{debian, fetch};
use crate::failure::Failure;
use crate::process;

const NAME: &str = "pgbouncer";
/// The package, and the libraries that a machine may lack.
const PACKAGES: [&str; 3] = [NAME, "libevent-2.1-7", "libc-ares2"];
/// Installed where only administrators look.
const FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];
/// Runs the program with the libraries beside it.
const START: &str = r#"#!/bin/sh
home=$(dirname "$0")
for libraries in "$home"/usr/lib/*-linux-gnu; do
    LD_LIBRARY_PATH="$libraries:$LD_LIBRARY_PATH"
done
export LD_LIBRARY_PATH
exec "$home/usr/sbin/pgbouncer" "$@"
"#;

/// The program.
pub(super) fn pgbouncer(place: &Path) -> Result<PathBuf, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FOLDERS.map(PathBuf::from));
    if let Some(found) = folders.map(|folder| folder.join(NAME)).find(|program| program.is_file()) {
        return Ok(found);
    }
    let home = fetch::once(place, "pgbouncer-debian", unpack)?;
    Ok(home.join("start"))
}

fn unpack(folder: &Path) -> Result<(), Failure> {
    debian::needs_nobodys_word(|| {
        "no pgbouncer is on the search path; install it by the packages of your system".to_owned()
    })?;
    let download = || {
        let mut command = Command::new("apt-get");
        command.args(["-qq", "download"]).args(PACKAGES).current_dir(folder);
        process::run("downloading PgBouncer", &mut command)
    };
    if download().is_err() {
        debian::update()?;
        download()?;
    }
    let packages = fs::read_dir(folder).map_err(|error| fetch::failed("read", folder, &error))?;
    for package in packages {
        let package = package.map_err(|error| fetch::failed("read", folder, &error))?.path();
        let mut command = Command::new("dpkg-deb");
        command.arg("-x").arg(&package).arg(folder);
        process::run("unpacking PgBouncer", &mut command)?;
    }
    let start = folder.join("start");
    fs::write(&start, START).map_err(|error| fetch::failed("write", &start, &error))
}
