//! The reference model: one run, its store, its workers and its provider, small enough to be obviously right.
//!
//! A script of [`Op`]s is resolved against the [`World`] one by one; after each, everything that must hold is
//! checked. What counts as a failure: any [`Violation`]. What does not: rejected inputs, lost leases, conflicts,
//! repeated pure and idempotent calls, runs that end failed or in attention.
//!
//! Outside its control: real concurrency inside one operation of a store. That is the store suite's part.

mod family;
mod invariants;
mod strategies;
mod work;
mod world;

pub use invariants::{Violation, journaled_view};
pub use strategies::{any_fact, any_input, any_plan, any_script};
pub use world::{Op, Span, Verb, World};
