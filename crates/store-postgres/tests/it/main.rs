//! The store on PostgreSQL, from outside. It needs a server: `DATABASE_URL` names a database of it, whose user may
//! create others. `cargo xtask test` starts one.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may unwrap and panic like the tests themselves"
)]

mod commits;
mod contention;
mod crash;
mod database;
mod differential;
mod encryption;
mod events;
mod families;
mod faults;
mod lists;
mod matrix;
mod migration;
mod notices;
mod pool;
mod pooler;
mod processes;
mod published;
mod races;
mod restart;
mod retention;
mod schema;
mod simulation;
mod statements;
mod suite;
mod support;
mod transactions;
mod unknown;
mod volume;
mod wire;
