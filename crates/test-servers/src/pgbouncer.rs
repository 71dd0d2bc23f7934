//! PgBouncer: a pooler between clients and a PostgreSQL.

use std::fs;
use std::path::PathBuf;

use crate::account::Account;
use crate::given::PGBOUNCER_PROGRAM;
use crate::proxy::upstream;
use crate::ready::Ready;
use crate::server::{Parts, Program, Server};
use crate::{Error, port, programs};

/// For how long a client has a session of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// As long as it is connected.
    Session,
    /// For a transaction.
    Transaction,
}

/// A PgBouncer to start, on loopback only. Whoever connects is `postgres` on the server.
#[derive(Debug, Clone)]
pub struct PgBouncer {
    program: Program,
    pooling: Pooling,
    ignored: String,
}

impl PgBouncer {
    /// From its program. It refuses what it does not know of a client's first words.
    pub fn new(path: PathBuf, pooling: Pooling) -> Self {
        let program = Program::new("PgBouncer", path);
        Self { program, pooling, ignored: "extra_float_digits".to_owned() }
    }

    /// From the program that [`PGBOUNCER_PROGRAM`] names.
    ///
    /// # Errors
    /// [`Error::NotGiven`].
    pub fn given(pooling: Pooling) -> Result<Self, Error> {
        Ok(Self::new(programs(PGBOUNCER_PROGRAM)?, pooling))
    }

    /// It passes over this of a client's first words, instead of refusing it.
    #[must_use]
    pub fn ignore(mut self, parameter: &str) -> Self {
        self.ignored = format!("{},{parameter}", self.ignored);
        self
    }

    /// Starts it in front of the server with this URL, and waits until it listens.
    ///
    /// # Errors
    /// [`Error::Ended`] or [`Error::NotReady`] with the end of the log, [`Error::Io`], [`Error::NoAccount`],
    /// [`Error::NoFolder`].
    pub fn start(&self, url: &str) -> Result<Server, Error> {
        let server = upstream(url)?;
        port::retrying(|| {
            let account = Account::of_servers()?;
            let folder = self.program.folder("pgbouncer", account)?;
            let port = port::free()?;
            let path = folder.path().join("pgbouncer.ini");
            let (host, of_server) = (server.ip(), server.port());
            let mode = match self.pooling {
                Pooling::Session => "session",
                Pooling::Transaction => "transaction",
            };
            let ignored = &self.ignored;
            let settings = format!(
                "[databases]\n* = host={host} port={of_server} user=postgres\n\
                 [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
                 auth_type = any\npool_mode = {mode}\nignore_startup_parameters = {ignored}\n"
            );
            fs::write(&path, settings).map_err(Error::io("write", &path))?;
            account.own(&path)?;
            let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
            let (arguments, ready) = (vec![path.into()], Ready::Listens { port });
            let mut server =
                Server::launch(&self.program, Parts { folder, account, arguments, ready, url })?;
            server.until_ready().map(|()| server)
        })
    }
}
