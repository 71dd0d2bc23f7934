//! `cargo xtask bench --sync`: the coordination primitives beside the bare operations of their server.

use crate::failure::Failure;
use crate::process;
use crate::services::{Service, Services};
use crate::workspace::Workspace;

/// Builds the load, starts the server, and prints what it prints.
pub(super) fn run(workspace: &Workspace, arguments: &[&String]) -> Result<(), Failure> {
    let mut cargo = process::cargo();
    cargo.current_dir(&workspace.root).args(["build", "--release", "-p", "surefoot-bench"]);
    cargo.args(["--bin", "surefoot-bench-sync"]);
    process::run("the load program", &mut cargo)?;
    let services = Services::start(&[Service::Nats], workspace.target())?;
    let program = workspace.target().join("release").join("surefoot-bench-sync");
    let mut command = std::process::Command::new(program);
    command.args(arguments).envs(services.variables());
    process::run("the load", &mut command)
}
