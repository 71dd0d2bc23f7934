//! `surefoot demo`: the promise of the kernel, shown with real processes, on the embedded store or on a server.
//!
//! A provider and two workers run as processes of their own. One worker is killed while the provider has charged a
//! card and not answered. At the end the provider's own log is compared with the kernel's journal.

mod cast;
mod crew;
mod folder;
mod parts;
mod progress;
mod report;
mod stage;
mod strike;
mod tally;
mod venue;

use std::path::PathBuf;
use std::time::Duration;

use cast::{EVENTS_MAX, EVENTS_MIN};
use folder::Folder;
use report::Report;
use stage::Stage;
use surefoot_store_postgres::PostgresStore;
use surefoot_store_sqlite::SqliteStore;
use venue::Venue;

use crate::store::is_embedded;

pub(crate) use parts::{ProviderArgs, WorkerArgs, provider, worker};

/// Short, so that a killed worker is missed while people look on. The kernel's default is 120 s.
const LEASE: Duration = Duration::from_secs(2);
/// For the same reason; the kernel's default is ten minutes. Never under two leases.
const SETTLE_AFTER: Duration = Duration::from_secs(5);
/// How long a worker waits for the provider.
const PATIENCE: Duration = Duration::from_secs(3);
/// Runs that a worker has in hand at once.
const SLOTS: usize = 8;
/// How long a worker that is asked to end goes on with what it has.
const GRACE: Duration = Duration::from_secs(2);

/// Shows on your machine what happens to payments when a worker dies in the middle of one.
///
/// Without `--store postgres://…` the show has a store of its own in its folder. A database that is named must be one in
/// which no show was played; what is missing in it is created.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DemoArgs {
    /// The folder for the logs, and the store if it is embedded: a new one, or an empty one. Without it, a new one in `surefoot-demo`.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// How many events are emitted.
    #[arg(long, value_name = "N", default_value_t = 200,
          value_parser = clap::value_parser!(u32).range(i64::from(EVENTS_MIN)..=i64::from(EVENTS_MAX)))]
    events: u32,
    /// Goes on with a show whose runs you have resolved: starts a worker on its folder until nothing moves any more.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["dir", "events"])]
    finish: Option<PathBuf>,
}

/// Why a show did not get to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum DemoError {
    /// It cannot go on, and a person can do something about it.
    #[error("{0}")]
    Refused(String),
    /// Something below failed.
    #[error("{what}")]
    Failed {
        /// What did not work.
        what: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl DemoError {
    fn io(what: String, error: std::io::Error) -> Self {
        Self::Failed { what, source: error.into() }
    }
}

/// Says what was being done when something failed.
trait During<T> {
    fn during(self, what: &str) -> Result<T, DemoError>;
}

impl<T, E: Into<Box<dyn std::error::Error + Send + Sync>>> During<T> for Result<T, E> {
    fn during(self, what: &str) -> Result<T, DemoError> {
        self.map_err(|error| DemoError::Failed { what: what.to_owned(), source: error.into() })
    }
}

/// What a show says at its end.
#[derive(Debug)]
pub(crate) struct Shown {
    /// For standard output.
    pub(crate) text: String,
    /// Whether the two logs agree, and everything happened that was to be shown.
    pub(crate) is_good: bool,
}

/// Plays the show.
pub(crate) async fn run(
    args: DemoArgs,
    store: &str,
    collector: Option<&str>,
    json: bool,
) -> Result<Shown, DemoError> {
    let report = if is_embedded(store) {
        show::<SqliteStore>(&args, store, collector).await?
    } else {
        show::<PostgresStore>(&args, store, collector).await?
    };
    let is_good = report.agrees() && (args.finish.is_some() || report.is_complete());
    let text = if json {
        serde_json::to_string(&report).during("the report cannot be written as JSON")? + "\n"
    } else {
        report.to_text()
    };
    Ok(Shown { text, is_good })
}

async fn show<S: Venue>(
    args: &DemoArgs,
    store: &str,
    collector: Option<&str>,
) -> Result<Report, DemoError> {
    let folder = match &args.finish {
        Some(folder) => Folder::open(folder, store)?,
        None => Folder::create(args.dir.as_deref(), store)?,
    };
    let folder = folder.traced(collector.map(str::to_owned));
    match args.finish {
        Some(_) => finish::<S>(folder).await,
        None => play::<S>(folder, args.events).await,
    }
}

async fn play<S: Venue>(folder: Folder, events: u32) -> Result<Report, DemoError> {
    let (provider, address) = crew::provider(&folder).await?;
    let stage = Stage::<S>::set(folder.clone(), address, events).await?;
    stage.say(&format!("the show plays in {}", folder.path().display()));
    stage.prepare().await?;
    let mut workers = vec![
        crew::worker(&folder, "worker-1", address).await?,
        crew::worker(&folder, "worker-2", address).await?,
    ];
    let strike = strike::strike(&stage, &mut workers);
    let ((), (), strike) = tokio::try_join!(stage.emit(), stage.attend(), strike)?;
    for worker in workers {
        worker.dismiss().await;
    }
    provider.dismiss().await;
    Report::write(stage.store(), &folder, strike).await
}

/// A worker and the provider again, until nothing moves.
async fn finish<S: Venue>(folder: Folder) -> Result<Report, DemoError> {
    let (provider, address) = crew::provider(&folder).await?;
    let stage = Stage::<S>::again(folder.clone(), address).await?;
    let worker = crew::worker(&folder, "worker-3", address).await?;
    stage.attend().await?;
    worker.dismiss().await;
    provider.dismiss().await;
    Report::write(stage.store(), &folder, None).await
}
