//! The store: its handle, and how it is opened.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::{PgConnection, Row};

use surefoot_kernel_core::{BoxFuture, Micros, PassTime, StoreError, Timestamp};

use crate::clock::StoreClock;
use crate::error::{Fault, Said};
use crate::event::lane::EmitLane;
use crate::migrate::migrate;
use crate::options::PostgresOptions;
use crate::pool::{Pool, Use};
use crate::sql;
use crate::transaction::Transactions;
use crate::wake::PostgresWake;
use crate::writer::Writer;

/// A durable store in a PostgreSQL database. Clones are handles of the same store; any number of processes may share
/// the database.
///
/// Its writers are tasks of the runtime on which it was opened.
#[derive(Debug, Clone)]
pub struct PostgresStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: StoreClock,
    readers: Arc<Pool>,
    writer: Writer,
    emits: EmitLane,
    transactions: Transactions,
    wake: PostgresWake,
}

impl PostgresStore {
    /// Opens a database by its URL, and creates the store's schema or brings it up to date if need be.
    ///
    /// # Errors
    /// `Unavailable` if the server cannot be used, `SchemaTooNew` if a newer build wrote the schema.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        Self::open_with(PostgresOptions::new(url)?).await
    }

    /// Opens a database with options.
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub async fn open_with(options: PostgresOptions) -> Result<Self, StoreError> {
        migrate(&options).await?;
        let writer = Writer::start(&options);
        Ok(Self(Arc::new(Inner {
            readers: Pool::new(&options, Use::Kernel, options.readers),
            emits: EmitLane::start(&options, writer.clone()),
            writer,
            transactions: Transactions::new(&options),
            wake: PostgresWake::new(&options),
            clock: options.clock,
        })))
    }

    /// What tells workers of other processes that something is ready, and hears them.
    #[must_use]
    pub fn wake_bus(&self) -> PostgresWake {
        self.0.wake.clone()
    }

    /// How many connections are lent out: for reads, and for transactions of the application. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn lent(&self) -> (usize, usize) {
        (self.0.readers.lent(), self.0.transactions.lent())
    }

    /// How many batches of commits were written, how many entries they had, and how many of these were passed over since
    /// somebody had locked them. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn commit_stats(&self) -> (u64, u64, u64) {
        let stats = self.0.writer.stats();
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        (read(&stats.batches), read(&stats.entries), read(&stats.bounced))
    }

    pub(crate) fn writer(&self) -> &Writer {
        &self.0.writer
    }

    pub(crate) fn emits(&self) -> &EmitLane {
        &self.0.emits
    }

    pub(crate) fn transactions(&self) -> &Transactions {
        &self.0.transactions
    }

    pub(crate) fn clock(&self) -> &StoreClock {
        &self.0.clock
    }

    /// Reads.
    pub(crate) async fn read<T>(
        &self,
        read: impl for<'c> FnOnce(&'c mut PgConnection) -> BoxFuture<'c, Result<T, Fault>> + Send,
    ) -> Result<T, StoreError> {
        let mut conn = self.0.readers.borrow().await?;
        let done = read(&mut conn).await;
        if !matches!(done, Err(Fault(StoreError::Unavailable(_)))) {
            conn.give_back();
        }
        Ok(done?)
    }

    /// Reads, with the store's time.
    pub(crate) async fn read_now<T>(
        &self,
        read: impl for<'c> FnOnce(&'c mut PgConnection, Timestamp) -> BoxFuture<'c, Result<T, Fault>>
        + Send
        + 'static,
    ) -> Result<T, StoreError> {
        let clock = self.0.clock.clone();
        let read = self.read(move |conn| {
            Box::pin(async move {
                let now = now(conn, &clock).await?;
                read(conn, now).await
            })
        });
        read.await
    }
}

/// The store's time.
pub(crate) async fn now(conn: &mut PgConnection, clock: &StoreClock) -> Result<Timestamp, Fault> {
    let row = sqlx::query(sql::META_CLOCK).fetch_one(conn).await?;
    Ok(clock.at(row.try_get("now")?))
}

/// A page's cursor that is not one of ours.
pub(crate) fn not_a_cursor() -> StoreError {
    StoreError::Refused(Box::new(Said("the cursor is not one of this list")))
}

impl PassTime for PostgresStore {
    fn pass_time(&self, span: Micros) {
        self.0.clock.advance(span);
    }
}
