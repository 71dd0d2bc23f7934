//! Whether a server takes work, asked without its client library.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// How to ask.
#[derive(Debug, Clone)]
pub(crate) enum Ready {
    /// PostgreSQL writes its state into a file of its data folder.
    Postmaster { data: PathBuf },
    /// NATS tells over HTTP; as a member of a cluster only once the cluster has a leader.
    Healthz { port: u16 },
    /// Valkey answers a ping.
    Pong { port: u16 },
    /// PgBouncer takes connections.
    Listens { port: u16 },
}

impl Ready {
    /// Whether the server that runs as process `pid` is ready. Any failure to ask is a no.
    pub(crate) fn ask(&self, pid: u32) -> bool {
        match self {
            Self::Postmaster { data } => postmaster(data, pid),
            Self::Healthz { port } => {
                let answer = ask(*port, b"GET /healthz HTTP/1.0\r\n\r\n");
                answer.is_ok_and(|answer| answer.split(' ').nth(1) == Some("200"))
            }
            Self::Pong { port } => {
                ask(*port, b"PING\r\nQUIT\r\n").is_ok_and(|answer| answer.starts_with("+PONG"))
            }
            Self::Listens { port } => connect(*port).is_ok(),
        }
    }
}

/// A killed server leaves its file behind, so the process counts as well.
fn postmaster(data: &Path, pid: u32) -> bool {
    fs::read_to_string(data.join("postmaster.pid")).is_ok_and(|text| is_ready(&text, pid))
}

fn is_ready(text: &str, pid: u32) -> bool {
    let mut lines = text.lines().map(str::trim);
    lines.next() == Some(pid.to_string().as_str()) && lines.nth(6) == Some("ready")
}

fn connect(port: u16) -> io::Result<TcpStream> {
    TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), PATIENCE)
}

/// Sends a question and reads until the server closes.
fn ask(port: u16, question: &[u8]) -> io::Result<String> {
    let mut stream = connect(port)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(question)?;
    let mut answer = String::new();
    stream.take(64 * 1024).read_to_string(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postgres_is_ready_when_its_file_says_so_of_this_process() {
        let file = |state| format!("7\n/data\n17\n5432\n\n127.0.0.1\n  1 2\n{state}\n");
        assert!(is_ready(&file("ready   "), 7));
        assert!(!is_ready(&file("ready   "), 8));
        assert!(!is_ready(&file("starting"), 7));
        assert!(!is_ready("7\n/data\n", 7));
        assert!(!is_ready("", 7));
    }

    #[test]
    fn who_does_not_answer_is_not_ready() {
        let port = crate::port::free().unwrap();
        assert!(!Ready::Pong { port }.ask(1));
        assert!(!Ready::Listens { port }.ask(1));
        assert!(!Ready::Healthz { port }.ask(1));
        assert!(!Ready::Postmaster { data: PathBuf::from("nowhere") }.ask(1));
    }
}
