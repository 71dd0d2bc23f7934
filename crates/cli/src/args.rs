//! What can be typed.

use clap::{Args, Parser};

use crate::command::Command;

/// A durable workflow kernel: author, start, look, explain and act.
///
/// Exit codes: 0 done, 1 a finding, refusal or red health, 2 wrong usage, 3 store not reachable, 4 conflict.
#[derive(Debug, Parser)]
#[command(name = "surefoot", version, propagate_version = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// The store: `sqlite:PATH`.
    #[arg(
        long,
        global = true,
        env = "SUREFOOT_STORE",
        default_value = "sqlite:surefoot.db",
        value_name = "URL"
    )]
    pub(crate) store: String,
    /// The application; where the store holds one, that one.
    #[arg(long, global = true, env = "SUREFOOT_APP", value_name = "APP")]
    pub(crate) app: Option<String>,
    /// The scope inside the application.
    #[arg(long, global = true, env = "SUREFOOT_SCOPE", value_name = "SCOPE")]
    pub(crate) scope: Option<String>,
    /// In whose name; stands in the audit.
    #[arg(long, global = true, env = "SUREFOOT_ACTOR", value_name = "NAME")]
    pub(crate) actor: Option<String>,
    /// Print JSON: ids as text, times RFC 3339.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// What every verb takes that changes something for an operator's reason.
#[derive(Debug, Clone, Args)]
pub(crate) struct Verb {
    /// Why; stands in the audit.
    #[arg(long, value_name = "WHY")]
    pub(crate) reason: String,
    /// Do it without asking.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Which part of a list.
#[derive(Debug, Clone, Args)]
pub(crate) struct Part {
    /// At most so many.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
    /// From the page before.
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What clap finds wrong with a command it says only when that command is typed.
    #[test]
    fn every_command_is_well_formed() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }
}
