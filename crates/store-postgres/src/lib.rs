//! The shared store of Surefoot: on PostgreSQL 15 to 18.
//!
//! Any number of processes on one database; its tables live in the schema `surefoot`, beside those of the
//! application. Every write is on the server's disk when its call returns. Commits of runs are gathered into one
//! statement; nothing that the kernel writes waits for an application's lock except what needs that very row.
//!
//! ```no_run
//! # async fn doc() -> Result<(), surefoot_kernel_core::StoreError> {
//! use surefoot_kernel_core::TxStore;
//! use surefoot_store_postgres::{PostgresStore, sqlx};
//!
//! let store = PostgresStore::open("postgres://inventory@localhost/inventory").await?;
//! let mut tx = store.begin().await?;
//! let booked = sqlx::query("UPDATE stock SET on_hand = on_hand - 1").execute(&mut *tx).await;
//! if booked.is_ok() {
//!     tx.commit().await?;
//! }
//! # Ok(())
//! # }
//! ```

mod budget;
mod child;
mod clock;
mod composite;
mod error;
mod event;
mod fence;
mod keys;
mod migrate;
mod operator;
mod options;
mod plan;
mod pool;
mod ports;
mod retention;
mod run;
mod sql;
mod store;
mod task;
mod transaction;
mod wake;
mod writer;

pub use sqlx;

pub use options::PostgresOptions;
pub use store::PostgresStore;
pub use transaction::{PostgresTransaction, PostgresTx};
pub use wake::PostgresWake;

/// Every statement by name, for the tests that prepare and explain them.
#[doc(hidden)]
#[must_use]
pub fn statements() -> Vec<(&'static str, &'static str)> {
    sql::all()
}

/// The composite types that rows are sent as, with their attributes, for the test that compares them with the schema.
#[doc(hidden)]
#[must_use]
pub fn composite_types() -> Vec<(&'static str, &'static [&'static str])> {
    [run::types().as_slice(), event::types().as_slice()].concat()
}

/// The migrations in order, for the tests of the schema.
#[doc(hidden)]
#[must_use]
pub fn migrations() -> &'static [&'static str] {
    migrate::MIGRATIONS
}
