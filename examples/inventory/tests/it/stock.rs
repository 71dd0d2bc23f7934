//! Pricing is pure: the same stock gives the same order.

use surefoot::prelude::*;
use surefoot_inventory::stock::{Item, Order, OrderLine, PriceOrder, Shelf, ToPrice};

fn price(price_cents: i64, shelves: &[(i64, i64, i64)]) -> ActionResult<Order> {
    let shelf = |(at, &(on_hand, minimum, reserved)): (usize, &(i64, i64, i64))| {
        let warehouse = ["berlin", "hamburg", "munich"][at].to_owned();
        Shelf { warehouse, on_hand, minimum, reserved }
    };
    let warehouses = shelves.iter().enumerate().map(shelf).collect();
    let stock = Item { id: "bolt".to_owned(), price_cents, discontinued: false, warehouses };
    let cx = StepCx::new(StepData::detached(RunId::from_bytes([1; 16]), "steps.1"));
    PriceOrder.run(&PureCx::new(cx), ToPrice { stock })
}

#[test]
fn only_what_is_missing_is_ordered() {
    let order = price(250, &[(3, 10, 0), (10, 10, 0), (0, 10, 6)]).unwrap();
    let line = |warehouse: &str, pieces| OrderLine { warehouse: warehouse.to_owned(), pieces };
    assert_eq!(order.lines, [line("berlin", 7), line("munich", 4)]);
    assert_eq!((order.pieces, order.cents), (11, 2_750));
}

#[test]
fn more_than_enough_orders_nothing() {
    let order = price(250, &[(30, 10, 0), (0, 10, i64::MAX)]).unwrap();
    assert_eq!((order.pieces, order.cents), (0, 0));
}

#[test]
fn a_price_that_cannot_be_written_down_is_an_error_and_no_other_price() {
    let stop = price(i64::MAX, &[(0, i64::MAX, 0), (0, i64::MAX, 0)]).unwrap_err();
    assert_eq!(stop.code().as_str(), "ORDER_TOO_LARGE");
}
