//! A small real application on Surefoot: stock per warehouse, an outbox, a payment provider.
//!
//! One action of every effect class, and two workflows in YAML that use them:
//!
//! | action | class | why |
//! |---|---|---|
//! | [`loadItem`](stock::LoadItem) | transactional | reads what others change |
//! | [`priceOrder`](stock::PriceOrder) | pure | computes from its input only |
//! | [`reserveStock`](stock::ReserveStock) | transactional | its statement counts once because it commits with the step |
//! | [`sendEmail`](mail::SendEmail) | idempotent | an outbox row under the effect key |
//! | [`requestQuote`](quote::RequestQuote) | idempotent | a task under the effect key; another process does the work |
//! | [`chargeCard`](payment::ChargeCard) | ambiguous | money, and a provider that is reached over a network |
//!
//! It runs on SQLite; [`store`] is the one file that says so. The package `surefoot-inventory-postgres` is made of the
//! same files and another `store.rs`.

mod app;
pub mod bank;
pub mod catalog;
pub mod database;
pub mod events;
pub mod mail;
pub mod payment;
pub mod provider;
pub mod quote;
pub mod stock;
pub mod store;

pub use app::{APP, QUOTE, REORDER, TERMS, module};
