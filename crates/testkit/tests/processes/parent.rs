//! A child process, as its parent sees it.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::app::Place;
use crate::child::{DIES, FOLDER, ROLE};

/// Far longer than anything here takes: what is not there by then never comes.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Child {
    process: std::process::Child,
    stdin: Option<ChildStdin>,
    said: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Child {
    pub(crate) fn start(place: &Place, role: &str, dies: Option<&str>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        // With one test thread the runner begins a line before the test does.
        command.args(["--exact", "child::child", "--nocapture", "--test-threads=2"]);
        command.env(ROLE, role).env(FOLDER, place.file("")).env_remove(DIES);
        if let Some(dies) = dies {
            command.env(DIES, dies);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut process = command.spawn().unwrap();
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take().unwrap());
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = said.clone();
        let reader = std::thread::spawn(move || {
            let mut lines = BufReader::new(stdout);
            let mut line = String::new();
            // A line that the kill cut off was not said.
            while lines.read_line(&mut line).is_ok_and(|bytes| bytes > 0) && line.ends_with('\n') {
                heard.lock().unwrap().push(line.trim_end().to_owned());
                line.clear();
            }
        });
        Self { process, stdin, said, reader: Some(reader) }
    }

    /// What it said, so far.
    pub(crate) fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits until it has said this.
    pub(crate) fn wait_for(&self, what: &str) {
        until(what, || self.said().iter().any(|line| line == what));
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
    }

    /// Asks it to stop in order.
    pub(crate) fn tell_to_stop(&mut self) {
        drop(self.stdin.take());
    }

    /// Waits until it is gone, and says what it said and how it ended.
    pub(crate) fn join(mut self) -> (Vec<String>, ExitStatus) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < PATIENCE, "the child does not end: {:?}", self.said());
            std::thread::sleep(Duration::from_millis(1));
        };
        self.reader.take().unwrap().join().unwrap();
        (self.said(), status)
    }

    /// Waits until it has been killed.
    pub(crate) fn join_killed(self) -> Vec<String> {
        let (said, status) = self.join();
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "{status} {said:?}");
        said
    }
}

impl Drop for Child {
    /// A test that fails leaves nothing running.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits for a condition in the real world.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
