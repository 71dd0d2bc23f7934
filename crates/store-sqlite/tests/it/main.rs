//! The embedded store, from outside.
#![expect(clippy::unwrap_used, reason = "helpers of tests may unwrap like the tests themselves")]

mod basics;
mod cancel;
mod contention;
mod group;
mod lists;
mod migration;
mod retention;
mod schema;
mod statements;
mod suite;
mod support;
mod transactions;
mod waits;
