//! A durable workflow kernel: a recorded outcome is never recomputed, an effect is never repeated and never silently dropped.
//!
//! This crate is the one dependency of an application. It gathers what is written elsewhere and defines nothing.
//! Start with [`prelude`]; `examples/inventory` is a whole application.

pub use surefoot_kernel_core::{
    App, BoxFuture, Cancel, Clock, Code, Dependency, Dispatch, EffectClass, EffectKey, EffectState,
    Emission, EmitError, Event, EventId, EventStore, Fact, Failure, Fence, FenceError, IdError,
    Ids, Invocation, JournalEntry, LoadRequest, Micros, OperatorStore, Phase, PlanStore,
    PublishError, Published, Run, RunFilter, RunId, RunState, RunStore, SaidBy, Scope, SessionId,
    Signal, SignalError, SignalSent, StepKey, StoreError, Stored, Timestamp, Trace, TxStore,
    ValueResolver, VersionId, WakeBus, WorkflowKey,
};
pub use surefoot_language::{
    Access, Action, ActionDecl, ActionInput, ActionOutput, ActionResult, Ambiguous, AmbiguousCx,
    AmbiguousResult, AmbiguousResultExt, AmbiguousStop, AnyStore, Binding, Bindings, Classified,
    Cost, Fenced, Findings, Halt, Idempotent, IdempotentCx, Limits, Manifest, Module,
    ModuleBuilder, ModuleError, On, PlanResult, Planned, Pure, PureCx, ReconcileResult, Reconciled,
    ResultExt, Resumed, RunsOn, SharedFence, StepCx, StepData, StepPort, Stop, Transactional,
    TransactionalCx, Trigger, compile,
};
#[cfg(feature = "sqlite")]
pub use surefoot_store_sqlite as sqlite;
#[cfg(feature = "sqlite")]
pub use surefoot_store_sqlite::{SqliteStore, SqliteTx};
pub use surefoot_worker::{
    AfterCommit, AwaitError, CancelError, CancelOutcome, Claim, Gate, Health, Kernel,
    KernelBuilder, NotYet, Publication, Running, Scoped, StepInterest, Tick, Ticked, Worker,
    WorkerBuilder, WorkerError, WorkerWaker,
};

/// All that an application types: `use surefoot::prelude::*;`.
pub mod prelude {
    pub use crate::*;
}
