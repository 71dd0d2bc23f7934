//! The embedded store of Surefoot: durable, on SQLite, no server.
//!
//! One file, any number of processes. Every write is on the disk when its call returns. Inside a process one task
//! writes for the kernel and gathers what waits into one transaction; reads have connections of their own and never
//! wait for it.
//!
//! ```no_run
//! # async fn doc() -> Result<(), surefoot_kernel_core::StoreError> {
//! use surefoot_kernel_core::TxStore;
//! use surefoot_store_sqlite::{SqliteStore, sqlx};
//!
//! let store = SqliteStore::open("inventory.db").await?;
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
mod error;
mod event;
mod fence;
mod file;
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

pub use options::SqliteOptions;
pub use store::SqliteStore;
pub use transaction::{SqliteTransaction, SqliteTx, TRANSACTION_LIMIT_MS};
pub use wake::SqliteWake;

/// Every statement by name, for the tests that prepare and explain them.
#[doc(hidden)]
#[must_use]
pub fn statements() -> Vec<(&'static str, &'static str)> {
    sql::all()
}

/// The migrations in order, for the tests of the schema.
#[doc(hidden)]
#[must_use]
pub fn migrations() -> &'static [&'static str] {
    migrate::MIGRATIONS
}
