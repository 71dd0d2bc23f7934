//! A server that is tied to its task ends with it, also when the task is killed.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use surefoot_test_servers::Valkey;

use crate::probe::listens;

const CHILD: &str = "SUREFOOT_TEST_TIED_CHILD";
const SAYS: &str = "server: ";

/// What the task of the test below does; nothing when it is run by itself.
#[test]
fn child_process() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let server = Valkey::given().unwrap().tied().start().unwrap();
    println!("\n{SAYS}{}", server.url());
    loop {
        std::thread::park();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_tied_server_ends_with_a_killed_task() {
    let mut task = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tied::child_process", "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(task.stdout.take().unwrap()).lines();
    let url = said.map(Result::unwrap).find_map(|line| Some(line.strip_prefix(SAYS)?.to_owned()));
    let url = url.unwrap();
    assert!(listens(&url));
    task.kill().unwrap();
    task.wait().unwrap();
    while listens(&url) {
        std::thread::yield_now();
    }
}
