//! The processes of a show: this program again, with a hidden command.

use std::fs::File;
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::DemoError;
use super::folder::Folder;
use crate::args::STORE_VARIABLE;

/// A process that has not said within this time that it is there has failed to start.
const START_WITHIN: Duration = Duration::from_secs(20);
/// A process that is asked to end and does not is killed.
const END_WITHIN: Duration = Duration::from_secs(5);

/// One process of the show. It ends with this value: it is killed when dropped, and where even that is not possible
/// it ends by itself, since it watches its standard input.
#[derive(Debug)]
pub(super) struct Hand {
    pub(super) name: String,
    pub(super) pid: u32,
    child: Child,
}

/// Starts the provider; it chooses its own port.
pub(super) async fn provider(folder: &Folder) -> Result<(Hand, SocketAddr), DemoError> {
    let folder_path = folder.path().display().to_string();
    let args = ["demo-provider", "--dir", &folder_path];
    let (hand, said) = start(folder, "provider", &args).await?;
    let address = said.parse().map_err(|_| not_started("provider", folder))?;
    Ok((hand, address))
}

/// Starts a worker.
pub(super) async fn worker(
    folder: &Folder,
    name: &str,
    provider: SocketAddr,
) -> Result<Hand, DemoError> {
    let provider = provider.to_string();
    let args = ["demo-worker", "--name", name, "--provider", &provider];
    Ok(start(folder, name, &args).await?.0)
}

/// Starts a process and waits for its first line. What it has to say besides goes to a file.
async fn start(folder: &Folder, name: &str, args: &[&str]) -> Result<(Hand, String), DemoError> {
    let failed = |error| DemoError::io(format!("the process `{name}` cannot be started"), error);
    let log = File::create(folder.log_of(name)).map_err(failed)?;
    let program = std::env::current_exe().map_err(failed)?;
    let mut child = Command::new(program)
        .args(args)
        // Not among the arguments, which everybody on the machine can read: there may be a password in it.
        .env(STORE_VARIABLE, folder.store_url())
        .envs(folder.collector().map(|collector| ("OTEL_EXPORTER_OTLP_ENDPOINT", collector)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let missing = || not_started(name, folder);
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let pid = child.id().ok_or_else(missing)?;
    let mut said = String::new();
    let mut lines = BufReader::new(stdout);
    let heard = tokio::time::timeout(START_WITHIN, lines.read_line(&mut said)).await;
    match heard {
        Ok(Ok(bytes)) if bytes > 0 => {
            Ok((Hand { name: name.to_owned(), pid, child }, said.trim().to_owned()))
        }
        _ => Err(not_started(name, folder)),
    }
}

fn not_started(name: &str, folder: &Folder) -> DemoError {
    let log = folder.log_of(name);
    DemoError::Refused(format!("the process `{name}` did not start; see {}", log.display()))
}

impl Hand {
    /// SIGKILL: no handler runs, no buffer is flushed, no lease is given back.
    pub(super) async fn kill(&mut self) -> Result<(), DemoError> {
        let killed = self.child.kill().await;
        killed.map_err(|error| DemoError::io(format!("`{}` could not be killed", self.name), error))
    }

    /// Asks it to end in order, and waits.
    pub(super) async fn dismiss(mut self) {
        drop(self.child.stdin.take());
        if tokio::time::timeout(END_WITHIN, self.child.wait()).await.is_err() {
            // Dropping kills it.
            tracing::debug!(process = %self.name, "did not end in time");
        }
    }
}
