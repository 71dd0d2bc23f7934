//! On which store the application runs. No other file names it: they say [`AppStore`] and [`AppTx`], in SQL that both
//! stores understand (`$1` for the first value, whole numbers of 64 bits).

use surefoot::prelude::*;

pub use surefoot::sqlite::sqlx;

/// Where runs and the application's tables are.
pub type AppStore = SqliteStore;
/// What statements run on inside a transaction of it.
pub type AppTx = SqliteTx;

/// The application's tables.
pub const SCHEMA: &str = include_str!("../schema.sql");
/// How the command line names the store that [`open`] opens.
pub const ARGUMENT: &str = "sqlite:inventory.db";

/// Opens the store of the program.
///
/// # Errors
/// The file cannot be used.
pub async fn open() -> Result<AppStore, StoreError> {
    AppStore::open("inventory.db").await
}
