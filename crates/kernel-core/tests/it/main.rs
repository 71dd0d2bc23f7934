//! The core's properties for any script of inputs, and its decisions one by one.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test that panics has found something"
)]

mod ahead;
mod answers;
mod attention;
mod begin;
mod budget;
mod cancel;
mod catch;
mod children;
mod control;
mod drive;
mod limits;
mod properties;
mod sealed;
mod surveys;
mod values;
mod waits;
