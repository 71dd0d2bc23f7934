//! The store on PostgreSQL, from outside. It needs a server: `DATABASE_URL` names a database of it, whose user may
//! create others. `cargo xtask test` starts one.
#![expect(clippy::unwrap_used, reason = "helpers of tests may unwrap like the tests themselves")]

mod commits;
mod contention;
mod crash;
mod database;
mod events;
mod families;
mod lists;
mod pool;
mod published;
mod races;
mod retention;
mod schema;
mod statements;
mod suite;
mod support;
mod transactions;
mod unknown;
mod wire;
