//! Talking to a server without its client library.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use surefoot_test_servers::{POSTGRES_PROGRAMS, programs};

/// The host and port within a URL.
fn address(url: &str) -> &str {
    let rest = url.split_once("://").unwrap().1;
    let rest = rest.split_once('@').map_or(rest, |(_, rest)| rest);
    rest.split('/').next().unwrap()
}

/// Whether somebody listens there.
pub(crate) fn listens(url: &str) -> bool {
    TcpStream::connect(address(url)).is_ok()
}

/// What a server answers to a line, until it closes.
pub(crate) fn answer(url: &str, line: &str) -> String {
    let mut stream = TcpStream::connect(address(url)).unwrap();
    stream.write_all(line.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// What a statement prints, run by the `psql` that came with PostgreSQL 18.
pub(crate) fn sql(url: &str, statement: &str) -> Result<String, String> {
    let psql = programs(POSTGRES_PROGRAMS).unwrap().join("psql");
    let output = Command::new(psql).args(["-XAtqc", statement, url]).output().unwrap();
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout).unwrap().trim().to_owned());
    }
    Err(String::from_utf8(output.stderr).unwrap())
}
