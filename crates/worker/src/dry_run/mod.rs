//! Dry runs: what a version would do, previewed by the application's actions.
//!
//! A room of its own beside the engine: what is held here is [`Previews`](surefoot_language::Previews), which has no way to
//! an effect. Sessions, leases and stops are those of the engine.

mod context;
mod drive;
mod error;
mod preview;
mod scoped;
mod session;
mod worker;

pub use error::DryRunError;
pub use worker::DryRunWorker;
