//! What can be typed.

use std::str::FromStr as _;

use clap::{Args, Parser};
use surefoot_kernel_core::{App, Scope};

use crate::command::Command;

/// The environment variable that names the store.
pub(crate) const STORE_VARIABLE: &str = "SUREFOOT_STORE";
/// The environment variable that names the scope.
pub(crate) const SCOPE_VARIABLE: &str = "SUREFOOT_SCOPE";
/// The store where none is named.
pub(crate) const DEFAULT_STORE: &str = "sqlite:surefoot.db";

/// A durable workflow kernel: author, start, look, explain and act.
///
/// Exit codes: 0 done, 1 a finding, refusal or red health, 2 wrong usage, 3 store not reachable, 4 conflict.
#[derive(Debug, Parser)]
#[command(name = "surefoot", version, propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Above the options of every command in a command's help, so that its own stand apart.
const OF_ALL: &str = "Options of every command";

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// The store: `sqlite:PATH` or `postgres://USER@HOST/DATABASE`.
    #[arg(
        long,
        global = true,
        help_heading = OF_ALL,
        env = STORE_VARIABLE,
        default_value = DEFAULT_STORE,
        value_name = "URL"
    )]
    pub(crate) store: String,
    /// The application; where the store holds one, that one.
    #[arg(
        long,
        global = true,
        help_heading = OF_ALL,
        env = "SUREFOOT_APP",
        value_name = "APP",
        value_parser = App::from_str
    )]
    pub(crate) app: Option<App>,
    /// The scope inside the application; where that has workflows in one alone, that one. Of a run that is named, it must be
    /// the run's.
    #[arg(
        long,
        global = true,
        help_heading = OF_ALL,
        env = SCOPE_VARIABLE,
        value_name = "SCOPE",
        value_parser = Scope::from_str
    )]
    pub(crate) scope: Option<Scope>,
    /// In whose name; stands in the audit.
    #[arg(long, global = true, help_heading = OF_ALL, env = "SUREFOOT_ACTOR", value_name = "NAME")]
    pub(crate) actor: Option<String>,
    /// Send traces to the OpenTelemetry collector at this address, like `http://127.0.0.1:4318`; by default, to that of
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`.
    #[cfg(feature = "otlp")]
    #[arg(long, global = true, help_heading = OF_ALL, value_name = "URL")]
    pub(crate) otlp: Option<String>,
    /// Print JSON: ids as text, times RFC 3339.
    #[arg(long, global = true, help_heading = OF_ALL)]
    pub(crate) json: bool,
}

/// What every verb takes that changes something for an operator's reason.
#[derive(Debug, Clone, Args)]
pub(crate) struct Verb {
    /// Why; stands in the audit.
    #[arg(long, value_name = "WHY", value_parser = own_words)]
    pub(crate) reason: String,
    /// Do it without asking.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// The commands that `explain` prints hold places to be filled in, such as `<why>`; none of them is an answer.
pub(crate) fn own_words(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || (text.starts_with('<') && text.ends_with('>')) {
        return Err("say it in words of your own".to_owned());
    }
    Ok(text.to_owned())
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

    #[test]
    fn places_to_be_filled_in_are_no_answers() {
        assert_eq!(own_words(" the bank says so "), Ok("the bank says so".to_owned()));
        for nothing in ["", " ", "<why>", " <message> "] {
            assert!(own_words(nothing).is_err(), "{nothing:?}");
        }
    }

    /// What clap finds wrong with a command it says only when that command is typed.
    #[test]
    fn every_command_is_well_formed() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }
}
