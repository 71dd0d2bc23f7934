//! Poolers: what is kept of a session, and what is refused.

use surefoot_kernel_core::StoreError;
use surefoot_store_postgres::{PostgresOptions, PostgresStore};
use surefoot_testkit::servers::{PgBouncer, Pooling};

use crate::support::World;

/// A pooler that shares its sessions between transactions drops what a session asks for when it begins. On those the
/// kernel's plans, waits and durability would be anybody's: the store does not open, and says what to do.
///
/// Covers field fault 72.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_drops_settings_is_refused_with_a_word() {
    let world = World::new().await;
    let proxy = world.database.proxy();
    drop(PostgresStore::open_with(world.database.through(&proxy)).await.unwrap());
    proxy.drop_options();
    refused(world.database.through(&proxy)).await;
}

async fn refused(options: PostgresOptions) {
    let refused = PostgresStore::open_with(options).await.unwrap_err();
    let StoreError::Unavailable(why) = &refused else { panic!("{refused:?}") };
    assert!(why.to_string().contains("connect to the server itself"), "{why}");
}

/// However PgBouncer is set up, and whichever way it takes with what a session asks for: the store says the same.
///
/// Covers field fault 72.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pgbouncer_is_refused_with_a_word() {
    let world = World::new().await;
    for pooling in [Pooling::Session, Pooling::Transaction] {
        let pooler = PgBouncer::given(pooling).unwrap();
        for pooler in [pooler.clone(), pooler.ignore("options")] {
            let (_running, options) = world.database.pooled(&pooler);
            refused(options).await;
        }
    }
}
