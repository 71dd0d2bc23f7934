//! Workers on a store in memory, with virtual time.

mod actions;
mod plans;
mod store;
mod world;

mod cancel;
mod claims;
mod classes;
mod effects;
mod executor;
mod handle;
mod leases;
mod operators;
mod poison;
mod pool;
mod transactions;
mod twice;
mod waits;
