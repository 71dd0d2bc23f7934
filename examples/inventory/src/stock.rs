//! The stock: reading it, pricing an order, reserving. Two transactional actions and a pure one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use surefoot::prelude::*;

use crate::store::{AppStore, AppTx, sqlx};

/// What `loadItem` is given.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ItemRef {
    /// The item's id.
    pub item: String,
}

/// An item and what the warehouses have of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Item {
    /// The item's id.
    pub id: String,
    /// Of one piece.
    pub price_cents: i64,
    /// No longer sold.
    pub discontinued: bool,
    /// By name.
    pub warehouses: Vec<Shelf>,
}

/// What one warehouse has of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shelf {
    /// The warehouse.
    pub warehouse: String,
    /// Pieces that are there.
    pub on_hand: i64,
    /// Pieces that should be there.
    pub minimum: i64,
    /// Pieces that are ordered and promised to it.
    pub reserved: i64,
}

/// Reads an item and its stock.
///
/// A read of something that others change is not pure: a replay would see other numbers. As a transactional action its
/// answer is recorded once, and every later step of the run goes by what was read then.
#[derive(Debug, Clone)]
pub struct LoadItem {
    /// For previews, which have no transaction of the kernel.
    pub store: AppStore,
}

impl Transactional<AppTx> for LoadItem {
    const NAME: &'static str = "loadItem";
    const ABOUT: &'static str = "Reads an item and its stock in every warehouse.";
    type Input = ItemRef;
    type Output = Item;

    async fn run(
        &self,
        cx: &mut TransactionalCx<'_, AppTx>,
        wanted: ItemRef,
    ) -> ActionResult<Item> {
        read_item(cx.tx(), &wanted.item).await
    }

    async fn plan(&self, _: &StepCx, wanted: &ItemRef) -> PlanResult<Item> {
        // Reading changes nothing, so the preview can do it as well: what depends on the stock is previewed too.
        let mut open = self.store.begin().await?;
        let item = read_item(&mut open, &wanted.item).await?;
        open.rollback().await;
        Ok(Planned::new(format!("Read the stock of {}", wanted.item)).output(item))
    }
}

async fn read_item(tx: &mut AppTx, id: &str) -> ActionResult<Item> {
    let sql = "SELECT price_cents, discontinued FROM item WHERE id = $1";
    let found: Option<(i64, bool)> = sqlx::query_as(sql).bind(id).fetch_optional(&mut *tx).await?;
    let Some((price_cents, discontinued)) = found else {
        return Err(Stop::fail("NO_SUCH_ITEM", format!("there is no item `{id}`")));
    };
    let sql = "SELECT warehouse, on_hand, minimum, reserved FROM stock WHERE item = $1 ORDER BY warehouse";
    let rows: Vec<(String, i64, i64, i64)> = sqlx::query_as(sql).bind(id).fetch_all(tx).await?;
    let shelf =
        |(warehouse, on_hand, minimum, reserved)| Shelf { warehouse, on_hand, minimum, reserved };
    let warehouses = rows.into_iter().map(shelf).collect();
    Ok(Item { id: id.to_owned(), price_cents, discontinued, warehouses })
}

/// What `priceOrder` is given.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ToPrice {
    /// As `loadItem` read it.
    pub stock: Item,
}

/// What is missing, and what it costs.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Order {
    /// Pieces in all.
    pub pieces: i64,
    /// What they cost.
    pub cents: i64,
    /// How they are divided; only warehouses that lack something.
    pub lines: Vec<OrderLine>,
}

/// The share of one warehouse.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OrderLine {
    /// The warehouse.
    pub warehouse: String,
    /// Its pieces.
    pub pieces: i64,
}

/// Computes an order from what was read. From its input only: no clock, no database, no chance.
#[derive(Debug, Clone, Copy)]
pub struct PriceOrder;

impl Pure for PriceOrder {
    const NAME: &'static str = "priceOrder";
    const ABOUT: &'static str = "Computes what to order and what it costs.";
    type Input = ToPrice;
    type Output = Order;

    fn run(&self, _: &PureCx, ToPrice { stock }: ToPrice) -> ActionResult<Order> {
        let missing = |shelf: &Shelf| {
            let there = shelf.on_hand.saturating_add(shelf.reserved);
            shelf.minimum.saturating_sub(there).max(0)
        };
        let lines: Vec<OrderLine> = stock
            .warehouses
            .iter()
            .map(|shelf| OrderLine { warehouse: shelf.warehouse.clone(), pieces: missing(shelf) })
            .filter(|line| line.pieces > 0)
            .collect();
        let pieces = lines.iter().fold(0, |sum: i64, line| sum.saturating_add(line.pieces));
        // Money is not rounded to what fits: an order that cannot be written down is an error.
        let cents = pieces.checked_mul(stock.price_cents);
        let cents =
            cents.ok_or_else(|| Stop::fail("ORDER_TOO_LARGE", "its price is out of range"))?;
        Ok(Order { pieces, cents, lines })
    }
}

/// What `reserveStock` is given.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Reservation {
    /// The item's id.
    pub item: String,
    /// The warehouse.
    pub warehouse: String,
    /// How many.
    pub pieces: i64,
}

/// Promises pieces of a paid order to a warehouse.
///
/// `reserved + $1` is not safe to repeat, and need not be: the kernel commits this statement together with the fact
/// that the step is done, so it counts once, whatever crashes.
#[derive(Debug, Clone, Copy)]
pub struct ReserveStock;

impl Transactional<AppTx> for ReserveStock {
    const NAME: &'static str = "reserveStock";
    const ABOUT: &'static str = "Promises pieces of a paid order to a warehouse.";
    type Input = Reservation;
    type Output = i64;

    async fn run(
        &self,
        cx: &mut TransactionalCx<'_, AppTx>,
        wanted: Reservation,
    ) -> ActionResult<i64> {
        let Reservation { item, warehouse, pieces } = wanted;
        let sql = "UPDATE stock SET reserved = reserved + $1 WHERE item = $2 AND warehouse = $3 RETURNING reserved";
        let query = sqlx::query_scalar(sql).bind(pieces).bind(&item).bind(&warehouse);
        let reserved: Option<i64> = query.fetch_optional(cx.tx()).await?;
        let none = || Stop::fail("NO_SUCH_STOCK", format!("`{warehouse}` does not hold `{item}`"));
        reserved.ok_or_else(none)
    }

    async fn plan(&self, _: &StepCx, wanted: &Reservation) -> PlanResult<i64> {
        let Reservation { item, warehouse, pieces } = wanted;
        Ok(Planned::new(format!("Reserve {pieces} pieces of {item} for {warehouse}")))
    }
}
