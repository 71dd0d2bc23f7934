//! How a store is opened.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;

use surefoot_kernel_core::StoreError;

use crate::clock::StoreClock;
use crate::migrate::MIGRATIONS;

/// How a store is opened: the database, and what may be tuned. The defaults are meant for production.
///
/// Durability is not among them: a write is on the disk when its call returns.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    pub(crate) connect: PgConnectOptions,
    pub(crate) create: bool,
    pub(crate) committers: usize,
    pub(crate) readers: usize,
    pub(crate) writers: usize,
    pub(crate) transactions: usize,
    pub(crate) lock_wait: Duration,
    pub(crate) transaction_limit: Duration,
    pub(crate) clock: StoreClock,
    pub(crate) migrations: Vec<&'static str>,
}

impl PostgresOptions {
    /// A database by its URL, `postgres://user:password@host:port/database`. What the URL leaves out is taken from the
    /// usual variables (`PGHOST`, `PGPASSWORD` and so on).
    ///
    /// # Errors
    /// `Unavailable` if the URL is none.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        let connect = PgConnectOptions::from_str(url);
        connect.map(Self::of).map_err(|error| StoreError::Unavailable(Box::new(error)))
    }

    /// A database by the driver's own options.
    #[must_use]
    pub fn of(connect: PgConnectOptions) -> Self {
        Self {
            connect: connect.disable_statement_logging().statement_cache_capacity(256),
            create: true,
            committers: 2,
            readers: 4,
            writers: 6,
            transactions: 8,
            lock_wait: Duration::from_secs(30),
            transaction_limit: Duration::from_secs(60),
            clock: StoreClock::default(),
            migrations: MIGRATIONS.to_vec(),
        }
    }

    /// Whether a database without the store's tables gets them. The default is to do so.
    #[must_use]
    pub fn create_if_missing(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Connections that write commits of runs, at least 1. The default is 2: right for a server with up to four cores.
    /// More of them make smaller batches.
    #[must_use]
    pub fn committers(mut self, committers: u32) -> Self {
        self.committers = seats(committers);
        self
    }

    /// Connections for reads, at least 1. The default is 4.
    #[must_use]
    pub fn readers(mut self, readers: u32) -> Self {
        self.readers = seats(readers);
        self
    }

    /// Connections for the kernel's writes besides commits, renewals and claims, at least 1. The default is 6.
    #[must_use]
    pub fn writers(mut self, writers: u32) -> Self {
        self.writers = seats(writers);
        self
    }

    /// Connections for transactions of the application and for transactional steps, at least 1. The default is 8: the
    /// ninth transaction waits until one of the eight has ended.
    #[must_use]
    pub fn transactions(mut self, transactions: u32) -> Self {
        self.transactions = seats(transactions);
        self
    }

    /// How long a write waits for a row that a transaction of the application has locked, before it fails as
    /// unavailable. The default is 30 s.
    #[must_use]
    pub fn lock_wait(mut self, lock_wait: Duration) -> Self {
        self.lock_wait = lock_wait;
        self
    }

    /// How long the transaction of a transactional step may last. The default is 60 s.
    #[must_use]
    pub fn transaction_limit(mut self, limit: Duration) -> Self {
        self.transaction_limit = limit;
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
}

fn seats(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX).max(1)
}
