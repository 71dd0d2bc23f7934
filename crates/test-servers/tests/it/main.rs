//! Real servers. What the environment names must be there: `cargo xtask test` sees to it.

mod nats;
mod postgres;
mod probe;
mod valkey;
