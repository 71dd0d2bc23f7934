//! The application as a program: publish, start a worker, emit an event, wait.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use surefoot::prelude::*;

use surefoot_inventory::bank::Bank;
use surefoot_inventory::database::{NewItem, add_items, create_tables};
use surefoot_inventory::events::StockLow;
use surefoot_inventory::provider::{Provider, wire::card};
use surefoot_inventory::store::{self, AppStore};
use surefoot_inventory::{APP, REORDER, module};

/// Tasks free on one thread what was allocated on another, where the allocator of glibc makes threads wait.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs that are under way when the program is asked to end get this long to come to a stop of their own.
const GRACE: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bank = Bank::at(open_provider().await?);
    let store = store::open().await?;
    stock_up(&store).await?;

    let inventory = module(store.clone(), bank)?;
    // Workers of other processes hear of work at once.
    let wake_bus = store.wake_bus();
    let kernel = Kernel::new(APP, store);
    let warehouse = kernel.scope("berlin");
    let (key, yaml) = REORDER;
    let reorder = Publication::new(key, yaml).budget("payments", 3);
    warehouse.publish(inventory.manifest(), reorder).await?;
    let worker = kernel.worker(inventory).wake_bus(wake_bus).start().await?;

    let (item, card) = ("bolt".to_owned(), card::GOOD.to_owned());
    // Started twice on one day, the program orders once.
    let low = StockLow { item, card }.event().dedupe_key("bolt:2026-11-29");
    for run in warehouse.emit(low).await?.runs {
        println!("surefoot --store {} show {run}", store::ARGUMENT);
    }
    tokio::signal::ctrl_c().await?;
    worker.stop(GRACE).await;
    Ok(())
}

/// Stands for the company that charges cards. A real one is there already.
async fn open_provider() -> std::io::Result<SocketAddr> {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(Provider::open(".")?.serve(listener, std::future::pending()));
    Ok(address)
}

/// Something to sell.
async fn stock_up(store: &AppStore) -> Result<(), Box<dyn std::error::Error>> {
    create_tables(store).await?;
    let stock = vec![("berlin", 3, 10), ("hamburg", 10, 10)];
    let bolt = NewItem { id: "bolt".to_owned(), price_cents: 250, discontinued: false, stock };
    add_items(store, &[bolt]).await?;
    Ok(())
}
