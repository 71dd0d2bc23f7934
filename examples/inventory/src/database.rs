//! The application's own tables: creating and filling them.

use surefoot::prelude::*;

pub use crate::catalog::NewItem;
use crate::store::{AppStore, SCHEMA, sqlx};

/// Why the tables could not be prepared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// The store's word.
    #[error("the store could not be written")]
    Store(#[from] StoreError),
    /// The database's word.
    #[error("the application's tables could not be written")]
    Database(#[from] sqlx::Error),
}

/// Creates the tables if they are not there.
///
/// # Errors
/// The database's word.
pub async fn create_tables(store: &AppStore) -> Result<(), DatabaseError> {
    let mut tx = store.begin().await?;
    sqlx::raw_sql(SCHEMA).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(())
}

/// Adds items, all or none. Those that exist stay as they are.
///
/// # Errors
/// The database's word.
pub async fn add_items(store: &AppStore, items: &[NewItem]) -> Result<(), DatabaseError> {
    let mut tx = store.begin().await?;
    for item in items {
        let sql = "INSERT INTO item (id, price_cents, discontinued) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
        let insert = sqlx::query(sql).bind(&item.id).bind(item.price_cents).bind(item.discontinued);
        insert.execute(&mut *tx).await?;
        for (warehouse, on_hand, minimum) in &item.stock {
            let sql = "INSERT INTO stock (item, warehouse, on_hand, minimum) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
            let insert = sqlx::query(sql).bind(&item.id).bind(warehouse);
            insert.bind(on_hand).bind(minimum).execute(&mut *tx).await?;
        }
    }
    tx.commit().await?;
    Ok(())
}
