//! Real-time priority for what is measured, so that what else runs on the machine does not decide the figures.

use std::process::{Command, Stdio};

use super::given::is_off;

/// As the programs of other engines have it.
const PRIORITY: &str = "10";

/// Who gets it: whatever is measured, or nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RealTime {
    is_on: bool,
}

impl RealTime {
    /// On where this user may have it; `PEERS_RT=0` turns it off, for us and for the others.
    pub(super) fn here() -> Self {
        let mut asked = Command::new("chrt");
        asked.args(["-r", PRIORITY, "true"]);
        asked.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let may = asked.status().is_ok_and(|status| status.success());
        Self { is_on: may && !is_off("PEERS_RT") }
    }

    pub(super) const fn is_on(self) -> bool {
        self.is_on
    }

    /// The program as a command that has it.
    pub(super) fn command(self, program: &std::path::Path) -> Command {
        if !self.is_on {
            return Command::new(program);
        }
        let mut command = Command::new("chrt");
        command.args(["-r", PRIORITY]).arg(program);
        command
    }

    /// Gives it to a process that runs, and to what that starts from now on.
    pub(super) fn give(self, pid: u32) {
        if self.is_on {
            let mut asked = Command::new("chrt");
            asked.args(["-r", "-a", "-p", PRIORITY]).arg(pid.to_string());
            asked.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            // Without it the figures are worse, and no less true.
            drop(asked.status());
        }
    }
}
