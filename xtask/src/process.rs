//! Running other programs: announced, and a failure is a sentence.

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::failure::Failure;

/// Runs a program with its output shown. `what` names the step for people.
pub(crate) fn run(what: &str, command: &mut Command) -> Result<(), Failure> {
    match exit_code(what, command)? {
        0 => Ok(()),
        code => Err(Failure::new(format!("{what} failed (exit code {code}); see above"))),
    }
}

/// Like [`run`], for programs whose exit code says more than yes or no.
pub(crate) fn exit_code(what: &str, command: &mut Command) -> Result<i32, Failure> {
    eprintln!("== {what}: {}", shown(command));
    let start = Instant::now();
    let status =
        command.stdin(Stdio::null()).status().map_err(|error| not_started(command, &error))?;
    eprintln!("== {what}: {} s", start.elapsed().as_secs());
    status.code().ok_or_else(|| Failure::new(format!("{what} was ended by a signal ({status})")))
}

/// Runs a program and returns what it printed to standard output.
pub(crate) fn capture(command: &mut Command) -> Result<String, Failure> {
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| not_started(command, &error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim();
        return Err(Failure::new(format!("`{}` failed: {said}", shown(command))));
    }
    String::from_utf8(output.stdout).map_err(|_| {
        Failure::new(format!("`{}` printed something that is no text", shown(command)))
    })
}

/// `cargo`, the one that runs us.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn shown(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let mut words = vec![program.file_name().unwrap_or(command.get_program()).to_string_lossy()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy()));
    words.join(" ")
}

fn not_started(command: &Command, error: &std::io::Error) -> Failure {
    Failure::new(format!("`{}` could not be started: {error}", shown(command)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_a_failing_step_that_is_named() {
        let failure = run("asking rustc", Command::new("rustc").arg("--no-such-flag")).unwrap_err();
        assert_eq!(failure, Failure::new("asking rustc failed (exit code 1); see above"));
    }

    #[test]
    fn a_missing_program_is_named() {
        let failure = capture(&mut Command::new("no-such-program")).unwrap_err().to_string();
        assert!(failure.starts_with("`no-such-program` could not be started: "), "{failure}");
    }

    #[test]
    fn what_a_program_prints_is_returned() {
        let version = capture(cargo().arg("--version")).unwrap();
        assert!(version.starts_with("cargo "), "{version}");
    }
}
