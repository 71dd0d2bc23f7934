//! A durable workflow kernel: a recorded outcome is never recomputed, an effect is never repeated and never silently dropped.
//!
//! This crate is the one dependency of an application. It gathers what is written elsewhere and defines nothing.

pub use surefoot_kernel_core::{
    BoxFuture, Code, Dependency, EffectKey, Event, Fence, FenceError, RunId, Signal, SignalError,
    StepKey, StoreError, TxStore,
};
pub use surefoot_language::*;
#[cfg(feature = "sqlite")]
pub use surefoot_store_sqlite as sqlite;

/// What an application types.
pub mod prelude {
    pub use crate::*;
    #[cfg(feature = "sqlite")]
    pub use surefoot_store_sqlite::SqliteTx;
}
