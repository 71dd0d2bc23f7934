//! The load that goes on for minutes: `cargo xtask soak --load`.

use super::judged;
use super::ours;
use super::realtime::RealTime;
use super::server::Database;
use crate::failure::Failure;
use crate::workspace::Workspace;

/// Runs it on a server of our own, prints what was seen, and fails if anything has grown that should not.
pub(crate) fn soak(minutes: u32) -> Result<(), Failure> {
    let workspace = Workspace::load()?;
    let program = ours::build(&workspace)?;
    let real_time = RealTime::here();
    let database = Database::start(workspace.target(), real_time)?;
    let mut command = real_time.command(&program);
    command.args(["--store", &database.url, "--workload", "soak"]);
    command.args(["--minutes", &minutes.to_string()]);
    let (figures, used) = ours::watched(&mut command, database.pid)?;
    println!("{figures}");
    eprintln!("== others had {:.0} % of the machine", used.others_percent());
    judged("the soak", &figures)
}
