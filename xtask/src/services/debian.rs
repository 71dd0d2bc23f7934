//! Debian's packages.

use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::process;

/// Whether packages can be had without asking anybody; `else_say` tells what to do where they cannot.
pub(super) fn needs_nobodys_word(else_say: impl FnOnce() -> String) -> Result<(), Failure> {
    let is_root = process::capture(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if is_root && Path::new("/usr/bin/apt-get").is_file() {
        Ok(())
    } else {
        Err(Failure::new(else_say()))
    }
}

/// Reads the list of packages.
pub(super) fn update() -> Result<(), Failure> {
    let mut update = Command::new("apt-get");
    process::run("reading the list of packages", update.args(["update", "-qq"]))
}
