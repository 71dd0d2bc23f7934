//! The command line of Surefoot.

#[cfg(feature = "demo")]
mod demo;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "surefoot", version, about)]
struct Cli {
    /// Data as JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[cfg(feature = "demo")]
    Demo(demo::DemoArgs),
    #[cfg(feature = "demo")]
    #[command(hide = true)]
    DemoProvider(demo::ProviderArgs),
    #[cfg(feature = "demo")]
    #[command(hide = true)]
    DemoWorker(demo::WorkerArgs),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.command {
        #[cfg(feature = "demo")]
        Command::Demo(args) => demo::command(args, cli.json).await,
        #[cfg(feature = "demo")]
        Command::DemoProvider(args) => demo::ended(demo::provider(args).await),
        #[cfg(feature = "demo")]
        Command::DemoWorker(args) => demo::ended(demo::worker(args).await),
    }
}
