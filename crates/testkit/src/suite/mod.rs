//! The rules that every store keeps, as tests that any adapter runs.
//!
//! [`store_suite!`](crate::store_suite) expands to one test per rule, so that a failure names the rule. After each
//! rule the harness checks what must hold always: see [`check_invariants`].

pub mod begin;
pub mod budgets;
pub mod children;
pub mod crowds;
pub mod deletion;
pub mod dispatch;
pub mod effects;
pub mod events;
pub mod fence;
pub mod fidelity;
pub mod grandchildren;
mod invariants;
pub mod journal;
pub mod leases;
mod list;
pub mod operator;
pub mod plans;
pub mod recovery;
pub mod resume;
pub mod retention;
pub mod runs;
pub mod signals;
pub mod tasks;
pub mod timeline;
pub mod transactions;
pub mod waits;
mod world;

use std::future::Future;

use surefoot_kernel_core::{
    App, EventId, Micros, RunId, Scope, StoreError, TxStore, VersionId, WorkflowKey,
};

pub use invariants::check_invariants;
pub use world::World;

/// Makes stores of one kind for the suite, one data set per value.
pub trait StoreFactory: Sized + Send + Sync + 'static {
    /// The store.
    type Store: TxStore;

    /// Whether the store can read what it is given, so that it computes the inputs of new runs where their plans are
    /// known. One that gets only what is encoded leaves them to the worker.
    const READS_PAYLOADS: bool = true;

    /// A new, empty data set.
    fn fresh() -> impl Future<Output = Self> + Send;

    /// A handle on the data set. Each call gives what another process would have: nothing is shared but the data.
    fn open(&self) -> impl Future<Output = Self::Store> + Send;

    /// Lets the store's clock, the clock of record, gain a span, for every handle. SQL stores add an offset to their
    /// clock; a store on a virtual clock moves it.
    fn pass_time(&self, span: Micros) -> impl Future<Output = ()> + Send;

    /// Sets the store's clock back by a span, for every handle.
    fn turn_back(&self, span: Micros) -> impl Future<Output = ()> + Send;

    /// Writes a row of an application's table (text key and value, one row a key) on a transaction.
    fn write_row(
        tx: &mut <Self::Store as TxStore>::Tx,
        key: &str,
        value: &str,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Reads a row of that table, as committed.
    fn read_row(store: &Self::Store, key: &str) -> impl Future<Output = Option<String>> + Send;

    /// Does to the data what no port does.
    fn tamper(&self, tamper: Tamper) -> impl Future<Output = Tampered> + Send;
}

/// What no port does: what somebody with the database's password could do, or what a later port will.
#[derive(Debug, Clone, PartialEq)]
pub enum Tamper {
    /// Change the plan of a stored version.
    UpdateVersion(VersionId),
    /// Have the dispatch of an event fail.
    BreakDispatch(EventId),
    /// Undo that.
    MendDispatch(EventId),
    /// Disable one activation, as an operator would.
    DisableActivation {
        /// Whose.
        app: App,
        /// Where.
        scope: Scope,
        /// Of which workflow.
        workflow: WorkflowKey,
        /// Its key.
        activation: String,
    },
    /// Turn an execute run that nobody claimed yet into a dry one.
    MakeDryRun(RunId),
    /// Turn a run that nobody claimed yet into a child of another run's first step.
    MakeChild {
        /// The child.
        run: RunId,
        /// The parent.
        parent: RunId,
    },
    /// Have the groups of a run say that no child is live any more, and wake nobody.
    EndChildrenUnseen(RunId),
    /// Replace the facts of the journal row that begins at a sequence number.
    ReplaceFacts {
        /// Whose journal.
        run: RunId,
        /// The row.
        seq: u64,
        /// What stands there then.
        facts: String,
    },
    /// Remove the journal row that begins at a sequence number.
    RemoveFacts {
        /// Whose journal.
        run: RunId,
        /// The row.
        seq: u64,
    },
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tampered {
    /// Done.
    Done,
    /// The database itself refused.
    Refused,
    /// This factory cannot do it: what needs it is skipped, and says so.
    Unsupported,
}
