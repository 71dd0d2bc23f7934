//! The one generic port: what needs the application's transaction.

use std::future::Future;
use std::ops::DerefMut;
use std::sync::Arc;

use super::{
    BoxFuture, ChildStore, ChildrenOn, Commit, Committed, Emission, Emit, EmitError, EventStore,
    FenceError, OperatorStore, PlanStore, Publish, PublishError, Published, RetentionStore,
    RunStore, SendSignal, SignalError, SignalSent, StoreError,
};
use crate::{Budget, Run, RunId, Stamp, Timestamp};

/// Holds the run row on somebody's transaction until that transaction ends.
pub trait Fence<Tx>: Send + Sync {
    /// Checks generation and cancellation, and locks the run. Writes nothing when it refuses.
    fn hold<'a>(&'a self, tx: &'a mut Tx) -> BoxFuture<'a, Result<(), FenceError>>;
}

/// The work of a transactional step, as the store sees it.
pub trait TxWork<Tx>: Send {
    /// Called once the transaction is open and the run row, as given, is locked in it. The charge of its commit is
    /// made last and binds; what `locked` shows of the budget is for a look before the work.
    fn work<'a>(&'a mut self, tx: &'a mut Tx, locked: Locked) -> BoxFuture<'a, Work>;
}

/// What the work of a transactional step finds.
#[derive(Debug, Clone, PartialEq)]
pub struct Locked {
    /// The row.
    pub run: Run,
    /// The counters of its root run.
    pub budget: Budget,
    /// The store's time.
    pub now: Timestamp,
}

/// How the work of a transactional step ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Commit what was done on the transaction together with this.
    Commit(Box<Commit>),
    /// Roll everything back.
    Rollback,
}

/// What a store with transactions offers beside the object-safe ports.
pub trait TxStore:
    RunStore
    + ChildStore
    + EventStore
    + PlanStore
    + OperatorStore
    + RetentionStore
    + Clone
    + Send
    + Sync
    + 'static
{
    /// What statements run on inside a transaction (`sqlx::SqliteConnection`, `sqlx::PgConnection`).
    type Tx: Send + 'static;
    /// An open transaction of the application; dereferences to `Tx`; rolls back when dropped.
    type Open: DerefMut<Target = Self::Tx> + Send;

    /// Opens a transaction that may write. Cancel safe.
    fn begin(&self) -> impl Future<Output = Result<Self::Open, StoreError>> + Send;

    /// Commits a transaction that `begin` opened.
    ///
    /// # Errors
    /// `UnknownOutcome` if nobody knows whether it committed.
    fn commit(&self, open: Self::Open) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// [`EventStore::event_emit`] inside the caller's transaction. Never eager.
    fn event_emit_in(
        &self,
        tx: &mut Self::Tx,
        emit: Emit,
    ) -> impl Future<Output = Result<Emission, EmitError>> + Send;

    /// [`PlanStore::version_publish`] inside the caller's transaction.
    fn version_publish_in(
        &self,
        tx: &mut Self::Tx,
        publish: Publish,
    ) -> impl Future<Output = Result<Published, PublishError>> + Send;

    /// [`EventStore::signal_send`] inside the caller's transaction.
    fn signal_send_in(
        &self,
        tx: &mut Self::Tx,
        send: SendSignal,
    ) -> impl Future<Output = Result<SignalSent, SignalError>> + Send;

    /// Opens a transaction, checks the stamp, has the work done in it, and commits it with the work's commit.
    /// `None` means that the work asked for a rollback.
    ///
    /// # Errors
    /// `LeaseLost`, `Conflict`: the work was not called. `BudgetExceeded`: rolled back. `TransactionConflict`, `TransactionTimeout`: rolled back.
    /// `UnknownOutcome`: take the run over.
    fn run_transact(
        &self,
        before: Stamp,
        work: &mut dyn TxWork<Self::Tx>,
    ) -> impl Future<Output = Result<Option<Committed>, StoreError>> + Send;

    /// Creates children inside a transaction of the application, or of a transactional step.
    fn children_on(&self) -> Arc<dyn ChildrenOn<Self::Tx>>;

    /// The fence of a run for one generation.
    fn fence(&self, run: RunId, generation: u64) -> Arc<dyn Fence<Self::Tx>>;

    /// Whether an application's error, or one below it, says that the database refused a transaction in favour of
    /// another one (SQLSTATE 40001 and 40P01, SQLite's busy and 517).
    fn is_transaction_conflict(&self, error: &(dyn std::error::Error + 'static)) -> bool;
}
