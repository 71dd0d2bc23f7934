//! The ports: what the kernel asks of the world. Small, behaviour-defining, without default bodies.
//!
//! What each method promises is proved by the store suite of `surefoot-testkit`, which every adapter runs.

mod children;
mod commit;
mod edge;
mod error;
mod events;
mod operator;
mod plans;
mod retention;
mod runs;
mod tasks;
mod transaction;

use std::future::Future;
use std::pin::Pin;

pub use children::{
    ChildStore, ChildrenCreated, ChildrenOn, ChildrenPage, ChildrenRequest, CreateChildren,
    GroupRow,
};
pub use commit::{Audit, Commit, Committed, JournalEntry, JournalText};
pub use edge::{Clock, Ids, Measure, NotWritten, PassTime, Trace, ValueResolver, WakeBus};
pub use error::{EmitError, FenceError, PublishError, SignalError, Source, StoreError};
pub use events::{Dispatched, Eager, Emission, Emit, EventStore, SendSignal, SignalSent};
pub use operator::{
    AppHealth, AuditRow, EffectRow, EventFilter, EventRow, EventStatus, JournalPage, OperatorStore,
    Page, RunCount, RunDetail, RunFilter, RunRow, RunSpan, SessionRow, SignalRow, Standing,
    StoreFact, TIMELINE_MAX_SLICES,
};
pub use plans::{
    Activate, Activation, ActivationSet, PlanStore, Publish, Published, ScheduleRow, Schedules,
    SetActivation, StoredVersion, WorkflowRow,
};
pub use retention::{
    Delete, Deleted, Expired, OpenEffectRow, Place, Prunable, Prune, Pruned, Redrive, Redriven,
    RetentionError, RetentionStore,
};
pub use runs::{
    CLAIM_MAX_BYTES, ClaimRequest, CreateDryRun, LoadRequest, Recovered, RenewRequest, Renewed,
    RunStore, Scan, SessionReport, Stored, TakeOverRequest, WorkDue,
};
pub use tasks::{
    ClaimTasks, NewTask, TASK_SIGNAL, Task, TaskEnd, TaskEnded, TaskHold, TaskState, TaskStore,
};
pub use transaction::{Fence, Locked, TxStore, TxWork, Work};

/// A boxed future, as object-safe ports return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
