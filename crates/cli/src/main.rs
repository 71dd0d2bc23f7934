//! The binary `surefoot`: the command line without a module built in.

use std::process::ExitCode;

use surefoot_cli::Cli;

fn main() -> ExitCode {
    Cli::new().main()
}
