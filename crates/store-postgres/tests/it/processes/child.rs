//! A child process: what it does, and how its parent sees it.

use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use surefoot_store_postgres::PostgresStore;
use surefoot_worker::Kernel;
use tokio::task::spawn_blocking;

use super::app::{APP, LEASE, Outside, module};
use crate::database::options_of;

/// What to do; absent in an ordinary run of the tests.
const ROLE: &str = "SUREFOOT_TEST_PG_ROLE";
const DATABASE: &str = "SUREFOOT_TEST_PG_DATABASE";
/// How long a transaction of a child may stand still, and last.
pub(super) const TRANSACTION_LIMIT: Duration = Duration::from_secs(5);

/// The child's part.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let (Ok(role), Ok(name)) = (std::env::var(ROLE), std::env::var(DATABASE)) else { return };
    let options = options_of(&name).transaction_limit(TRANSACTION_LIMIT);
    let store = PostgresStore::open_with(options).await.unwrap();
    if role == "open" {
        return;
    }
    let kernel = Kernel::new(APP, store);
    let worker = kernel.worker(module(&Outside(name))).lease(LEASE).build().unwrap();
    let running = worker.start().await.unwrap();
    // Until the parent ends it, or is gone itself.
    spawn_blocking(|| while std::io::stdin().lines().next().is_some_and(|it| it.is_ok()) {})
        .await
        .unwrap();
    running.stop(Duration::ZERO).await;
}

pub(super) struct Child(std::process::Child);

impl Child {
    pub(super) fn start(database: &str, role: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "processes::child::child", "--nocapture"]);
        command.env(ROLE, role).env(DATABASE, database);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::inherit());
        Self(command.spawn().unwrap())
    }

    pub(super) fn id(&self) -> i64 {
        i64::from(self.0.id())
    }

    pub(super) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Asks it to stop in order, and waits until it is gone.
    pub(super) async fn stop(mut self) -> ExitStatus {
        drop(self.0.stdin.take());
        self.ended().await
    }

    pub(super) async fn ended(mut self) -> ExitStatus {
        for _ in 0..60_000 {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("the child does not end");
    }
}

impl Drop for Child {
    /// A test that fails leaves nothing running.
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
