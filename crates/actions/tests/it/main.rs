//! The actions against real servers and real stores.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has found something")]

mod certificates;
mod hostile;
mod server;
mod workflows;
