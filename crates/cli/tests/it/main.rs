//! The real binary on a real file: golden outputs, exit codes, and what must never change anything.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has found something")]

mod acting;
mod authoring;
mod database;
#[cfg(feature = "demo")]
mod demo;
mod dry_running;
mod harmless;
mod judging;
mod looking;
mod operating;
mod places;
mod refusals;
mod resuming;
mod retaining;
mod running;
mod secrets;
mod serving;
mod shell;
mod starting;
mod supplier;
mod syncing;
mod tracing;
