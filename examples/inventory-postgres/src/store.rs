//! On which store the application runs. No other file names it: they say [`AppStore`] and [`AppTx`], in SQL that both
//! stores understand (`$1` for the first value, whole numbers of 64 bits).

use surefoot::prelude::*;

pub use surefoot::postgres::sqlx;

/// Where runs and the application's tables are.
pub type AppStore = PostgresStore;
/// What statements run on inside a transaction of it.
pub type AppTx = PostgresTx;

/// The application's tables.
pub const SCHEMA: &str = include_str!("../schema.sql");
