//! The schema: migrations, and what the database itself refuses.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use sqlx::{ConnectOptions, Connection, Row, SqliteConnection};
use surefoot_kernel_core::{PlanStore, StoreError};
use surefoot_store_sqlite::sqlx::{self, sqlite::SqliteConnectOptions};
use surefoot_store_sqlite::{SqliteOptions, SqliteStore, migrations};
use tokio::task::JoinSet;

use crate::support::{World, open, publish};

pub(crate) async fn raw(path: &std::path::Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    options.connect().await.unwrap()
}

async fn dump(conn: &mut SqliteConnection) -> String {
    let query =
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name";
    let rows = sqlx::query(query).fetch_all(conn).await.unwrap();
    let texts = rows.iter().map(|row| format!("{};\n\n", row.get::<&str, _>("sql")));
    texts.collect()
}

#[tokio::test]
async fn the_migrations_make_the_schema_that_is_written_down() {
    let mut conn = raw(std::path::Path::new(":memory:")).await;
    for migration in migrations() {
        sqlx::raw_sql(*migration).execute(&mut conn).await.unwrap();
    }
    let made = dump(&mut conn).await;
    if std::env::var_os("SUREFOOT_WRITE_SCHEMA").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/schema.sql"), &made).unwrap();
    }
    let written = include_str!("../../schema.sql");
    assert_eq!(made, written, "run this test with SUREFOOT_WRITE_SCHEMA=1, then look at the diff");
    let store = World::new().await;
    assert_eq!(dump(&mut raw(&store.path()).await).await, written);
}

/// A slip of the pen must not put tables into another program's file.
#[tokio::test]
async fn a_database_of_somebody_else_is_left_alone_unless_it_may_become_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.db");
    let mut theirs = raw(&path).await;
    sqlx::raw_sql("CREATE TABLE song (title TEXT)").execute(&mut theirs).await.unwrap();
    let before = dump(&mut theirs).await;
    let look = SqliteOptions::new(&path).create_if_missing(false);
    for options in [look.clone(), SqliteOptions::new(&path)] {
        let refused = SqliteStore::open_with(options).await.unwrap_err();
        let StoreError::Unavailable(why) = refused else { panic!("{refused:?}") };
        let why = why.to_string();
        assert!(why.contains("another program (with the tables song)"), "{why}");
        assert_eq!(dump(&mut theirs).await, before);
    }
    let mode = sqlx::query("PRAGMA journal_mode").fetch_one(&mut theirs).await.unwrap();
    assert_ne!(mode.get::<String, _>(0), "wal", "its journal is left alone too");
    SqliteStore::open_with(SqliteOptions::new(&path).beside_other_tables(true)).await.unwrap();
    assert!(SqliteStore::open_with(look).await.is_ok());
    SqliteStore::open(&path).await.unwrap();
}

/// A file that another program has marked, and has no table in yet, is its file all the same.
#[tokio::test]
async fn a_file_with_a_mark_of_another_program_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    for (nth, pragma) in ["application_id = 7", "user_version = 1"].iter().enumerate() {
        let path = folder.path().join(format!("{nth}.db"));
        let mut theirs = raw(&path).await;
        let mark = sqlx::AssertSqlSafe(format!("PRAGMA {pragma}"));
        sqlx::query(mark).execute(&mut theirs).await.unwrap();
        let refused = SqliteStore::open(&path).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{pragma}: {refused:?}");
        assert_eq!(dump(&mut theirs).await, "");
    }
}

/// What an application calls its tables is its own business, also in a file that it shares with the store.
#[tokio::test]
async fn an_applications_tables_may_have_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared.db");
    let mut app = raw(&path).await;
    for table in ["run", "event", "version", "signal", "audit", "meta", "workflow", "journal"] {
        let create = sqlx::AssertSqlSafe(format!("CREATE TABLE {table} (id TEXT)"));
        sqlx::query(create).execute(&mut app).await.unwrap();
        let index = sqlx::AssertSqlSafe(format!("CREATE INDEX {table}_id ON {table} (id)"));
        sqlx::query(index).execute(&mut app).await.unwrap();
    }
    let options = SqliteOptions::new(&path).beside_other_tables(true);
    let store = SqliteStore::open_with(options).await.unwrap();
    let published = store.version_publish(publish("stock")).await.unwrap();
    assert!(store.version_load(published.version).await.unwrap().is_some());
    let row = sqlx::query("SELECT count(*) FROM main.version").fetch_one(&mut app).await.unwrap();
    assert_eq!(row.get::<i64, _>(0), 0, "the application's table is untouched");
}

/// Covers behaviour 71.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_starters_migrate_one_file_at_once() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let mut starters = JoinSet::new();
    for _ in 0..20 {
        let folder = folder.clone();
        starters.spawn(async move { open(&folder, &Arc::new(AtomicI64::new(0))).await });
    }
    let stores = starters.join_all().await;
    let published = stores[7].version_publish(publish("stock")).await.unwrap();
    let seen = stores[13].version_load(published.version).await.unwrap().unwrap();
    assert_eq!(seen.revision, 1);
    drop(stores);
    let again = open(&folder, &Arc::new(AtomicI64::new(0))).await;
    assert!(again.version_load(published.version).await.unwrap().is_some());
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let world = World::new().await;
    let mut conn = raw(&world.path()).await;
    sqlx::query("UPDATE surefoot_meta SET value = '9' WHERE key = 'schema'")
        .execute(&mut conn)
        .await
        .unwrap();
    conn.close().await.unwrap();
    let known = u32::try_from(migrations().len()).unwrap();
    let error = SqliteStore::open(world.path()).await.unwrap_err();
    assert!(
        matches!(error, StoreError::SchemaTooNew { found: 9, known: of } if of == known),
        "{error:?}"
    );
}

/// Covers behaviour 62.
#[tokio::test]
async fn a_stored_version_refuses_updates() {
    let world = World::published().await;
    let mut conn = raw(&world.path()).await;
    let updated = sqlx::query("UPDATE surefoot_version SET source = 'x'").execute(&mut conn).await;
    let error = updated.unwrap_err().to_string();
    assert!(error.contains("a stored version is never updated"), "{error}");
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_is_named_as_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let missing = SqliteOptions::new(folder.path().join("no.db")).create_if_missing(false);
    let error = SqliteStore::open_with(missing).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    let garbage = folder.path().join("garbage.db");
    std::fs::write(&garbage, "this is no database, and long enough to be read as one".repeat(100))
        .unwrap();
    let error = SqliteStore::open(&garbage).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
}

/// `VACUUM INTO` writes a copy without it.
#[tokio::test]
async fn a_copy_gets_its_write_ahead_log_back() {
    let world = World::new().await;
    let copy = world.path().with_extension("copy");
    let mut conn = raw(&world.path()).await;
    sqlx::query("VACUUM INTO ?").bind(copy.to_str().unwrap()).execute(&mut conn).await.unwrap();
    let mode = async || {
        let row = sqlx::query("PRAGMA journal_mode").fetch_one(&mut raw(&copy).await).await;
        row.unwrap().get::<String, _>(0)
    };
    assert_ne!(mode().await, "wal");
    SqliteStore::open(&copy).await.unwrap();
    assert_eq!(mode().await, "wal");
}

#[tokio::test]
async fn the_file_has_a_write_ahead_log() {
    let world = World::new().await;
    let mut conn = raw(&world.path()).await;
    let row = sqlx::query("PRAGMA journal_mode").fetch_one(&mut conn).await.unwrap();
    assert_eq!(row.get::<String, _>(0), "wal");
}
