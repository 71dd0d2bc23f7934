//! The pure core of Surefoot: plans, expressions, the interpreter, the run state machine and the ports.
//!
//! No IO, no clock, no randomness: time and ids are arguments. The same arguments give the same answer.

mod cancel;
pub mod canonical;
mod code;
mod effect;
mod event;
pub mod expr;
mod id;
pub mod payload;
pub mod plan;
mod ports;
mod time;

pub use cancel::{Cancel, CancelSource};
pub use code::Code;
pub use effect::{EffectClass, EffectKey, EffectState, LostAttempt};
pub use event::{
    Dependency, Dispatch, EVENT_MAX_PAYLOAD_BYTES, Event, Invocation, SIGNAL_MAX_DATA_BYTES,
    START_EVENT, Signal,
};
pub use id::{App, EventId, IdError, RunId, Scope, SessionId, StepKey, VersionId, WorkflowKey};
pub use ports::{BoxFuture, Fence, FenceError, Source, StoreError};
pub use time::{DURATION_MAX, Micros, NotADuration, NotATime, Timestamp};

/// Executions in a row that may end badly before the run is exhausted; the default of a retry policy.
pub const RUN_MAX_CONSECUTIVE_FAILURES: u32 = 8;
