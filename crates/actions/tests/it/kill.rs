//! A worker is killed at every stage of a request: the server's own log never shows a second one under one key.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use serde_json::json;
use surefoot_actions::http::HttpRequest;
use surefoot_kernel_core::{Event, RunState};
use surefoot_language::Module;
use surefoot_store_sqlite::{SqliteOptions, SqliteStore};
use surefoot_worker::{Kernel, Publication};
use tempfile::TempDir;

use crate::server::{CANARY, Server, Stage, client};

const FILE: &str = "SUREFOOT_TEST_KILL_FILE";
const LATER: &str = "SUREFOOT_TEST_KILL_LATER_S";
const PATIENCE: Duration = Duration::from_secs(60);
/// Past every lease, and past the time in which a server that does not know a key proves nothing.
const LONG_AFTER_S: i64 = 1_000;

const PAY: &str = r#"
inputs:
  base: { type: text, required: true }
steps:
  - httpRequest:
      method: POST
      url: "${{ inputs.base }}/pay"
      headers: { Authorization: { secret: KEY } }
      json: { cents: 100 }
      timeout: 60s
      confirm: { url: "${{ inputs.base }}/payments/{effectKey}" }
"#;

fn module() -> Module {
    Module::builder("kill", 1).ambiguous(HttpRequest::new(client())).build().unwrap()
}

async fn open(file: &str, later_s: i64) -> SqliteStore {
    let offset = Arc::new(AtomicI64::new(later_s * 1_000_000));
    SqliteStore::open_with(SqliteOptions::new(file).clock_offset(offset)).await.unwrap()
}

/// What each worker of the test below does, until it is killed; nothing when it is run by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker_process() {
    let Ok(file) = std::env::var(FILE) else { return };
    let later = std::env::var(LATER).unwrap().parse().unwrap();
    let kernel = Kernel::new("kill", open(&file, later).await);
    let worker = kernel.worker(module()).scan_every(Duration::from_millis(20));
    let _working = worker.start().await.unwrap();
    std::future::pending::<()>().await;
}

/// Killed with the test, should that fail.
struct Worker(Child);

impl Worker {
    fn start(file: &str, later_s: i64) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::worker_process", "--nocapture"])
            .env(FILE, file)
            .env(LATER, later_s.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    /// `SIGKILL`.
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn killed_at(stage: Stage) -> (Server, RunState) {
    let (server, folder) = (Server::start().await, TempDir::new().unwrap());
    let file = folder.path().join("kill.db").to_str().unwrap().to_owned();
    let kernel = Kernel::new("kill", open(&file, 0).await);
    let scope = kernel.scope("kill");
    scope.publish(module().manifest(), Publication::new("pay", PAY)).await.unwrap();
    let start = Event::start("pay", json!({ "base": server.url("") }));
    let run = scope.emit(start).await.unwrap().runs[0];
    server.pause_at(stage);
    let first = Worker::start(&file, 0);
    tokio::time::timeout(PATIENCE, server.paused()).await.unwrap();
    first.kill();
    let second = Worker::start(&file, LONG_AFTER_S);
    let ended = tokio::time::timeout(PATIENCE, kernel.await_run(run)).await;
    let ended = ended.unwrap_or_else(|_| panic!("the run does not rest after {stage:?}"));
    second.kill();
    let shown = format!("{:?}", ended.as_ref().unwrap());
    assert!(!shown.contains(CANARY), "{shown}");
    (server, ended.unwrap().state())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_killed_leaves_no_second_request() {
    for (stage, state, paid) in [
        (Stage::Connected, RunState::NeedsAttention, 0),
        (Stage::Read, RunState::NeedsAttention, 0),
        (Stage::Acted, RunState::Succeeded, 1),
        (Stage::HalfAnswered, RunState::Succeeded, 1),
        (Stage::Answered, RunState::Succeeded, 1),
    ] {
        let (server, ended) = killed_at(stage).await;
        assert_eq!((ended, server.paid().len()), (state, paid), "{stage:?}");
        let posts = server.hits().iter().filter(|hit| hit.method == "POST").count();
        assert!(posts <= 1, "{stage:?}: it was sent {posts} times");
    }
}
