//! The inventory application on PostgreSQL.
//!
//! Nothing here is written twice. What names the store's types is compiled again, from the same files; what does not is
//! that of `surefoot-inventory`. Only [`store`] is its own, and the tables in `schema.sql`.

#[path = "../../inventory/src/app.rs"]
mod app;
#[path = "../../inventory/src/database.rs"]
pub mod database;
#[path = "../../inventory/src/mail.rs"]
pub mod mail;
#[path = "../../inventory/src/quote/mod.rs"]
pub mod quote;
#[path = "../../inventory/src/stock.rs"]
pub mod stock;
pub mod store;

pub use surefoot_inventory::{bank, catalog, events, payment, provider};

pub use app::{APP, QUOTE, REORDER, TERMS, module};
