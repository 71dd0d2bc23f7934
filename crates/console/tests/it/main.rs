//! The HTTP API over real sockets, on the store in memory. Every answer is checked against the description.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test that panics has found something"
)]

mod access;
mod acting;
mod client;
mod described;
mod live;
mod looking;
mod metrics;
mod random;
mod starving;
mod strict;
mod trouble;
#[path = "../../../operator/tests/it/world.rs"]
mod world;
