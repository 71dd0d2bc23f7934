//! From arguments to an exit code.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::Parser as _;
use serde_json::json;
use surefoot_language::{Bindings, Manifest, Module, Previews, RunsOn};
use surefoot_store_postgres::{PostgresStore, PostgresTx};
use surefoot_store_sqlite::{SqliteStore, SqliteTx};
use tracing_subscriber::EnvFilter;

use crate::args::Arguments;
use crate::command::{self, BuiltIn, MakePreviews};
use crate::error::CliError;
use crate::page::{to_stderr, to_stdout, wants_colour};
use crate::{Exit, page};

/// The command line. An application that ships it builds its module in.
#[derive(Debug, Clone, Default)]
#[must_use = "the command line does nothing until `main` is called"]
pub struct Cli {
    built_in: BuiltIn,
}

impl Cli {
    /// Without a module: `check` and `publish` take `--manifest`.
    pub fn new() -> Self {
        Self::default()
    }

    /// With the manifest of the application's module: `check` and `publish` take it where none is given.
    pub fn manifest(mut self, manifest: Manifest) -> Self {
        self.built_in.manifest = Some(manifest);
        self
    }

    /// With the application's names and the stable ids behind them, for `publish`.
    pub fn bindings(mut self, bindings: Bindings) -> Self {
        self.built_in.bindings = bindings;
        self
    }

    /// With the application's module, made for the embedded store that a command opens: `dry-run` previews by itself, and
    /// `serve-dry-runs` does so for others. Neither has a way to an effect.
    pub fn module<B, E>(
        mut self,
        make: impl Fn(&SqliteStore) -> Result<Module<B>, E> + Send + Sync + 'static,
    ) -> Self
    where
        B: RunsOn<SqliteTx>,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.built_in.embedded = Some(MakePreviews::new(move |store| {
            let module = make(store).map_err(Into::into)?;
            Ok(Previews::of::<SqliteTx, B>(&module))
        }));
        self
    }

    /// The same for the shared store, where commands are given `--store postgres://…`. An application that runs on both
    /// registers its module for both.
    pub fn module_on_postgres<B, E>(
        mut self,
        make: impl Fn(&PostgresStore) -> Result<Module<B>, E> + Send + Sync + 'static,
    ) -> Self
    where
        B: RunsOn<PostgresTx>,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.built_in.shared = Some(MakePreviews::new(move |store| {
            let module = make(store).map_err(Into::into)?;
            Ok(Previews::of::<PostgresTx, B>(&module))
        }));
        self
    }

    /// Runs what this process was started with. Call it at the end of `main`.
    #[must_use]
    pub fn main(self) -> ExitCode {
        self.run(std::env::args_os()).into()
    }

    /// Runs a command; the first argument is the program's name. Never panics; writes to this process's standard
    /// streams.
    pub fn run(self, arguments: impl IntoIterator<Item = OsString>) -> Exit {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        let wants_json = arguments.iter().take_while(|it| *it != "--").any(|it| it == "--json");
        let arguments = match Arguments::try_parse_from(arguments) {
            Ok(arguments) => arguments,
            Err(error) => {
                if error.use_stderr() {
                    let text = page::quoting(&error.render().to_string(), false);
                    to_stderr(&if wants_json { usage_as_json(&text) } else { text });
                    return Exit::Usage;
                }
                // Help and version are asked for: they go to standard output, and are no failure.
                let _ = error.print();
                return Exit::Done;
            }
        };
        log_to_stderr();
        let is_json = arguments.global.json;
        match self.carry_out(arguments) {
            Ok(exit) => exit,
            Err(error) => {
                to_stderr(&if is_json { as_json(&error) } else { for_people(&error) });
                error.exit()
            }
        }
    }

    fn carry_out(self, arguments: Arguments) -> Result<Exit, CliError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(CliError::Runtime)?;
        let printed = runtime.block_on(command::run(&self.built_in, arguments))?;
        to_stdout(&printed.text).map_err(CliError::Output)?;
        Ok(printed.exit)
    }
}

/// The error and its causes for a program: on standard error, since standard output is data.
fn as_json(error: &CliError) -> String {
    let chain = error.chain();
    let (message, causes) =
        chain.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
    json_error(error.code(), (message, causes), error.help(), error.exit())
}

fn json_error(
    code: Option<String>,
    (message, causes): (&str, &[String]),
    help: Option<&str>,
    exit: Exit,
) -> String {
    let error = json!({ "error": {
        "code": code,
        "message": message,
        "causes": causes,
        "help": help,
        "exit": exit.code(),
    } });
    page::plain_json(&format!("{error}\n"))
}

/// A refusal of what was typed, for a program: what is wrong, and behind it what may be typed.
fn usage_as_json(text: &str) -> String {
    let text = text.trim().strip_prefix("error: ").unwrap_or(text.trim());
    let (message, help) = match text.split_once("\n\n") {
        Some((message, help)) => (message, Some(help)),
        None => (text, None),
    };
    json_error(None, (message, &[]), help, Exit::Usage)
}

/// The error and its causes, once, at the edge.
fn for_people(error: &CliError) -> String {
    let mut page = page::Page::new(wants_colour(&io::stderr()));
    for (index, line) in error.chain().iter().enumerate() {
        if index == 0 {
            page.toned(page::Tone::Bad, format!("error: {line}"));
        } else {
            page.line(format!("  caused by: {line}"));
        }
    }
    if let Some(help) = error.help() {
        page.line(format!("  help: {help}"));
    }
    page.into_text()
}

/// `SUREFOOT_LOG` says what is logged; by default, warnings, and none of the broker's client: what goes wrong there comes
/// back as an error. Payloads never are.
fn log_to_stderr() {
    let filter = EnvFilter::try_from_env("SUREFOOT_LOG")
        .unwrap_or_else(|_| EnvFilter::new("warn,async_nats=off"));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    // An application may have its own already.
    let _ = subscriber.try_init();
}
