//! The next migration, over a database that is in use.

use sqlx::{Connection, Row};
use surefoot_kernel_core::{RunId, StoreError};
use surefoot_store_postgres::{PostgresOptions, PostgresStore, migrations, sqlx};
use surefoot_testkit::servers::Fate;
use tokio::task::JoinSet;

use crate::support::{World, load, step};

/// What a later build might bring: a table that is made of what is there, and an index on it.
const NEXT: &str = "CREATE TABLE surefoot.run_note AS SELECT id, state AS note FROM surefoot.run;
    ALTER TABLE surefoot.run_note ADD PRIMARY KEY (id);
    CREATE INDEX run_noted ON surefoot.run (app, created_at) WHERE state = 'running';";
/// One that fails when half of it is done.
const BROKEN: &str = "CREATE TABLE surefoot.run_note AS SELECT id, state AS note FROM surefoot.run;
    ALTER TABLE surefoot.run_note ADD CHECK (note = 'nonsense');";

fn known() -> u32 {
    u32::try_from(migrations().len()).unwrap()
}

/// A store with runs in it.
async fn filled() -> (World, Vec<RunId>) {
    let world = World::new().await;
    let mut ids = Vec::new();
    for run in world.claimed(3).await {
        step(&world.store, &run).await.unwrap();
        ids.push(run.id);
    }
    (world, ids)
}

/// How many runs the migration has noted, if it was applied.
async fn noted(world: &World) -> Option<i64> {
    let mut conn = world.database.raw().await;
    let found = "SELECT to_regclass('surefoot.run_note') IS NOT NULL AS is_there";
    let row = sqlx::query(found).fetch_one(&mut conn).await.unwrap();
    if !row.get::<bool, _>("is_there") {
        return None;
    }
    let row = sqlx::query("SELECT count(*) AS count FROM surefoot.run_note WHERE note = 'running'");
    let count = row.fetch_one(&mut conn).await.unwrap().get("count");
    conn.close().await.unwrap();
    Some(count)
}

fn next(options: PostgresOptions) -> PostgresOptions {
    options.also_migrate(NEXT)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_starters_upgrade_a_store_in_use_once() {
    let (world, runs) = filled().await;
    let before = load(&world.store, runs[0]).await;
    let mut starters = JoinSet::new();
    for _ in 0..20 {
        let options = next(world.database.options());
        starters.spawn(async move { PostgresStore::open_with(options).await.unwrap() });
    }
    let stores = starters.join_all().await;
    assert_eq!(noted(&world).await, Some(3));
    let after = load(&stores[7], runs[0]).await;
    assert_eq!((after.run, after.journal), (before.run, before.journal));
    // Who had it open before goes on, and so does who comes with the upgrade.
    for store in [&world.store, &stores[13]] {
        let run = load(store, runs[1]).await.run;
        step(store, &run).await.unwrap();
    }
    let refused = PostgresStore::open_with(world.database.options()).await.unwrap_err();
    let (newer, ours) = (known() + 1, known());
    assert!(
        matches!(refused, StoreError::SchemaTooNew { found, known } if found == newer && known == ours),
        "{refused:?}"
    );
}

/// Wherever the connection breaks, the schema is the one from before or the next one, as a whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_is_interrupted_is_made_at_the_next_start() {
    for (statement, fate, is_done) in [
        ("run_note", Fate::LoseRequest, false),
        ("run_note", Fate::LoseAnswer, false),
        ("COMMIT", Fate::LoseRequest, false),
        ("COMMIT", Fate::LoseAnswer, true),
    ] {
        let (world, runs) = filled().await;
        let proxy = world.database.proxy();
        let _trap = proxy.trap(statement, fate);
        let broken = PostgresStore::open_with(next(world.database.through(&proxy))).await;
        assert!(matches!(broken, Err(StoreError::Unavailable(_))), "{statement}: {broken:?}");
        assert_eq!(noted(&world).await.is_some(), is_done, "{statement}");
        let store = PostgresStore::open_with(next(world.database.options())).await.unwrap();
        assert_eq!(noted(&world).await, Some(3), "{statement}");
        step(&store, &load(&store, runs[0]).await.run).await.unwrap();
    }
}

#[tokio::test]
async fn a_migration_that_fails_leaves_nothing() {
    let (world, runs) = filled().await;
    let broken = world.database.options().also_migrate(BROKEN);
    PostgresStore::open_with(broken).await.unwrap_err();
    assert_eq!(noted(&world).await, None);
    let store = PostgresStore::open_with(world.database.options()).await.unwrap();
    step(&store, &load(&store, runs[0]).await.run).await.unwrap();
}
