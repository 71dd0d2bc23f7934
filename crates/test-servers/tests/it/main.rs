//! Real servers. What the environment names must be there: `cargo xtask test` sees to it.
#![expect(clippy::unwrap_used, reason = "helpers of tests may unwrap like the tests themselves")]

mod nats;
mod postgres;
mod probe;
mod proxy;
mod tied;
mod valkey;
