//! Developer tasks, run as `cargo xtask COMMAND`. Each command has a file of its own name.

mod api;
mod bench;
mod check;
mod docs;
mod failure;
mod mutants;
mod process;
mod services;
mod soak;
mod test;
mod tidy;
mod tools;
mod workspace;

use std::process::ExitCode;

use failure::Failure;

const HELP: &str = "\
Developer tasks of Surefoot.

Usage: cargo xtask COMMAND [OPTIONS]

  test      every test: unit, integration and doc tests
  soak      the tests that take minutes each, which `test` leaves out
  services  the servers that tests need, until interrupted; for those who run nextest themselves
  api       the HTTP API against its own description, with thousands of requests
  bench     our engine beside the bare stores and other engines, as ratios
  tidy      the architecture checks alone
  check     format, lints, docs, licences, architecture: all that CI asks besides the tests
  ci        check, test, and docs --check
  docs      docs/behaviour.md, from tests that ran and passed; `--check` compares
  mutants   mutate the core and see whether its tests notice (takes long)

`cargo xtask COMMAND --help` tells the options of one command.
What a command needs and the machine lacks is installed under target/tools and target/services.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<(), Failure> {
    let Some((command, rest)) = arguments.split_first() else {
        println!("{HELP}");
        return Ok(());
    };
    match command.as_str() {
        "test" => test::run(rest),
        "api" => api::run(rest),
        "bench" => bench::run(rest),
        "soak" => soak::run(rest),
        "services" => services::run(rest),
        "tidy" => tidy::run(rest),
        "check" => check::run(rest),
        "ci" => {
            check::run(rest)?;
            test::run(rest)?;
            docs::run(&["--check".to_owned()])
        }
        "docs" => docs::run(rest),
        "mutants" => mutants::run(rest),
        "help" | "-h" | "--help" => {
            println!("{HELP}");
            Ok(())
        }
        other => Err(Failure::usage(format!("there is no command `{other}`"), HELP)),
    }
}
