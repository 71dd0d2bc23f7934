//! What happens in the application, and the triggers that authors write for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use surefoot::prelude::*;

/// A warehouse has less of an item than it should have.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StockLow {
    /// The item's id.
    pub item: String,
    /// The card that pays for more.
    pub card: String,
}

impl Trigger for StockLow {
    const KIND: &'static str = "stockLow";
    const EVENT: &'static str = "inventory.stockLow";
}

/// An item is to be sold from now on.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ItemListed {
    /// The item's id.
    pub item: String,
    /// How many pieces to begin with.
    pub pieces: i64,
}

impl Trigger for ItemListed {
    const KIND: &'static str = "itemListed";
    const EVENT: &'static str = "inventory.itemListed";
}
