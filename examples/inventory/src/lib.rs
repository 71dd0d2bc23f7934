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

pub mod bank;
pub mod database;
pub mod events;
pub mod mail;
pub mod payment;
pub mod provider;
pub mod quote;
pub mod stock;

use surefoot::prelude::*;

use bank::Bank;
use events::{ItemListed, StockLow};
use mail::SendEmail;
use payment::ChargeCard;
use quote::RequestQuote;
use stock::{LoadItem, PriceOrder, ReserveStock};

/// The application's name: whose data it is in a store that several share.
pub const APP: &str = "inventory";
/// The workflow that orders what is missing: its key and its source.
pub const REORDER: (&str, &str) = ("reorder", include_str!("../workflows/reorder.yaml"));
/// The workflow that asks for a price: its key and its source.
pub const QUOTE: (&str, &str) = ("quote", include_str!("../workflows/quote.yaml"));
/// The terms for new quotes.
pub const TERMS: &str = "delivered, 30 days";

/// What authors of workflows may use, and the code behind it.
///
/// # Errors
/// Everything that is wrong with the declarations, at once.
pub fn module(store: SqliteStore, bank: Bank) -> Result<Module<On<SqliteTx>>, ModuleError> {
    Module::builder(APP, 1)
        .trigger::<StockLow>()
        .trigger::<ItemListed>()
        .pure(PriceOrder)
        .transactional(LoadItem { store: store.clone() })
        .transactional(ReserveStock)
        .idempotent(SendEmail { store: store.clone() })
        .idempotent(RequestQuote { store, terms: TERMS.to_owned() })
        .ambiguous(ChargeCard { bank })
        .build()
}
