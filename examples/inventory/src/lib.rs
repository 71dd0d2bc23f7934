//! A small real application on Surefoot: stock per warehouse, an outbox, a payment provider.

pub mod bank;
pub mod database;
pub mod events;
pub mod mail;
pub mod payment;
pub mod provider;
pub mod stock;
