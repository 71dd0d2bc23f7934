//! What the processes of a show do.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use surefoot_inventory::APP;
use surefoot_inventory::bank::Bank;
use surefoot_inventory::provider::Provider;
use surefoot_store_postgres::PostgresStore;
use surefoot_store_sqlite::SqliteStore;
use surefoot_worker::Kernel;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::venue::Venue;
use super::{DemoError, During, GRACE, LEASE, PATIENCE, SLOTS};
use crate::store::{self, Need};

/// `demo-provider`: the payment provider of the show.
#[derive(Debug, clap::Args)]
pub(crate) struct ProviderArgs {
    /// Where its books are.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

/// `demo-worker`: a worker of the show.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkerArgs {
    /// Where the provider is.
    #[arg(long, value_name = "ADDRESS")]
    provider: SocketAddr,
    /// What people see in the list of workers.
    #[arg(long)]
    name: String,
}

/// Answers charges until the show ends.
pub(crate) async fn provider(args: ProviderArgs) -> Result<(), DemoError> {
    let provider = Provider::open(&args.dir).during("the provider's books cannot be opened")?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.during("the provider cannot listen")?;
    let address = listener.local_addr().during("the provider cannot listen")?;
    say(&address.to_string())?;
    provider.serve(listener, parent_gone()).await.during("the provider cannot serve")
}

/// Works on the store of the show until the show ends.
pub(crate) async fn worker(args: WorkerArgs, url: &str) -> Result<(), DemoError> {
    if store::is_embedded(url) {
        work::<SqliteStore>(args, url).await
    } else {
        work::<PostgresStore>(args, url).await
    }
}

async fn work<S: Venue>(args: WorkerArgs, url: &str) -> Result<(), DemoError> {
    let store = S::open(url, Need::Existing).await.during("the store cannot be opened")?;
    let bank = Bank::at(args.provider).patience(PATIENCE);
    let module = store.module(bank).during("the module is wrong")?;
    let kernel = Kernel::new(APP, store.clone());
    let worker = kernel.worker(module).name(args.name).concurrency(SLOTS).lease(LEASE);
    let worker = worker.wake_bus(store.bus());
    let running = worker.start().await.during("the worker cannot start")?;
    say("ready")?;
    parent_gone().await;
    running.stop(GRACE).await;
    Ok(())
}

/// The one line that the show waits for.
fn say(line: &str) -> Result<(), DemoError> {
    let mut out = std::io::stdout().lock();
    let said = writeln!(out, "{line}").and_then(|()| out.flush());
    said.during("nobody listens")
}

/// Completes when whoever started this process ended, in whatever way: the pipe to it closes.
async fn parent_gone() {
    let mut stdin = tokio::io::stdin();
    let mut byte = [0; 64];
    while matches!(stdin.read(&mut byte).await, Ok(read) if read > 0) {}
}
