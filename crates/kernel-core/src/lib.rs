//! The pure core of Surefoot: plans, expressions, the interpreter, the run state machine and the ports.
//!
//! No IO, no clock, no randomness: time and ids are arguments. The same arguments give the same answer.
//!
//! The one promise: **a recorded outcome is never recomputed, and an effect that may have happened is never
//! repeated and never silently dropped.**

mod apply;
mod begin;
mod budget;
mod cancel;
pub mod canonical;
mod children;
mod code;
mod decide;
mod dry_run;
mod effect;
mod event;
mod explain;
pub mod expr;
mod fact;
mod id;
mod interpreter;
#[cfg(feature = "proptest")]
pub mod model;
mod name;
pub mod payload;
pub mod plan;
mod ports;
pub mod retention;
mod run;
mod time;
mod trace;
mod unseen;
mod values;

pub use apply::apply;
pub use begin::{Begun, Behind, Coming, Plans};
pub use budget::{
    AMOUNT_MAX, Amount, Amounts, Budget, BudgetLine, Counter, Exceeded, NotAnAmount, StepCharge,
};
pub use cancel::{Cancel, CancelSource};
pub use children::{
    CHILD_DEPTH_MAX, CHILDREN_MAX, CHILDREN_MAX_BYTES, CheckedChild, Child, ChildGroup, ChildMove,
    ChildResult, ChildVersion, Children, ChildrenError, Join, Joined, Revival, takes_results,
};
pub use code::Code;
pub use decide::{
    Answer, Call, Collect, Command, Decision, Durability, Held, Input, JOURNAL_MAX_BYTES,
    OUTPUT_MAX_BYTES, Prepared, RECONCILE_FIRST_AFTER, RELEASE_BACKOFF_FIRST, RELEASE_BACKOFF_MAX,
    Receipt, ReconcileAnswer, Rejection, RowInput, SETTLE_AFTER_DEFAULT, Sealed, Spawn, Unopened,
    Verdict, decide, decide_row, release_backoff,
};
pub use dry_run::{
    Bill, BillCost, BillEnd, BillIssue, DryCommand, DryDecision, DryHeld, DryInput, Finding,
    PlannedEffect, Previewed, Survey, decide_dry_run,
};
pub use effect::{EffectClass, EffectKey, EffectState, LostAttempt};
pub use event::{
    CheckedEvent, CheckedSignal, Dependency, Dispatch, EVENT_MAX_PAYLOAD_BYTES, EVENT_MAX_TAGS,
    Event, Invocation, SIGNAL_MAX_DATA_BYTES, START_EVENT, Signal, actor_of, check_event_type,
    is_schedule_event, schedule_event,
};
pub use explain::{
    ChildrenNote, Coverage, Deed, EXPLAIN_MAX_ITERATIONS, EXPLAIN_MAX_STEPS, EffectNote,
    EffectNotes, ExplainInput, Explanation, Iterations, LegalAction, PlanBranch, PlanStep, Reason,
    ReasonKind, Repeat, SESSION_LIVE_FOR, Shown, ShownError, StepState, explain,
    explain_with_steps, is_live, outline, shell_word, shown_steps, span_in_words,
    why_retry_is_in_vain,
};
pub use fact::{End, Fact, ReleaseReason, SaidBy, Taken};
pub use id::{App, EventId, IdError, RunId, Scope, SessionId, StepKey, VersionId, WorkflowKey};
pub use interpreter::{Cursor, LOOP_VALUE_MAX_BYTES, Next, RestoreInvalid};
pub use name::{BadName, NAME_MAX_CHARS, NameRule, REASON_MAX_CHARS, check_actor, check_tag};
pub use ports::{
    Activate, Activation, ActivationSet, AppHealth, Audit, AuditRow, BoxFuture, CLAIM_MAX_BYTES,
    ChildStore, ChildrenCreated, ChildrenOn, ChildrenPage, ChildrenRequest, ClaimRequest,
    ClaimTasks, Clock, Commit, Committed, CreateChildren, CreateDryRun, Delete, Deleted,
    Dispatched, Eager, EffectRow, Emission, Emit, EmitError, EventFilter, EventRow, EventStatus,
    EventStore, Expired, Fence, FenceError, GroupRow, Ids, JournalEntry, JournalPage, JournalText,
    LoadRequest, Locked, Measure, NewTask, NotWritten, OpenEffectRow, OperatorStore, Page,
    PassTime, Place, PlanStore, Prunable, Prune, Pruned, Publish, PublishError, Published,
    Recovered, Redrive, Redriven, RenewRequest, Renewed, RetentionError, RetentionStore, RunCount,
    RunDetail, RunFilter, RunRow, RunSpan, RunStore, Scan, ScheduleRow, Schedules, SendSignal,
    SessionReport, SessionRow, SetActivation, SignalError, SignalRow, SignalSent, Source, Standing,
    StoreError, StoreFact, Stored, StoredVersion, TASK_SIGNAL, TIMELINE_MAX_SLICES,
    TakeOverRequest, Task, TaskEnd, TaskEnded, TaskHold, TaskState, TaskStore, Trace, TxStore,
    TxWork, ValueResolver, WakeBus, Work, WorkDue, WorkflowRow,
};
pub use run::{
    Attention, CancelRequest, Failure, Fenced, Lease, Mode, OpenEffect, Origin, Parent, Phase,
    Resume, Run, RunState, Stamp, StepDeadline, Todo, Wait, Wake,
};
pub use time::{DURATION_MAX, Micros, NotADuration, NotATime, Timestamp};
pub use trace::{BadTraceContext, TraceContext};
pub use unseen::is_unseen;
pub use values::{RESOLVED_STEP_MAX_BYTES, RESOLVED_VALUE_MAX_BYTES, StepValues};

/// Executions in a row that may end badly before the run is exhausted; the default of a retry policy.
pub const RUN_MAX_CONSECUTIVE_FAILURES: u32 = 8;
