//! A worker is killed at every stage of a request: the server's own log never shows a second one under one key.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use serde_json::json;
use surefoot_actions::http::{HttpRequest, Resolve};
use surefoot_actions::secret::{Secret, SecretError, Secrets};
use surefoot_kernel_core::{BoxFuture, Event, RunState};
use surefoot_language::Module;
use surefoot_store_sqlite::{SqliteOptions, SqliteStore};
use surefoot_worker::{Kernel, Publication};
use tempfile::TempDir;

use crate::server::{CANARY, CERTIFICATE, Server, Stage, builder};

const FILE: &str = "SUREFOOT_TEST_KILL_FILE";
const LATER: &str = "SUREFOOT_TEST_KILL_LATER_S";
/// A file that the worker writes when it has come to where it stops; its ending names the place.
const STOP: &str = "SUREFOOT_TEST_KILL_STOP";
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

/// Where a worker stops by itself, before it has a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// The secret is being read.
    Secret,
    /// The address is being looked up.
    Address,
}

/// What the worker asks outside of itself, and where that never answers.
#[derive(Clone)]
struct Outside(Option<(Inside, PathBuf)>);

impl Outside {
    /// As this process was told.
    fn told() -> Self {
        let path = std::env::var_os(STOP).map(PathBuf::from);
        Self(path.map(|path| {
            let mut at = [Inside::Secret, Inside::Address].into_iter();
            let at = at.find(|at| path.extension() == Some(format!("{at:?}").as_ref()));
            (at.unwrap(), path)
        }))
    }

    async fn pass(&self, here: Inside) {
        if let Some((at, path)) = &self.0
            && *at == here
        {
            std::fs::write(path, "").unwrap();
            std::future::pending::<()>().await;
        }
    }
}

impl Resolve for Outside {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async {
            self.pass(Inside::Address).await;
            Ok(vec!["127.0.0.1".parse().unwrap()])
        })
    }
}

impl Secrets for Outside {
    fn secret<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async {
            self.pass(Inside::Secret).await;
            Ok(Some(Secret::new(CANARY)))
        })
    }
}

fn module(outside: Outside) -> Module {
    let client = builder().resolver(outside.clone()).secrets(outside).trust(CERTIFICATE);
    let client = client.build().unwrap();
    Module::builder("kill", 1).ambiguous(HttpRequest::new(client)).build().unwrap()
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
    let worker = kernel.worker(module(Outside::told())).scan_every(Duration::from_millis(20));
    let _working = worker.start().await.unwrap();
    std::future::pending::<()>().await;
}

/// Killed with the test, should that fail.
struct Worker(Child);

impl Worker {
    fn start(file: &str, later_s: i64, stop: Option<&PathBuf>) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::worker_process", "--nocapture"])
            .env(FILE, file)
            .env(LATER, later_s.to_string())
            .envs(stop.map(|stop| (STOP, stop)))
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

/// Where a worker is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Inside(Inside),
    Handshake,
    Server(Stage),
}

async fn killed_at(at: At) -> (Server, RunState) {
    let folder = TempDir::new().unwrap();
    let (server, scheme) = match at {
        At::Handshake => (Server::with_tls().await, "https"),
        At::Inside(_) | At::Server(_) => (Server::start().await, "http"),
    };
    let stop = match at {
        At::Inside(inside) => Some(folder.path().join(format!("stop.{inside:?}"))),
        At::Handshake | At::Server(_) => None,
    };
    let file = folder.path().join("kill.db").to_str().unwrap().to_owned();
    let kernel = Kernel::new("kill", open(&file, 0).await);
    let scope = kernel.scope("kill");
    let manifest = module(Outside(None)).manifest().clone();
    scope.publish(&manifest, Publication::new("pay", PAY)).await.unwrap();
    let start = Event::start("pay", json!({ "base": server.named(scheme, "api.test", "") }));
    let run = scope.emit(start).await.unwrap().runs[0];
    match at {
        At::Inside(_) => {}
        At::Handshake => server.pause_at(Stage::Connected),
        At::Server(stage) => server.pause_at(stage),
    }
    let first = Worker::start(&file, 0, stop.as_ref());
    let stopped = async {
        match &stop {
            None => server.paused().await,
            Some(stop) => {
                while !stop.exists() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        }
    };
    tokio::time::timeout(PATIENCE, stopped).await.unwrap();
    first.kill();
    let second = Worker::start(&file, LONG_AFTER_S, None);
    let ended = tokio::time::timeout(PATIENCE, kernel.await_run(run)).await;
    let ended = ended.unwrap_or_else(|_| panic!("the run does not rest after {at:?}"));
    second.kill();
    let shown = format!("{:?}", ended.as_ref().unwrap());
    assert!(!shown.contains(CANARY), "{shown}");
    (server, ended.unwrap().state())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_killed_leaves_no_second_request() {
    for (at, state, paid) in [
        (At::Inside(Inside::Secret), RunState::NeedsAttention, 0),
        (At::Inside(Inside::Address), RunState::NeedsAttention, 0),
        (At::Handshake, RunState::NeedsAttention, 0),
        (At::Server(Stage::Connected), RunState::NeedsAttention, 0),
        (At::Server(Stage::Read), RunState::NeedsAttention, 0),
        (At::Server(Stage::Acted), RunState::Succeeded, 1),
        (At::Server(Stage::HalfAnswered), RunState::Succeeded, 1),
        (At::Server(Stage::Answered), RunState::Succeeded, 1),
    ] {
        let (server, ended) = killed_at(at).await;
        assert_eq!((ended, server.paid().len()), (state, paid), "{at:?}");
        let posts = server.hits().iter().filter(|hit| hit.method == "POST").count();
        assert!(posts <= 1, "{at:?}: it was sent {posts} times");
    }
}
