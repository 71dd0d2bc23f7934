//! The load that goes on for minutes: `cargo xtask soak --load`.

use serde_json::Value;

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
    judged(&figures)
}

fn judged(figures: &Value) -> Result<(), Failure> {
    let complaints = figures["complaints"].as_array().map(Vec::as_slice).unwrap_or_default();
    let complaints: Vec<&str> = complaints.iter().filter_map(Value::as_str).collect();
    if complaints.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("the soak is not well: {}", complaints.join("; "))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_complaint_is_a_failure() {
        assert_eq!(judged(&json!({ "complaints": [] })), Ok(()));
        let failure = judged(&json!({ "complaints": ["a grew", "b grew"] })).unwrap_err();
        assert_eq!(failure, Failure::new("the soak is not well: a grew; b grew"));
    }
}
