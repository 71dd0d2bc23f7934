//! A durable workflow kernel: a recorded outcome is never recomputed, an effect is never repeated and never silently dropped.
//!
//! This crate is the one dependency of an application. It gathers what is written elsewhere and defines nothing.
//!
//! ```
//! # #[cfg(feature = "sqlite")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use surefoot::prelude::*;
//!
//! #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
//! struct StockLow {
//!     item: String,
//!     missing: i64,
//! }
//! impl Trigger for StockLow {
//!     const KIND: &'static str = "stockLow";
//!     const EVENT: &'static str = "inventory.stockLow";
//! }
//!
//! // What authors of workflows may use: one method for each effect class.
//! let inventory = Module::builder("inventory", 1)
//!     .trigger::<StockLow>()
//!     .pure_fn("boxesFor", |low: StockLow| Ok((low.missing + 11) / 12))
//!     .build()?;
//!
//! // What they write: it can change without a build.
//! let reorder = r#"
//! inputs:
//!   item: { type: text, required: true }
//!   missing: { type: integer, required: true }
//! triggers:
//!   stockLow:
//!     with: { item: "${{ trigger.item }}", missing: "${{ trigger.missing }}" }
//! steps:
//!   - boxesFor: { item: "${{ inputs.item }}", missing: "${{ inputs.missing }}" }
//!     saveAs: boxes
//!   - succeed: { message: "Order ${{ boxes }} boxes of ${{ inputs.item }}" }
//! "#;
//!
//! let kernel = Kernel::new("inventory", SqliteStore::in_memory().await?);
//! let berlin = kernel.scope("berlin");
//! berlin.publish(inventory.manifest(), Publication::new("reorder", reorder)).await?;
//! let worker = kernel.worker(inventory).start().await?;
//!
//! let low = StockLow { item: "bolt".to_owned(), missing: 30 }.event();
//! let run = berlin.emit(low).await?.runs[0];
//! assert_eq!(kernel.await_run(run).await?.state(), RunState::Succeeded);
//! worker.stop(Duration::from_secs(1)).await;
//! # Ok(())
//! # }
//! ```
//!
//! `examples/inventory` is a whole application, with actions of every effect class.
#![cfg_attr(doctest, doc = include_str!("../../../docs/testing.md"))]
#![cfg_attr(doctest, doc = include_str!("../../../docs/embedding.md"))]

#[cfg(feature = "actions")]
pub use surefoot_actions as actions;
#[cfg(feature = "codec")]
pub use surefoot_codec as codec;
#[cfg(feature = "codec")]
pub use surefoot_codec::{
    CodecError, CodecStore, PayloadCodec, PayloadKind, PayloadPlace, WithCodec,
};
#[cfg(feature = "console")]
pub use surefoot_console as console;
pub use surefoot_kernel_core::plan::{Footprint, RetryPolicy};
pub use surefoot_kernel_core::{
    Amount, Amounts, App, BadName, BadTraceContext, Bill, BillCost, BillEnd, BillIssue, BoxFuture,
    BudgetLine, CHILD_DEPTH_MAX, CHILDREN_MAX, CHILDREN_MAX_BYTES, Cancel, Child, ChildResult,
    ChildStore, ChildrenCreated, ChildrenPage, Clock, Code, Dependency, Dispatch, EffectClass,
    EffectKey, EffectState, Emission, EmitError, Event, EventId, EventStore, Fact, Failure, Fence,
    FenceError, IdError, Ids, Invocation, JournalEntry, LoadRequest, Measure, Micros, NameRule,
    NotWritten, OperatorStore, Phase, PlanStore, PlannedEffect, PublishError, Published, Run,
    RunFilter, RunId, RunState, RunStore, SaidBy, Scope, SessionId, Signal, SignalError,
    SignalSent, StepKey, StoreError, Stored, Timestamp, Trace, TraceContext, TxStore,
    ValueResolver, VersionId, WakeBus, WorkflowKey,
};
pub use surefoot_language::{
    Access, Action, ActionDecl, ActionInput, ActionOutput, ActionResult, Ambiguous, AmbiguousCx,
    AmbiguousResult, AmbiguousResultExt, AmbiguousStop, AnyStore, Binding, Bindings, Classified,
    Classifiers, Cost, Fenced, Findings, Halt, Idempotent, IdempotentCx, InputDecl, Limits,
    Manifest, ManifestFinding, Module, ModuleBuilder, ModuleError, NotAManifest, On, PlanResult,
    Planned, Pure, PureCx, ReconcileResult, Reconciled, ResultExt, Resumed, RunsOn, SharedFence,
    StepCx, StepData, StepPort, Stop, Transactional, TransactionalCx, Trigger, TriggerDecl,
    compile,
};
#[cfg(feature = "otlp")]
pub use surefoot_otlp as otlp;
#[cfg(feature = "valkey")]
pub use surefoot_ratelimit_valkey as valkey;
#[cfg(feature = "postgres")]
pub use surefoot_store_postgres as postgres;
#[cfg(feature = "postgres")]
pub use surefoot_store_postgres::{PostgresStore, PostgresTx};
#[cfg(feature = "sqlite")]
pub use surefoot_store_sqlite as sqlite;
#[cfg(feature = "sqlite")]
pub use surefoot_store_sqlite::{SqliteStore, SqliteTx};
pub use surefoot_sync_core as sync;
#[cfg(feature = "nats")]
pub use surefoot_sync_nats as nats;
#[cfg(feature = "testkit")]
pub use surefoot_testkit as testkit;
pub use surefoot_worker::coordinate;
pub use surefoot_worker::{
    AfterCommit, AwaitError, CancelError, CancelOutcome, Claim, DryRunError, DryRunWorker, Gate,
    Health, Kernel, KernelBuilder, Metrics, Misfire, NotYet, Publication, Running, Scoped,
    StepInterest, SystemClock, SystemIds, Tick, Ticked, Worker, WorkerBuilder, WorkerError,
    WorkerWaker,
};

/// All that an application types: `use surefoot::prelude::*;`.
pub mod prelude {
    pub use crate::*;
}
