//! Processes that are killed, stopped and started again, on one file.
//!
//! A child is this very binary, run again for the one test `child::child`, which does nothing unless the environment
//! says what to do.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that fails panics")]

mod app;
mod blocked;
mod child;
mod file;
mod kills;
mod parent;
mod pauses;
mod retire;
