//! The authoring language and the typed half of Surefoot: YAML to plans, action traits, modules.

mod action;
mod answer;
mod binding;
mod context;
mod erased;
mod manifest;
mod module;
mod schema;

pub use action::{
    ActionInput, ActionOutput, Ambiguous, Idempotent, Pure, SETTLE_AFTER, Transactional, Trigger,
};
pub use answer::{
    Access, ActionResult, AmbiguousResult, AmbiguousResultExt, AmbiguousStop, AmbiguousStopParts,
    Classified, Classifiers, Cost, Halt, PlanResult, Planned, ReconcileResult, Reconciled,
    ResultExt, Stop, StopParts, StopsByQuestionMark, UnknownByQuestionMark,
};
pub use binding::{AnyStore, Binding, Fenced, Join, On, RunsOn};
pub use context::{
    AmbiguousCx, Detached, IdempotentCx, PureCx, Resumed, StepCx, StepData, StepPort,
    TransactionalCx,
};
pub use erased::{
    DynAmbiguous, DynEffect, DynIdempotent, DynPure, DynTransactional, FreeObject, Hook, HookError,
    InputError, Object, OutputError, SharedFence,
};
pub use manifest::{
    ActionDecl, InputDecl, Limits, Manifest, ManifestFinding, NotAManifest, RESERVED_ACTION_NAMES,
    RESERVED_TRIGGER_KINDS, TriggerDecl,
};
pub use module::{Action, Loaded, Module, ModuleBuilder, ModuleError};
pub use schema::{BadSchema, CompiledSchema, SchemaFinding, close_schema, validate_against};
