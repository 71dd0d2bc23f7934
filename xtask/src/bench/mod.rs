//! `cargo xtask bench`: our engine, the bare stores and other engines, side by side in one run, as ratios.

mod given;
mod look;
mod machine;
mod ours;
mod peers;
mod realtime;
mod report;
mod server;
mod soak;
mod sync;

use std::path::PathBuf;

use serde_json::Value;

use crate::failure::Failure;
use crate::workspace::Workspace;
use given::Given;
use ours::Ours;
use peers::Peers;
use realtime::RealTime;
use report::{Measured, Report};
use server::Database;
pub(crate) use soak::soak;

const HELP: &str = "\
Measures our engine on PostgreSQL and SQLite and, taking turns with it, what other programs do on the same server.

Usage: cargo xtask bench [--json] [--quick] [--rounds N] [--peers A,B] [--peers-dir DIR]

  --json           one JSON object for each workload and engine, and nothing else on standard output
  --quick          only ten idempotent steps a run, 3 rounds
  --rounds N       how often each engine has its turn; 5 by default
  --peers A,B      engines of DIR to measure as well, each the name of a folder there
  --peers-dir DIR  a folder of load programs: needed for peers and for the limits, which are its `bound`
  --sync           the coordination primitives beside the bare operations of their server, and nothing else; what
                   follows goes to the load program (`--sync --help`)
  --look [RUNS]    pages of the console and answers of the API on a million runs, and nothing else; fails where one takes
                   too long
  -h, --help       this text

A rate is what stands in the journal afterwards over the time from the first event to the last known end, and the median of
the rounds. Rates of one machine mean nothing on another one: compare the ratios. A round in which other programs took more
than a tenth of the machine is void and said so. Where this user may, all that is measured runs with real-time priority,
ours and theirs alike; PEERS_RT=0 turns that off. What the programs of DIR install goes to target/peers, or PEERS_WORK.";

const ROUNDS: usize = 5;
const ROUNDS_QUICK: usize = 3;

/// What the arguments ask for.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    json: bool,
    quick: bool,
    rounds: usize,
    peers: Vec<String>,
    peers_dir: Option<PathBuf>,
}

/// Measures what the arguments ask for.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    if arguments.iter().any(|argument| argument == "--sync") {
        let rest: Vec<&String> = arguments.iter().filter(|it| *it != "--sync").collect();
        return sync::run(&Workspace::load()?, &rest);
    }
    if arguments.iter().any(|argument| argument == "--look") {
        let rest: Vec<&String> = arguments.iter().filter(|it| *it != "--look").collect();
        return look::run(&rest, HELP);
    }
    let Some(options) = options(arguments)? else {
        println!("{HELP}");
        return Ok(());
    };
    let workspace = Workspace::load()?;
    let real_time = RealTime::here();
    let peers = match &options.peers_dir {
        Some(folder) => {
            let given = Given::copy(folder, workspace.target())?;
            Some(Peers::new(given, options.peers.clone()))
        }
        None => None,
    };
    let program = ours::build(&workspace)?;
    let database = match &peers {
        Some(peers) => peers.database()?,
        None => Database::start(workspace.target(), real_time)?,
    };
    let ours =
        Ours { program, database: &database, real_time, folder: workspace.target().join("bench") };
    let said = if real_time.is_on() { "with" } else { "without" };
    eprintln!("== measured {said} real-time priority");
    let mut report = Report::default();
    for round in 0..options.rounds {
        eprintln!("== round {} of {}", round + 1, options.rounds);
        let mut measured: Vec<Measured> = ours.round(round, options.quick)?;
        if let Some(peers) = &peers {
            measured.extend(peers.round(round, workspace.target())?);
        }
        report.add(measured);
    }
    print!("{}", if options.json { report.json() } else { report.table() });
    Ok(())
}

fn options(arguments: &[String]) -> Result<Option<Options>, Failure> {
    let mut options =
        Options { json: false, quick: false, rounds: 0, peers: Vec::new(), peers_dir: None };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || {
            let missing = || Failure::usage(format!("`{argument}` needs a value"), HELP);
            arguments.next().cloned().ok_or_else(missing)
        };
        match argument.as_str() {
            "-h" | "--help" => return Ok(None),
            "--json" => options.json = true,
            "--quick" => options.quick = true,
            "--rounds" => options.rounds = rounds(&value()?)?,
            "--peers" => options.peers = value()?.split(',').map(str::to_owned).collect(),
            "--peers-dir" => options.peers_dir = Some(value()?.into()),
            other => return Err(Failure::usage(format!("`{other}` is not known here"), HELP)),
        }
    }
    if options.rounds == 0 {
        options.rounds = if options.quick { ROUNDS_QUICK } else { ROUNDS };
    }
    if options.peers_dir.is_none() && !options.peers.is_empty() {
        return Err(Failure::usage("`--peers` needs `--peers-dir`", HELP));
    }
    Ok(Some(options))
}

fn rounds(text: &str) -> Result<usize, Failure> {
    match text.parse() {
        Ok(rounds) if rounds > 0 => Ok(rounds),
        _ => Err(Failure::usage(format!("`{text}` is no number of rounds"), HELP)),
    }
}

/// What a load program complains of is a failure.
fn judged(what: &str, figures: &Value) -> Result<(), Failure> {
    let complaints = figures["complaints"].as_array().map(Vec::as_slice).unwrap_or_default();
    let complaints: Vec<&str> = complaints.iter().filter_map(Value::as_str).collect();
    if complaints.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("{what} is not well: {}", complaints.join("; "))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_complaint_is_a_failure() {
        assert_eq!(judged("the soak", &json!({ "complaints": [] })), Ok(()));
        let failure = judged("the soak", &json!({ "complaints": ["a grew", "b grew"] }));
        assert_eq!(failure, Err(Failure::new("the soak is not well: a grew; b grew")));
    }

    fn parsed(line: &str) -> Result<Option<Options>, Failure> {
        options(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_quick_pass_has_three_rounds_unless_it_is_said_otherwise() {
        assert_eq!(parsed("").unwrap().unwrap().rounds, 5);
        assert_eq!(parsed("--quick").unwrap().unwrap().rounds, 3);
        assert_eq!(parsed("--quick --rounds 1").unwrap().unwrap().rounds, 1);
    }

    #[test]
    fn peers_have_a_folder() {
        let failure = parsed("--peers a,b").unwrap_err().to_string();
        assert!(failure.starts_with("`--peers` needs `--peers-dir`"), "{failure}");
        let options = parsed("--peers a,b --peers-dir there").unwrap().unwrap();
        assert_eq!(options.peers, ["a", "b"]);
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        for line in ["--rounds", "--rounds 0", "--rounds x", "--fast"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
