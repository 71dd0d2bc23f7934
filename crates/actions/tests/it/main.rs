//! The actions against real servers and real stores.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has found something")]

mod ai;
mod broker;
mod certificates;
mod database;
mod docs;
mod documented;
mod events;
mod factories;
mod hostile;
mod kill;
mod matrix;
mod openai;
mod ready_made;
mod server;
mod thinker;
mod workflows;
