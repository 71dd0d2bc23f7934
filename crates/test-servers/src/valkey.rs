//! Valkey.

use std::path::PathBuf;

use crate::account::Account;
use crate::given::VALKEY_PROGRAM;
use crate::ready::Ready;
use crate::server::{Parts, Program, Server};
use crate::{Error, port, programs};

/// A Valkey to start, on loopback only. It keeps nothing: a restart finds it empty, the worst that may happen.
#[derive(Debug, Clone)]
pub struct Valkey {
    program: Program,
}

impl Valkey {
    /// From its program.
    pub fn new(path: PathBuf) -> Self {
        Self { program: Program::new("Valkey", path) }
    }

    /// From the program that [`VALKEY_PROGRAM`] names.
    ///
    /// # Errors
    /// [`Error::NotGiven`].
    pub fn given() -> Result<Self, Error> {
        Ok(Self::new(programs(VALKEY_PROGRAM)?))
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

    /// Starts the server and waits until it answers.
    ///
    /// # Errors
    /// [`Error::Ended`] or [`Error::NotReady`] with the end of the log, [`Error::Io`], [`Error::NoAccount`],
    /// [`Error::NoFolder`].
    pub fn start(&self) -> Result<Server, Error> {
        port::retrying(|| {
            let account = Account::of_servers()?;
            let folder = self.program.folder("valkey", account)?;
            let port = port::free()?;
            let arguments = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port"];
            let mut arguments: Vec<_> = arguments.into_iter().map(Into::into).collect();
            arguments.push(port.to_string().into());
            let url = format!("redis://127.0.0.1:{port}/0");
            let ready = Ready::Pong { port };
            let parts = Parts { folder, account, arguments, ready, url };
            let mut server = Server::launch(&self.program, parts)?;
            server.until_ready().map(|()| server)
        })
    }
}
