//! What the application sells to begin with.

/// An item to begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewItem {
    /// The item's id.
    pub id: String,
    /// Of one piece.
    pub price_cents: i64,
    /// No longer sold.
    pub discontinued: bool,
    /// Warehouse, pieces that are there, pieces that should be there.
    pub stock: Vec<(&'static str, i64, i64)>,
}
