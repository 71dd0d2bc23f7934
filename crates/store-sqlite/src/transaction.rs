//! Transactions of the application, and transactional steps.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteTransactionManager;
use sqlx_core::transaction::TransactionManager;
use tokio::sync::OwnedSemaphorePermit;

use surefoot_kernel_core::{Committed, Locked, Stamp, StoreError, Timestamp, TxWork, Work};

use crate::budget;
use crate::clock::StoreClock;
use crate::error::{Kind, is_busy, kind, store_error, unavailable};
use crate::file::OpenFile;
use crate::pool::{Borrowed, Pool};
use crate::run::commit::commit_one;
use crate::run::read::run_by_id;
use crate::writer::lock::{Pause, Turn, begin_immediate};

/// What statements of a transaction run on.
pub type SqliteTx = SqliteConnection;

/// Milliseconds that a transaction which this store opened may last: it holds the file's only write lock.
pub const TRANSACTION_LIMIT_MS: u64 = 2_000;
const TRANSACTION_LIMIT: Duration = Duration::from_millis(TRANSACTION_LIMIT_MS);

/// A savepoint around all that the application does. It is gone if the transaction ended behind our back: by a
/// `COMMIT` of the application, or by an error upon which SQLite rolls back.
const OPEN_GUARD: &str = "SAVEPOINT surefoot_open";
const RELEASE_GUARD: &str = "RELEASE surefoot_open";

/// An open transaction of the application that may write; dereferences to the connection. Rolls back when dropped.
///
/// It holds the file's only write lock: keep it short. Two seconds after it began its statements are interrupted
/// and it can no longer be committed ([`StoreError::TransactionTimeout`]); the lock is let go when it is dropped.
pub struct SqliteTransaction {
    conn: Borrowed,
    began: Instant,
    // After the connection, so that the next in turn rarely finds the lock still held.
    _turn: Option<OwnedSemaphorePermit>,
}

impl fmt::Debug for SqliteTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteTransaction").field("began", &self.began).finish_non_exhaustive()
    }
}

impl Deref for SqliteTransaction {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.conn
    }
}

impl DerefMut for SqliteTransaction {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.conn
    }
}

/// Where transactions of the application come from.
#[derive(Debug, Clone)]
pub(crate) struct Transactions {
    pub(crate) pool: Arc<Pool>,
    pub(crate) file: Arc<OpenFile>,
    pub(crate) turn: Turn,
    pub(crate) lock_wait: Duration,
    pub(crate) clock: StoreClock,
}

impl Transactions {
    /// Waits for the turn, then for the lock. Cancel safe: a connection that is not returned yet is closed.
    pub(crate) async fn begin(&self) -> Result<SqliteTransaction, StoreError> {
        self.file.check()?;
        let turn = tokio::time::timeout(self.lock_wait, self.turn.take()).await;
        let turn = turn.map_err(|_| unavailable("another transaction holds the write lock"))?;
        let mut conn = self.pool.borrow().await?;
        let mut pause = Pause::new(self.clock.now());
        let since = Instant::now();
        while let Err(error) = begin_immediate(&mut conn).await {
            if !is_busy(&error) {
                return Err(store_error(error));
            }
            if since.elapsed() >= self.lock_wait {
                return Err(StoreError::Unavailable(Box::new(error)));
            }
            tokio::time::sleep(pause.next()).await;
        }
        let began = Instant::now();
        // Later than the limit itself: whatever is interrupted is over.
        conn.limit().set(TRANSACTION_LIMIT + Duration::from_millis(5));
        sqlx::query(OPEN_GUARD).execute(&mut *conn).await.map_err(store_error)?;
        Ok(SqliteTransaction { conn, began, _turn: turn })
    }

    pub(crate) async fn run_transact(
        &self,
        before: Stamp,
        work: &mut dyn TxWork<SqliteTx>,
    ) -> Result<Option<Committed>, StoreError> {
        let mut open = self.begin().await?;
        let now = self.clock.now();
        let done = open.do_work(before, work, now).await;
        // Whatever came of it, an interrupted statement may be behind it.
        if open.is_over() {
            return Err(over());
        }
        match done {
            Ok(Work::Rollback) => {
                open.rollback().await;
                Ok(None)
            }
            Ok(Work::Commit(commit)) => {
                open.release_guard().await?;
                match commit_one(&mut open, &commit, self.clock.now()).await {
                    Ok(committed) => open.end().await.map(|()| Some(committed)),
                    Err(error) => {
                        open.rollback().await;
                        Err(error)
                    }
                }
            }
            Err(error) => {
                open.rollback().await;
                Err(error)
            }
        }
    }
}

impl SqliteTransaction {
    /// Commits.
    ///
    /// # Errors
    /// `TransactionTimeout`, `Refused`: rolled back. `UnknownOutcome`: nobody knows whether it committed.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        if self.is_over() {
            return Err(over());
        }
        self.release_guard().await?;
        self.end().await
    }

    /// Rolls back. Dropping does the same, and costs a connection.
    pub async fn rollback(mut self) {
        // With savepoints of the application inside, one level is not enough: the connection is closed instead.
        if SqliteTransactionManager::get_transaction_depth(&self.conn) == 1
            && SqliteTransactionManager::rollback(&mut self.conn).await.is_ok()
        {
            self.conn.give_back();
        }
    }

    fn is_over(&self) -> bool {
        self.began.elapsed() >= TRANSACTION_LIMIT
    }

    /// Has the work done within the transaction's time.
    async fn do_work(
        &mut self,
        before: Stamp,
        work: &mut dyn TxWork<SqliteTx>,
        now: Timestamp,
    ) -> Result<Work, StoreError> {
        let deadline = tokio::time::Instant::from_std(self.began + TRANSACTION_LIMIT);
        // A run that was deleted has no holder any more.
        let (_, run) = run_by_id(&mut self.conn, before.run).await?.ok_or(StoreError::LeaseLost)?;
        before.check(&run)?;
        let budget = budget::read(&mut self.conn, run.origin.root).await?;
        let work = work.work(&mut self.conn, Locked { run, budget, now });
        tokio::time::timeout_at(deadline, work).await.map_err(|_| over())
    }

    /// Whether what is about to be committed is what the application did, and nothing less.
    async fn release_guard(&mut self) -> Result<(), StoreError> {
        if SqliteTransactionManager::get_transaction_depth(&self.conn) != 1 {
            return Err(unavailable("a transaction inside of this one is still open"));
        }
        let released = sqlx::query(RELEASE_GUARD).execute(&mut *self.conn).await;
        released.map(drop).map_err(|error| match kind(&error) {
            Kind::Interrupted => over(),
            Kind::Refused | Kind::Conflict | Kind::Unavailable => {
                StoreError::UnknownOutcome(Box::new(error))
            }
        })
    }

    async fn end(mut self) -> Result<(), StoreError> {
        match SqliteTransactionManager::commit(&mut self.conn).await {
            Ok(()) => {
                self.conn.give_back();
                Ok(())
            }
            // A deferred constraint of the application: the transaction is still open, and is rolled back.
            Err(error) if kind(&error) == Kind::Refused => {
                self.rollback().await;
                Err(StoreError::Refused(Box::new(error)))
            }
            Err(error) => Err(StoreError::UnknownOutcome(Box::new(error))),
        }
    }
}

fn over() -> StoreError {
    StoreError::TransactionTimeout { limit_ms: TRANSACTION_LIMIT_MS }
}
