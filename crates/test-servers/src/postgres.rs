//! PostgreSQL.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::account::Account;
use crate::folder::Folder;
use crate::given::{POSTGRES_15_PROGRAMS, POSTGRES_PROGRAMS};
use crate::ready::Ready;
use crate::server::{Parts, Program, Server};
use crate::{Error, port, programs};

/// Loopback only, no sockets in folders of other people, and room for many tests at once.
const SETTINGS: [&str; 3] =
    ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=300"];
/// After a crash the server sees to it that all its files are on the disk: the whole disk at once is far faster.
#[cfg(target_os = "linux")]
const RECOVERY: &[&str] = &["recovery_init_sync_method=syncfs"];
#[cfg(not(target_os = "linux"))]
const RECOVERY: &[&str] = &[];
/// Nothing waits for the disk.
const UNSYNCED: [&str; 3] = ["fsync=off", "full_page_writes=off", "synchronous_commit=off"];

/// A PostgreSQL to start. The superuser is `postgres` and needs no password; it listens on loopback only.
#[derive(Debug, Clone)]
pub struct Postgres {
    program: Program,
    settings: Vec<String>,
    tls: Option<Tls>,
}

/// What a server shows to clients, as PEM.
#[derive(Debug, Clone)]
struct Tls {
    certificate: String,
    key: String,
}

impl Postgres {
    /// From the folder with its programs.
    pub fn new(programs: PathBuf) -> Self {
        Self {
            program: Program::new("PostgreSQL", programs.join("postgres")),
            settings: Vec::new(),
            tls: None,
        }
    }

    /// From the folder that [`POSTGRES_PROGRAMS`] names.
    ///
    /// # Errors
    /// [`Error::NotGiven`].
    pub fn given() -> Result<Self, Error> {
        Ok(Self::new(programs(POSTGRES_PROGRAMS)?))
    }

    /// PostgreSQL 15, the oldest that is supported, from the folder that [`POSTGRES_15_PROGRAMS`] names.
    ///
    /// # Errors
    /// [`Error::NotGiven`].
    pub fn given_15() -> Result<Self, Error> {
        Ok(Self::new(programs(POSTGRES_15_PROGRAMS)?))
    }

    /// Without waiting for the disk: for tests that never crash the server.
    #[must_use]
    pub fn unsynced(mut self) -> Self {
        self.settings.extend(UNSYNCED.map(str::to_owned));
        self
    }

    /// It ends with the thread that starts it, however that ends, on systems that can do so.
    #[must_use]
    pub fn tied(mut self) -> Self {
        self.program.tied = true;
        self
    }

    /// Its folder is made in this one, which everybody can reach: see [`services_folder`](crate::services_folder).
    #[must_use]
    pub fn inside(mut self, folder: PathBuf) -> Self {
        self.program.root = Some(folder);
        self
    }

    /// One more setting, `name=value`.
    #[must_use]
    pub fn set(mut self, setting: &str) -> Self {
        self.settings.push(setting.to_owned());
        self
    }

    /// It takes encrypted connections as well, with this certificate and key, as PEM.
    #[must_use]
    pub fn tls(mut self, certificate: &str, key: &str) -> Self {
        self.tls = Some(Tls { certificate: certificate.to_owned(), key: key.to_owned() });
        self.set("ssl=on")
    }

    /// Makes a data folder, starts the server and waits until it takes connections.
    ///
    /// # Errors
    /// [`Error::Ended`] or [`Error::NotReady`] with the end of the log, [`Error::Io`], [`Error::NoAccount`],
    /// [`Error::NoFolder`].
    pub fn start(&self) -> Result<Server, Error> {
        port::retrying(|| {
            let mut server = self.launch()?;
            server.until_ready().map(|()| server)
        })
    }

    fn launch(&self) -> Result<Server, Error> {
        let account = Account::of_servers()?;
        let folder = self.program.folder("postgres", account)?;
        let data = folder.path().join("data");
        self.init(&data, &folder, account)?;
        if let Some(Tls { certificate, key }) = &self.tls {
            // Under the names that the server looks for.
            secret(&data.join("server.crt"), certificate, account)?;
            secret(&data.join("server.key"), key, account)?;
        }
        let port = port::free()?;
        let mut arguments: Vec<OsString> = vec!["-D".into(), data.clone().into()];
        arguments.extend(["-p".into(), port.to_string().into()]);
        let fixed = SETTINGS.iter().chain(RECOVERY).copied();
        for setting in fixed.chain(self.settings.iter().map(String::as_str)) {
            arguments.extend(["-c".into(), setting.into()]);
        }
        let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
        let ready = Ready::Postmaster { data };
        Server::launch(&self.program, Parts { folder, account, arguments, ready, url })
    }

    fn init(&self, data: &Path, folder: &Folder, account: Account) -> Result<(), Error> {
        let path = self.program.path.with_file_name("initdb");
        let mut command = Command::new(&path);
        account.run(&mut command);
        command.arg("-D").arg(data).args(["-U", "postgres", "-A", "trust", "-E", "UTF8"]);
        command.args(["--locale=C", "--no-sync"]);
        command.current_dir(folder.path()).env("LC_ALL", "C").stdin(Stdio::null());
        let output = command.output().map_err(Error::io("start", &path))?;
        if output.status.success() {
            return Ok(());
        }
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(Error::Ended { name: "initdb", status: output.status, log })
    }
}

/// A file that only the server reads.
fn secret(path: &Path, text: &str, account: Account) -> Result<(), Error> {
    let mut options = File::options();
    let file = options.create_new(true).write(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(Error::io("write", path))?;
    account.own(path)
}
