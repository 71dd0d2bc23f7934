//! The kernel handle and the workers of Surefoot, on tokio.
//!
//! [`Kernel`] is what an application holds: it emits events, sends signals and builds workers. A [`Worker`] claims
//! runs and drives them; what a run does next is decided by the core, and nothing is acted on before the store has
//! said that what comes before it is durable.

mod builder;
pub mod coordinate;
mod dry_run;
mod engine;
mod error;
mod kernel;
mod metrics;
mod spans;
mod system;
mod worker;

pub use builder::{Claim, Gate, NotYet, WorkerBuilder};
pub use dry_run::{DryRunError, DryRunWorker};
pub use engine::LoopHealth;
pub use error::{AwaitError, CancelError, WorkerError};
pub use kernel::{
    AfterCommit, CancelOutcome, Kernel, KernelBuilder, Publication, Scoped, StepInterest,
    WorkerWaker,
};
pub use metrics::Metrics;
pub use spans::traced;
pub use surefoot_sync_core::Misfire;
pub use system::{SystemClock, SystemIds};
pub use worker::{Health, Running, Tick, Ticked, Worker};
