//! Every action of the application, driven through repeats, crashes and duplicates: does it honour its class?

use std::time::Duration;

use surefoot::TxStore as _;
use surefoot::testkit::certify;
use surefoot_inventory::database::{NewItem, add_items};
use surefoot_inventory::mail::{Mail, SendEmail};
use surefoot_inventory::payment::{CardCharge, ChargeCard};
use surefoot_inventory::provider::REQUESTS_FILE;
use surefoot_inventory::quote::{QuoteRequest, RequestQuote};
use surefoot_inventory::stock::{
    Item, ItemRef, LoadItem, PriceOrder, Reservation, ReserveStock, Shelf, ToPrice,
};
use surefoot_inventory::store::sqlx;

use crate::provider::{self, Running};
use crate::shop::{self, Shop};

/// A shop that sells bolts.
async fn stocked() -> Shop {
    let shop = shop::open().await;
    let bolt = NewItem {
        id: "bolt".to_owned(),
        price_cents: 25,
        discontinued: false,
        stock: vec![("berlin", 2, 10)],
    };
    add_items(&shop.store, &[bolt]).await.unwrap();
    shop
}

/// What the database counts.
async fn count(shop: &Shop, sql: &'static str) -> i64 {
    let mut tx = shop.store.begin().await.unwrap();
    sqlx::query_scalar(sql).fetch_one(&mut *tx).await.unwrap()
}

/// The caller is gone; what it sent is carried out all the same, once the provider has read it.
async fn carried_out(provider: &Running) {
    loop {
        let log = provider.folder.path().join(REQUESTS_FILE);
        let requests = std::fs::read_to_string(log).unwrap();
        let asked = requests.lines().filter(|line| line.contains(r#""event":"asked""#)).count();
        if provider.charges().len() >= asked {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

certify! {
    price_order: pure {
        world: (),
        action: |_| PriceOrder,
        input: {
            let shelf =
                Shelf { warehouse: "berlin".into(), on_hand: 2, minimum: 10, reserved: 0 };
            let stock = Item {
                id: "bolt".into(),
                price_cents: 25,
                discontinued: false,
                warehouses: vec![shelf],
            };
            ToPrice { stock }
        },
        acted: |_| 0,
    }
    load_item: transactional {
        world: stocked().await,
        action: |shop| LoadItem { store: shop.store.clone() },
        input: ItemRef { item: "bolt".into() },
        acted: |shop| count(shop, "SELECT CAST(sum(reserved) AS BIGINT) FROM stock").await,
        store: |shop| shop.store.clone(),
    }
    reserve_stock: transactional {
        world: stocked().await,
        action: |_| ReserveStock,
        input: Reservation { item: "bolt".into(), warehouse: "berlin".into(), pieces: 1 },
        acted: |shop| count(shop, "SELECT CAST(sum(reserved) AS BIGINT) FROM stock").await,
        store: |shop| shop.store.clone(),
    }
    send_email: idempotent {
        world: shop::open().await,
        action: |shop| SendEmail { store: shop.store.clone() },
        input: Mail { to: "buyer@example.com".into(), subject: "Ordered".into() },
        acted: |shop| count(shop, "SELECT count(*) FROM outbox").await,
    }
    request_quote: idempotent {
        world: shop::open().await,
        action: |shop| RequestQuote { store: shop.store.clone(), terms: "30 days".into() },
        input: QuoteRequest { item: "bolt".into(), pieces: 12 },
        acted: |shop| count(shop, "SELECT count(*) FROM quote_task").await,
    }
    charge_card: ambiguous {
        world: provider::start().await,
        action: |provider| ChargeCard { bank: provider.bank() },
        input: CardCharge { cents: 1250, currency: "EUR".into(), card: "4242".into() },
        acted: |provider| provider.charges().len(),
        later: |provider, _| carried_out(provider).await,
    }
}
