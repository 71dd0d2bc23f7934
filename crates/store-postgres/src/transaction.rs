//! Transactions of the application, and transactional steps.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::postgres::PgTransactionManager;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row, SqlSafeStr, SqlStr};
use sqlx_core::transaction::TransactionManager;

use surefoot_kernel_core::{
    Budget, Commit, Committed, Locked, Stamp, StoreError, Timestamp, TxWork, Work,
};

use crate::budget;
use crate::clock::StoreClock;
use crate::error::{
    Kind, Said, commit_error, is_of_no_transaction, kind, left_nothing, store_error, unavailable,
};
use crate::keys::Key;
use crate::options::PostgresOptions;
use crate::pool::{Borrowed, Pool, Use};
use crate::run::commit::commit_one;
use crate::run::fast::{Kept, Way, commit_in};
use crate::run::row::read_run;
use crate::sql;
use crate::store::now;

/// What statements of a transaction run on.
pub type PostgresTx = PgConnection;

/// A savepoint around all that the application does. It is gone if the transaction ended behind our back, by a `COMMIT`
/// of the application; and it cannot be released if a statement failed whose error was passed over.
const BEGIN: &str = "BEGIN; SAVEPOINT surefoot_open";
const RELEASE_GUARD: &str = "RELEASE surefoot_open";
/// What comes behind the work is the kernel's, and planned like the rest of it; if it is still the same transaction.
const TO_KERNEL: &str = "SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_generic_plan; \
     SELECT pg_current_xact_id_if_assigned()::text AS transaction";

/// An open transaction of the application; dereferences to the connection. Rolls back when dropped.
pub struct PostgresTransaction {
    conn: Borrowed,
}

impl fmt::Debug for PostgresTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresTransaction").finish_non_exhaustive()
    }
}

impl Deref for PostgresTransaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.conn
    }
}

impl DerefMut for PostgresTransaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.conn
    }
}

/// Where transactions of the application come from.
#[derive(Debug, Clone)]
pub(crate) struct Transactions {
    pool: Arc<Pool>,
    limit: Duration,
    clock: StoreClock,
}

impl Transactions {
    pub(crate) fn new(options: &PostgresOptions) -> Self {
        Self {
            pool: Pool::new(options, Use::Application, options.transactions),
            limit: options.transaction_limit,
            clock: options.clock.clone(),
        }
    }

    pub(crate) fn lent(&self) -> usize {
        self.pool.lent()
    }

    /// Cancel safe: a connection that is not returned yet is closed.
    pub(crate) async fn begin(&self) -> Result<PostgresTransaction, StoreError> {
        self.begin_with(BEGIN.into_sql_str()).await
    }

    async fn begin_with(&self, begin: SqlStr) -> Result<PostgresTransaction, StoreError> {
        let mut conn = self.pool.borrow().await?;
        let begun = PgTransactionManager::begin(&mut conn, Some(begin)).await;
        begun.map_err(store_error)?;
        Ok(PostgresTransaction { conn })
    }

    /// The transaction of a step has the run's row locked: one whose process stands still ends with its time. It is known
    /// by its number, which its first statement says: that is cheaper than a savepoint.
    fn begin_step(&self) -> SqlStr {
        let limit_ms = i32::try_from(self.limit.as_millis()).unwrap_or(i32::MAX).max(1);
        let limit = format!("SET LOCAL idle_in_transaction_session_timeout = {limit_ms}");
        AssertSqlSafe(format!("BEGIN; {limit}")).into_sql_str()
    }

