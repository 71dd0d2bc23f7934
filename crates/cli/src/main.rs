//! The binary `surefoot`: the command line without a module built in.

use std::process::ExitCode;

use surefoot_cli::Cli;

/// Tasks free on one thread what was allocated on another, where the allocator of glibc makes threads wait.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    Cli::new().main()
}
