//! The application as a whole: its name, its workflows, its module.

use surefoot::prelude::*;

use crate::bank::Bank;
use crate::events::{ItemListed, StockLow};
use crate::mail::SendEmail;
use crate::payment::ChargeCard;
use crate::quote::RequestQuote;
use crate::stock::{LoadItem, PriceOrder, ReserveStock};
use crate::store::{AppStore, AppTx};

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
pub fn module(store: AppStore, bank: Bank) -> Result<Module<On<AppTx>>, ModuleError> {
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