    pub(crate) async fn run_transact(
        &self,
        before: Stamp,
        work: &mut dyn TxWork<PostgresTx>,
    ) -> Result<Option<Committed>, StoreError> {
        let began = Instant::now();
        let mut open = self.begin_with(self.begin_step()).await?;
        match self.do_work(&mut open, before, work).await {
            // Whatever the work was about, the connection may be in the middle of it.
            Err(error @ StoreError::TransactionTimeout { .. }) => Err(error),
            // An action that fails since its connection is gone has said nothing about its step.
            Ok((Work::Rollback, _)) => open.roll_back().await.map(|()| None),
            Ok((Work::Commit(_), _)) if began.elapsed() >= self.limit => Err(self.over()),
            Ok((Work::Commit(commit), transaction)) => {
                match self.commit_last(&mut open, &commit, &transaction).await {
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

    /// Has the work done within the transaction's time, with the run's row locked. Says in which transaction that was.
    async fn do_work(
        &self,
        open: &mut PostgresTransaction,
        before: Stamp,
        work: &mut dyn TxWork<PostgresTx>,
    ) -> Result<(Work, String), StoreError> {
        // A run that was deleted has no holder any more.
        let held = sqlx::query(sql::RUN_HOLD).bind(before.run.key());
        let held = held.fetch_optional(&mut **open).await.map_err(store_error)?;
        let held = held.ok_or(StoreError::LeaseLost)?;
        let (_, run) = read_run(&held)?;
        before.check(&run)?;
        let now = self.clock.at(held.try_get("now").map_err(store_error)?);
        let budget = if held.try_get("is_counted").map_err(store_error)? {
            budget::read(open, run.origin.root).await?
        } else {
            Budget::default()
        };
        let transaction = held.try_get("transaction").map_err(store_error)?;
        let work = work.work(open, Locked { run, budget, now });
        let work = tokio::time::timeout(self.limit, work).await.map_err(|_| self.over())?;
        Ok((work, transaction))
    }

    async fn commit_last(
        &self,
        open: &mut PostgresTransaction,
        commit: &Commit,
        transaction: &str,
    ) -> Result<Committed, StoreError> {
        open.check_depth()?;
        if Way::of(commit) <= Way::Move {
            let written = commit_in(commit, transaction, self.clock.offset())?;
            let written = written.fetch_optional(&mut **open).await.map_err(not_whole)?;
            if let Some(row) = written {
                let kept = Kept::read(&row).map_err(store_error)?;
                return Ok(kept.committed(commit.after.clone()));
            }
        }
        // The row says more than the commit does, or it is not the step's transaction any more.
        open.back_to_kernel(transaction).await?;
        let now: Timestamp = now(open, &self.clock).await?;
        commit_one(open, commit, now).await
    }

    fn over(&self) -> StoreError {
        let limit_ms = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
        StoreError::TransactionTimeout { limit_ms }
    }
}

impl PostgresTransaction {
    /// Commits.
    ///
    /// # Errors
    /// `Refused`, `TransactionConflict`: rolled back. `UnknownOutcome`: nobody knows whether it committed.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        self.release_guard().await?;
        self.end().await
    }

    /// Rolls back. Dropping does the same, and costs a connection.
    pub async fn rollback(self) {
        drop(self.roll_back().await);
    }

    /// The error says that the connection was lost before: then the server has rolled back.
    async fn roll_back(mut self) -> Result<(), StoreError> {
        // With savepoints of the application inside, one level is not enough: the connection is closed instead.
        if PgTransactionManager::get_transaction_depth(&self.conn) == 1 {
            PgTransactionManager::rollback(&mut self.conn).await.map_err(store_error)?;
            self.conn.give_back();
            Ok(())
        } else {
            self.conn.ping().await.map_err(store_error)
        }
    }

    /// Whether what is about to be committed is what the application did, and nothing less.
    async fn release_guard(&mut self) -> Result<(), StoreError> {
        self.check_depth()?;
        let released = sqlx::raw_sql(RELEASE_GUARD).execute(&mut *self.conn).await;
        released.map(drop).map_err(not_whole)
    }

    /// The same for the transaction of a step, by its number.
    async fn back_to_kernel(&mut self, transaction: &str) -> Result<(), StoreError> {
        let rows = sqlx::raw_sql(TO_KERNEL).fetch_all(&mut *self.conn).await.map_err(not_whole)?;
        let now: Option<String> =
            rows.first().map_or(Ok(None), |row| row.try_get("transaction")).map_err(not_whole)?;
        if now.as_deref() == Some(transaction) {
            return Ok(());
        }
        let said = Said("the application has ended the transaction of its step");
        Err(StoreError::UnknownOutcome(Box::new(said)))
    }

    fn check_depth(&self) -> Result<(), StoreError> {
        if PgTransactionManager::get_transaction_depth(&self.conn) == 1 {
            return Ok(());
        }
        Err(unavailable("a transaction inside of this one is still open"))
    }

    async fn end(mut self) -> Result<(), StoreError> {
        match PgTransactionManager::commit(&mut self.conn).await {
            Ok(()) => {
                self.conn.give_back();
                Ok(())
            }
            // A deferred constraint of the application, or a conflict: rolled back, and the connection is closed.
            Err(error) => Err(commit_error(error)),
        }
    }
}

/// Why the end of the application's part cannot be found as it should be.
fn not_whole(error: sqlx::Error) -> StoreError {
    match kind(&error) {
        Kind::Aborted => StoreError::Refused(Box::new(Said(
            "a statement of the transaction failed, and its error was passed over: rolled back",
        ))),
        // The server has refused it, and rolls back.
        Kind::Refused | Kind::Conflict | Kind::Locked | Kind::Unavailable
            if left_nothing(&error) && !is_of_no_transaction(&error) =>
        {
            store_error(error)
        }
        // The application has ended it, or may have.
        Kind::Refused | Kind::Conflict | Kind::Locked | Kind::Unavailable => {
            StoreError::UnknownOutcome(Box::new(error))
        }
    }
}
