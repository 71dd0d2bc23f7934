//! `cargo xtask bench --look`: what a person waits for who looks at a million runs.

use super::judged;
use super::ours;
use super::realtime::RealTime;
use super::server::Database;
use crate::failure::Failure;
use crate::workspace::Workspace;

/// Ended runs, unless the arguments say how many.
const RUNS: u32 = 1_000_000;

/// Fills a database, asks the console, prints what it took, and fails if anything took too long.
pub(super) fn run(arguments: &[&String], help: &'static str) -> Result<(), Failure> {
    let runs = match arguments {
        [] => RUNS,
        [one] => one.parse().map_err(|_| Failure::usage(format!("`{one}` is no number"), help))?,
        [_, other, ..] => return Err(Failure::usage(format!("`{other}` is too much"), help)),
    };
    let workspace = Workspace::load()?;
    let program = ours::build(&workspace)?;
    let real_time = RealTime::here();
    let database = Database::start(workspace.target(), real_time)?;
    let mut command = real_time.command(&program);
    command.args(["--store", &database.url, "--workload", "look", "--stored", &runs.to_string()]);
    let (figures, used) = ours::watched(&mut command, database.pid)?;
    println!("{figures}");
    eprintln!("== others had {:.0} % of the machine", used.others_percent());
    judged("the look", &figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_of_runs_is_refused_before_anything_is_built() {
        for line in ["x", "-1", "1 2"] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let failure = run(&words.iter().collect::<Vec<_>>(), "the help").unwrap_err();
            assert!(failure.to_string().ends_with("the help"), "{failure}");
        }
    }
}
