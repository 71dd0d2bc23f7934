//! Where a show can play: a store, with the application that is built for it.

use std::fmt::Debug;
use std::future::ready;

use serde_json::json;
use surefoot_inventory::bank::Bank;
use surefoot_inventory::catalog::NewItem;
use surefoot_kernel_core::{TxStore, WakeBus};
use surefoot_language::{Module, ModuleError, On};
use surefoot_store_postgres::PostgresStore;
use surefoot_store_sqlite::SqliteStore;
use surefoot_worker::Kernel;

use super::{DemoError, During};
use crate::error::CliError;
use crate::store::{self, Need};

/// A store that a show can play on.
pub(super) trait Venue: TxStore + Debug {
    /// Opens the store that a URL names.
    async fn open(url: &str, need: Need) -> Result<Self, CliError>;

    /// Carries wake-ups between the processes of the show.
    fn bus(&self) -> impl WakeBus + 'static;

    /// The application's actions on this store.
    fn module(&self, bank: Bank) -> Result<Module<On<Self::Tx>>, ModuleError>;

    /// Creates the application's tables, and fills them.
    async fn fill(&self, items: &[NewItem]) -> Result<(), DemoError>;

    /// Answers for the supplier, once.
    async fn supply(kernel: &Kernel<Self>) -> Result<(), DemoError>;
}

/// The application is the same on both stores, and so are the words for it; the types are not.
macro_rules! venue {
    ($store:ident, $open:path, $app:ident) => {
        impl Venue for $store {
            async fn open(url: &str, need: Need) -> Result<Self, CliError> {
                $open(url, need).await
            }

            fn bus(&self) -> impl WakeBus + 'static {
                self.wake_bus()
            }

            fn module(&self, bank: Bank) -> Result<Module<On<Self::Tx>>, ModuleError> {
                $app::module(self.clone(), bank)
            }

            async fn fill(&self, items: &[NewItem]) -> Result<(), DemoError> {
                let created = $app::database::create_tables(self).await;
                created.during("the tables cannot be created")?;
                let added = $app::database::add_items(self, items).await;
                added.during("the stock cannot be filled")
            }

            async fn supply(kernel: &Kernel<Self>) -> Result<(), DemoError> {
                use $app::quote::{DeskError, Supplier};
                let supplier = Supplier { kernel: kernel.clone() };
                let desk = supplier.pass(|task| {
                    let quoted = quote(&task.item, task.pieces, task.attempts);
                    ready(quoted.map_err(|why| DeskError(why.to_owned())))
                });
                desk.await.map(drop).during("the supplier cannot work")
            }
        }
    };
}

venue!(SqliteStore, store::embedded, surefoot_inventory);
venue!(PostgresStore, store::shared, surefoot_inventory_postgres);

/// The supplier's desk: it is busy the first time, now and then, and answers when it is asked again.
fn quote(item: &str, pieces: i64, attempts: u32) -> Result<String, &'static str> {
    if attempts == 0 && item.ends_with("20") {
        return Err("nobody picked up the telephone");
    }
    Ok(json!({ "cents": pieces * 199 }).to_string())
}
