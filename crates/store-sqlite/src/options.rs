//! How a store is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};

use crate::clock::StoreClock;
use crate::migrate::MIGRATIONS;

/// How a store is opened: the file, and what may be tuned. The defaults are meant for production.
///
/// Durability is not among them: a write is on the disk when its call returns.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    pub(crate) path: PathBuf,
    pub(crate) readers: u32,
    pub(crate) lock_wait: Duration,
    pub(crate) create: bool,
    pub(crate) beside: bool,
    pub(crate) clock: StoreClock,
    pub(crate) migrations: Vec<&'static str>,
    pub(crate) synchronous: SqliteSynchronous,
}

impl SqliteOptions {
    /// A database file on a local disk; created if it is missing, in a folder that exists.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            readers: 4,
            lock_wait: Duration::from_secs(30),
            create: true,
            beside: false,
            clock: StoreClock::default(),
            migrations: MIGRATIONS.to_vec(),
            synchronous: SqliteSynchronous::Full,
        }
    }

    /// Connections for reads, at least 1. The default is 4.
    #[must_use]
    pub fn readers(mut self, readers: u32) -> Self {
        self.readers = readers.max(1);
        self
    }

    /// How long a write waits while another process, or a transaction of the application, holds the write lock,
    /// before it fails as unavailable. The default is 30 s.
    #[must_use]
    pub fn lock_wait(mut self, lock_wait: Duration) -> Self {
        self.lock_wait = lock_wait;
        self
    }

    /// Whether a missing file is created, and an empty one gets the store's tables. The default is to do so.
    #[must_use]
    pub fn create_if_missing(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Whether the store's tables may go into a file that has tables of somebody else, such as the application's own.
    /// The default is to refuse that: a slip of the pen must not put tables into another program's database. Once the
    /// store's tables are there, other tables make no difference.
    #[must_use]
    pub fn beside_other_tables(mut self, beside: bool) -> Self {
        self.beside = beside;
        self
    }

    /// One more migration after those of this build, as a later build has it. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn also_migrate(mut self, migration: &'static str) -> Self {
        self.migrations.push(migration);
        self
    }

    /// Microseconds that are added to the store's clock, readable and writable while the store is open. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn clock_offset(mut self, offset: Arc<AtomicI64>) -> Self {
        self.clock = StoreClock::new(offset);
        self
    }

    /// A store whose file does not outlive it needs no flush.
    pub(crate) fn ephemeral(mut self) -> Self {
        self.synchronous = SqliteSynchronous::Off;
        self
    }

    /// For every connection after the first: the file is there, wherever the process goes, and none is created in its place.
    pub(crate) fn of_open_file(mut self) -> Self {
        self.create = false;
        if let Ok(path) = std::path::absolute(&self.path) {
            self.path = path;
        }
        self
    }

    /// Options of a connection. Statements are never logged: they carry payloads.
    pub(crate) fn connect(&self, busy_timeout: Duration) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(&self.path)
            .create_if_missing(self.create)
            .foreign_keys(true)
            .synchronous(self.synchronous)
            .busy_timeout(busy_timeout)
            .statement_cache_capacity(400)
            .thread_name(|id| format!("surefoot-sqlite-{id}"))
            .disable_statement_logging()
    }

    /// Options of a connection that cannot write.
    pub(crate) fn connect_reader(&self) -> SqliteConnectOptions {
        self.connect(Duration::from_secs(5)).pragma("query_only", "ON")
    }
}
