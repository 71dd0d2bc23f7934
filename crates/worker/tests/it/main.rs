//! Workers on a store in memory, with virtual time.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test that panics has found something"
)]

mod actions;
mod plans;
mod store;
mod world;

mod ahead;
mod budgets;
mod cancel;
mod catch;
mod children;
mod claims;
mod classes;
mod dry_runs;
mod effects;
mod executor;
mod fleet;
mod handle;
mod leases;
mod metrics;
mod operators;
mod poison;
mod pool;
mod retention;
mod schedules;
mod transactions;
mod triggers;
mod twice;
mod values;
mod waits;
