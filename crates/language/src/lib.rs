//! The authoring language and the typed half of Surefoot: YAML to plans, action traits, modules.

mod action;
mod answer;
mod bind;
mod binding;
mod check;
mod compile;
mod context;
mod diagnostic;
mod erased;
mod expression;
mod manifest;
mod module;
mod preview;
mod schema;
mod source;
mod yaml;

pub use action::{
    ActionInput, ActionOutput, Ambiguous, Idempotent, Pure, SETTLE_AFTER, Transactional, Trigger,
};
pub use answer::{
    Access, ActionResult, AmbiguousResult, AmbiguousResultExt, AmbiguousStop, AmbiguousStopParts,
    Classified, Classifiers, Cost, Halt, PlanResult, Planned, ReconcileResult, Reconciled,
    ResultExt, Stop, StopParts, StopsByQuestionMark, UnknownByQuestionMark,
};
pub use bind::{Bindings, bind, compile_and_bind};
pub use binding::{AnyStore, Binding, Fenced, Join, On, RunsOn};
pub use compile::{
    Compiled, ConfigRemark, Ir, JudgeConfig, check_beside, compile, compile_judged, next_due,
};
pub use context::{
    AmbiguousCx, ChildrenOnStep, Detached, IdempotentCx, PureCx, Resumed, StepCx, StepData,
    StepPort, TransactionalCx,
};
pub use diagnostic::{FINDING_CODES, Finding, Findings, Related, Severity};
pub use erased::{
    DynAmbiguous, DynEffect, DynIdempotent, DynPure, DynTransactional, FreeObject, Hook, HookError,
    InputError, Object, OnTx, OutputError, SharedFence,
};
pub use expression::{NotAnExpression, parse_expression, parse_expression_over};
pub use manifest::{
    ActionDecl, InputDecl, Limits, Manifest, ManifestFinding, NotAManifest, RESERVED_ACTION_NAMES,
    RESERVED_TRIGGER_KINDS, TriggerDecl,
};
pub use module::{Action, Loaded, Module, ModuleBuilder, ModuleError, PreviewAction, PreviewHooks};
pub use preview::Previews;
pub use schema::{BadSchema, CompiledSchema, SchemaFinding, close_schema, validate_against};
pub use source::Span;
pub use yaml::{KEY_MAX_CHARS, SOURCE_MAX_CHARS, SOURCE_MAX_DEPTH, SOURCE_MAX_NODES};
