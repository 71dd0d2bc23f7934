//! The next migration, over a file that is in use.

use std::path::Path;

use sqlx::Row;
use surefoot_kernel_core::{RunId, StoreError};
use surefoot_store_sqlite::{SqliteOptions, SqliteStore, migrations, sqlx};
use tokio::task::JoinSet;

use crate::cancel::drop_at;
use crate::schema::raw;
use crate::support::{World, load, step};

/// What a later build might bring: a table that is made of what is there, and an index on it.
const NEXT: &str = "CREATE TABLE surefoot_run_note AS SELECT id, state AS note FROM surefoot_run;
    CREATE UNIQUE INDEX surefoot_run_note_id ON surefoot_run_note (id);
    CREATE INDEX surefoot_run_noted ON surefoot_run (app, created_at) WHERE state = 'running';";
/// One that fails when half of it is done.
const BROKEN: &str = "CREATE TABLE surefoot_run_note AS SELECT id, state AS note FROM surefoot_run;
    INSERT INTO surefoot_run_note SELECT no FROM surefoot_nonsense;";

fn next(path: impl AsRef<Path>) -> SqliteOptions {
    SqliteOptions::new(path).also_migrate(NEXT)
}

/// A store with runs in it.
async fn filled() -> (World, Vec<RunId>) {
    let world = World::published().await;
    let mut ids = Vec::new();
    for run in world.claimed(3).await {
        step(&world.store, &run).await.unwrap();
        ids.push(run.id);
    }
    (world, ids)
}

/// How many runs the migration has noted, if it was applied.
async fn noted(world: &World) -> Option<i64> {
    let mut conn = raw(&world.path()).await;
    let count = "SELECT count(*) FROM surefoot_run_note WHERE note = 'running'";
    let row = sqlx::query(count).fetch_one(&mut conn).await;
    row.ok().map(|row| row.get(0))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_starters_upgrade_a_file_in_use_once() {
    let (world, runs) = filled().await;
    let before = load(&world.store, runs[0]).await;
    let mut starters = JoinSet::new();
    for _ in 0..20 {
        let options = next(world.path());
        starters.spawn(async move { SqliteStore::open_with(options).await.unwrap() });
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
    let refused = SqliteStore::open(world.path()).await.unwrap_err();
    let ours = u32::try_from(migrations().len()).unwrap();
    assert!(
        matches!(refused, StoreError::SchemaTooNew { found, known } if found == ours + 1 && known == ours),
        "{refused:?}"
    );
}

/// Wherever whoever upgrades goes away, the schema is the one from before or the next one, as a whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_is_given_up_is_made_at_the_next_start() {
    let mut given_up = 0;
    for wait in 1..30 {
        let (world, runs) = filled().await;
        let opening = async { SqliteStore::open_with(next(world.path())).await.unwrap() };
        given_up += u32::from(!drop_at(wait, opening).await);
        assert!(matches!(noted(&world).await, None | Some(3)));
        let store = SqliteStore::open_with(next(world.path())).await.unwrap();
        assert_eq!(noted(&world).await, Some(3));
        step(&store, &load(&store, runs[0]).await.run).await.unwrap();
    }
    assert!(given_up > 0, "some were given up");
}

#[tokio::test]
async fn a_migration_that_fails_leaves_nothing() {
    let (world, runs) = filled().await;
    let broken = SqliteOptions::new(world.path()).also_migrate(BROKEN);
    SqliteStore::open_with(broken).await.unwrap_err();
    assert_eq!(noted(&world).await, None);
    let store = SqliteStore::open(world.path()).await.unwrap();
    step(&store, &load(&store, runs[0]).await.run).await.unwrap();
}
