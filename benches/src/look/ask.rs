//! The questions, and how one is asked: a connection of its own, to the last byte of the answer.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use surefoot::RunId;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Failed;

/// At the 95th percentile: a list or the overview, and the page of a run of ten thousand steps.
const LIST_MS: f64 = 300.0;
const LONG_RUN_MS: f64 = 1_000.0;
/// In place of the id of the run of ten thousand steps.
const LONG: &str = "{long}";

/// What is asked for.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) path: &'static str,
}

impl Question {
    pub(super) fn path(&self, long: RunId) -> String {
        self.path.replace(LONG, &long.to_string())
    }

    /// A scope that nobody knows is not found.
    pub(super) fn status(&self) -> u16 {
        if self.path.contains("scope=nowhere") { 404 } else { 200 }
    }

    pub(super) fn within_ms(&self) -> f64 {
        if self.path.contains(LONG) { LONG_RUN_MS } else { LIST_MS }
    }
}

const fn of(path: &'static str) -> Question {
    Question { path }
}

/// Pages of the console, and questions of the API where it asks more than a page does.
pub(super) const QUESTIONS: &[Question] = &[
    of("/?span=1h"),
    of("/?span=24h"),
    of("/?span=7d"),
    of("/api/v1/timeline?span=7d&scope=scope-0"),
    of("/api/v1/timeline?span=7d&scope=corner"),
    of("/api/v1/health"),
    of("/metrics"),
    of("/runs"),
    of("/runs?state=failed"),
    of("/runs?state=succeeded&state=failed"),
    of("/runs?state=waiting"),
    of("/runs?state=needs_attention"),
    of("/runs?scope=scope-0"),
    of("/runs?scope=scope-4&state=failed"),
    of("/runs?scope=corner"),
    of("/api/v1/runs?scope=nowhere"),
    of("/runs?workflow=flow-1"),
    of("/runs?workflow=flow-1&state=canceled"),
    of("/runs?workflow=flow-1&state=needs_attention"),
    of("/runs?workflow=long"),
    of("/runs?mode=dry_run"),
    of("/runs?tag=nobody"),
    of("/runs?tag=few"),
    of("/runs?tag=some"),
    of("/runs?tag=some&state=failed"),
    of("/runs?tag=old"),
    of("/runs?tag=many"),
    of("/runs?tag=all"),
    of("/runs?tag=all&state=failed"),
    of("/api/v1/runs?limit=1000"),
    of("/events"),
    of("/events?status=unmatched"),
    of("/events?status=dead_lettered"),
    of("/events?type=bench.begin"),
    of("/events?type=bench.begin&status=dead_lettered"),
    of("/events?type=bench.rare"),
    of("/events?type=bench.never"),
    of("/events?type=bench.never&status=dispatched"),
    of("/events?scope=scope-0&type=bench.other"),
    of("/events?scope=corner"),
    of("/api/v1/events?scope=nowhere"),
    of("/api/v1/events?limit=1000"),
    of("/effects"),
    of("/audit"),
    of("/workflows"),
    of("/runs/{long}"),
    of("/runs/{long}?steps=100"),
    of("/api/v1/runs/{long}"),
    of("/api/v1/runs/{long}/explain"),
    of("/api/v1/runs/{long}/steps?limit=100"),
    of("/api/v1/runs/{long}/steps?limit=100&cursor=9900"),
    of("/api/v1/runs/{long}/journal?limit=100"),
];

/// What came, and when its last byte did.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) took: Duration,
    pub(super) bytes: usize,
}

pub(super) async fn ask(address: SocketAddr, path: &str) -> Result<Answer, Failed> {
    let began = Instant::now();
    let mut stream = TcpStream::connect(address).await?;
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let took = began.elapsed();
    let status = answer.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
    let status = status.and_then(|digits| digits.parse().ok());
    let status = status.ok_or_else(|| format!("{path}: no answer of HTTP"))?;
    Ok(Answer { status, took, bytes: answer.len() })
}
