//! One server as a process.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::Error;
use crate::account::Account;
use crate::folder::Folder;
use crate::ready::Ready;

/// How long a server may take until it answers; it is a second, unless the machine is very busy.
const START: Duration = Duration::from_secs(60);
/// How long a start is tried again whose program ends at once: after a kill, the memory that PostgreSQL's processes
/// share, or a port, may be in use for a moment.
const RESTART: Duration = Duration::from_secs(20);
/// How long a server may take to end by itself.
const STOP: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(10);
/// How much of a log an error shows.
const LOG_LINES: usize = 20;

/// What is run, and how.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) path: PathBuf,
    /// Ends with the thread that started it, however that ends.
    pub(crate) tied: bool,
    /// Where its folder is made, if not where the environment says.
    pub(crate) root: Option<PathBuf>,
    /// No file that it writes gets larger, in bytes.
    pub(crate) files: Option<u64>,
}

impl Program {
    pub(crate) fn new(name: &'static str, path: PathBuf) -> Self {
        Self { name, path, tied: false, root: None, files: None }
    }

    /// A folder for one server.
    pub(crate) fn folder(&self, name: &str, account: Account) -> Result<Folder, Error> {
        Folder::of_server(self.root.as_deref(), name, account)
    }
}

/// A server that runs until this value is dropped. Its folder, with all its data, goes with it.
///
/// Every method blocks the thread until what it does is done.
#[derive(Debug)]
pub struct Server {
    program: Program,
    arguments: Vec<OsString>,
    account: Account,
    ready: Ready,
    url: String,
    child: Option<Child>,
    // Dropped last: the process is gone by then.
    folder: Folder,
}

/// What a server is made of, besides its program.
pub(crate) struct Parts {
    pub(crate) folder: Folder,
    pub(crate) account: Account,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) ready: Ready,
    pub(crate) url: String,
}

impl Server {
    /// Starts the program, and does not wait for it.
    pub(crate) fn launch(program: &Program, parts: Parts) -> Result<Self, Error> {
        let Parts { folder, account, arguments, ready, url } = parts;
        let program = program.clone();
        let mut server = Self { program, arguments, account, ready, url, child: None, folder };
        server.spawn()?;
        Ok(server)
    }

    /// Where it is. This stays the same when it is started again.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The folder with its data and its log.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// How it ended, if it ended by itself.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.as_mut().and_then(|child| child.try_wait().ok().flatten())
    }

    /// SIGKILL, now. PostgreSQL's other processes notice within moments, and end as well.
    ///
    /// # Errors
    /// [`Error::Io`] if the signal cannot be sent.
    pub fn kill(&mut self) -> Result<(), Error> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let killed = child.kill().and_then(|()| child.wait());
        killed.map(drop).map_err(Error::io("kill", &self.program.path))
    }

    /// Starts it on the same data and the same port, and waits until it is ready. One that still runs is killed first.
    ///
    /// # Errors
    /// [`Error::Ended`] or [`Error::NotReady`], with the end of its log.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.kill()?;
        let began = Instant::now();
        loop {
            self.spawn()?;
            match self.until_ready() {
                Err(Error::Ended { .. }) if began.elapsed() < RESTART => std::thread::sleep(POLL),
                answer => return answer,
            }
        }
    }

    /// From the next start on, no file that it writes gets larger: its writes fail as on a disk that is full. Needs no
    /// privilege.
    pub fn limit_files(&mut self, bytes: Option<u64>) {
        self.program.files = bytes;
    }

    /// Ends it in order: what it has is written first.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be told, or had to be killed and could not.
    pub fn stop(mut self) -> Result<(), Error> {
        self.end(Signal::INT)
    }

    /// SIGTERM, and waits until it is gone; it can be started again. PostgreSQL waits for its clients first, and is
    /// killed if they stay.
    ///
    /// # Errors
    /// [`Error::Io`] if the signal cannot be sent.
    pub fn terminate(&mut self) -> Result<(), Error> {
        self.end(Signal::TERM)
    }

    /// Waits until it takes work.
    pub(crate) fn until_ready(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        while began.elapsed() < START {
            if let Some(status) = self.ended() {
                self.child = None;
                let name = self.program.name;
                return Err(Error::Ended { name, status, log: self.log() });
            }
            if self.child.as_ref().is_some_and(|child| self.ready.ask(child.id())) {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
        let name = self.program.name;
        Err(Error::NotReady { name, waited_s: START.as_secs(), log: self.log() })
    }

    fn spawn(&mut self) -> Result<(), Error> {
        let path = self.folder.path().join("log");
        let log = File::options().create(true).append(true).open(&path);
        let log = log.map_err(Error::io("write", &path))?;
        let errors = log.try_clone().map_err(Error::io("write", &path))?;
        let mut command = command(&self.program);
        self.account.run(&mut command);
        command.args(&self.arguments).current_dir(self.folder.path());
        command.env("LC_ALL", "C").stdin(Stdio::null()).stdout(log).stderr(errors);
        let child = command.spawn().map_err(Error::io("start", &self.program.path))?;
        self.child = Some(child);
        Ok(())
    }

    fn end(&mut self, signal: Signal) -> Result<(), Error> {
        if let Some(child) = &mut self.child {
            let told = rustix::process::kill_process(Pid::from_child(child), signal);
            told.map_err(io::Error::from).map_err(Error::io("stop", &self.program.path))?;
            let began = Instant::now();
            while began.elapsed() < STOP {
                if child.try_wait().is_ok_and(|ended| ended.is_some()) {
                    self.child = None;
                    return Ok(());
                }
                std::thread::sleep(POLL);
            }
        }
        self.kill()
    }

    fn log(&self) -> String {
        let text = fs::read(self.folder.path().join("log")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.end(Signal::INT).is_err() {
            let _ = self.kill();
        }
    }
}

/// The program as a command. Where the system can tie a process to the thread that started it, it does so with a small
/// program that replaces itself by ours; elsewhere an interrupted task may leave a server behind.
fn command(program: &Program) -> Command {
    let path = &program.path;
    if program.tied && cfg!(target_os = "linux") {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "INT", "--"]).arg(path);
        return command;
    }
    if let Some(bytes) = program.files {
        // In blocks, as the shell counts them.
        let limit = format!("ulimit -S -f {} && exec \"$0\" \"$@\"", bytes / 512);
        let mut command = Command::new("sh");
        command.args(["-c", &limit]).arg(path);
        return command;
    }
    Command::new(path)
}
