//! The actions against real servers and real stores.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has found something")]

mod ai;
mod certificates;
mod database;
mod docs;
mod events;
mod hostile;
mod kill;
mod matrix;
mod openai;
mod server;
mod workflows;
