//! The schema: migrations, and what the database itself refuses.

use sqlx::{Connection, Row};
use surefoot_kernel_core::{RunStore, StoreError};
use surefoot_store_postgres::{PostgresStore, composite_types, migrations, sqlx};
use tokio::task::JoinSet;

use crate::database::Database;
use crate::support::{World, create};

/// Covers behaviour 71.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_starters_migrate_one_database_at_once() {
    let database = Database::empty().await;
    let mut starters = JoinSet::new();
    for _ in 0..20 {
        let options = database.options();
        starters.spawn(async move { PostgresStore::open_with(options).await.unwrap() });
    }
    let stores = starters.join_all().await;
    let run = stores[7].dry_run_create(create()).await.unwrap();
    let request = surefoot_kernel_core::LoadRequest { run: run.id, after: None };
    assert_eq!(stores[13].run_load(request).await.unwrap().unwrap().run, run);
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let database = Database::new().await;
    let mut conn = database.raw().await;
    let newer = "UPDATE surefoot.meta SET value = '9' WHERE key = 'schema'";
    sqlx::query(newer).execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
    let known = u32::try_from(migrations().len()).unwrap();
    let error = PostgresStore::open_with(database.options()).await.unwrap_err();
    assert!(
        matches!(error, StoreError::SchemaTooNew { found: 9, known: of } if of == known),
        "{error:?}"
    );
}

/// A slip of the pen must not put tables into another program's database.
#[tokio::test]
async fn a_database_of_somebody_else_is_left_alone_unless_it_may_become_a_store() {
    let database = Database::empty().await;
    let look = || database.options().create_if_missing(false);
    let refused = PostgresStore::open_with(look()).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let mut conn = database.raw().await;
    let found = "SELECT count(*) AS found FROM pg_namespace WHERE nspname = 'surefoot'";
    let row = sqlx::query(found).fetch_one(&mut conn).await.unwrap();
    assert_eq!(row.get::<i64, _>("found"), 0);
    PostgresStore::open_with(database.options()).await.unwrap();
    assert!(PostgresStore::open_with(look()).await.is_ok());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_as_unavailable() {
    let error = PostgresStore::open("postgres://127.0.0.1:1/nowhere").await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    let error = PostgresStore::open("not a url").await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
}

/// Covers behaviour 62.
#[tokio::test]
async fn a_stored_version_refuses_updates() {
    let world = World::new().await;
    let mut conn = world.database.raw().await;
    let stored = "WITH w AS (INSERT INTO surefoot.workflow (app, scope, key, created_at)
            VALUES ('a', 's', 'w', 0) RETURNING no)
        INSERT INTO surefoot.version (id, workflow, revision, plan_hash, footprint_hash, created_at,
            author, footprint, budget, plan, source)
        SELECT gen_random_uuid(), no, 1, '', '', 0, '', '{}', '{}', '{}', '' FROM w";
    sqlx::query(stored).execute(&mut conn).await.unwrap();
    let updated = sqlx::query("UPDATE surefoot.version SET source = 'x'").execute(&mut conn).await;
    let error = updated.unwrap_err().to_string();
    assert!(error.contains("a stored version is never updated"), "{error}");
}

/// Steps write these. An index on one of them, or under a condition on one, would make each step write every index.
#[tokio::test]
async fn no_index_names_a_column_that_steps_or_renewals_write() {
    let world = World::new().await;
    let mut conn = world.database.raw().await;
    let indexes =
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'surefoot' AND tablename = 'run'";
    let rows = sqlx::query(indexes).fetch_all(&mut conn).await.unwrap();
    assert!(rows.len() > 10, "{}", rows.len());
    for row in rows {
        let index: String = row.get("indexdef");
        for column in [
            "generation",
            "revision",
            "seq",
            "journal_bytes",
            "failures",
            "step_attempt",
            "deadline",
            "charged",
            "last_failure",
            "lease_until",
            "lease_length",
        ] {
            let named = index.split(|it: char| !it.is_alphanumeric() && it != '_');
            assert!(named.into_iter().all(|it| it != column), "{column} in {index}");
        }
    }
}

/// Rows are sent by the place of each column, so that two of one kind that changed places would change values.
#[tokio::test]
async fn what_rows_are_sent_as_is_what_the_schema_has() {
    let world = World::new().await;
    let mut conn = world.database.raw().await;
    for (name, attributes) in composite_types() {
        let of = "SELECT attname::text AS name FROM pg_attribute
            WHERE attrelid = (SELECT typrelid FROM pg_type WHERE oid = to_regtype($1)) AND attnum > 0
                AND NOT attisdropped ORDER BY attnum";
        let rows = sqlx::query(of).bind(name).fetch_all(&mut conn).await.unwrap();
        let found: Vec<&str> = rows.iter().map(|row| row.get("name")).collect();
        assert_eq!(found, attributes, "{name}");
    }
}

/// What the columns of a run say together is asked when it is created and when it moves, by whomever.
#[tokio::test]
async fn a_run_that_contradicts_itself_is_refused() {
    let world = World::new().await;
    world.store.dry_run_create(create()).await.unwrap();
    let mut conn = world.database.raw().await;
    for nonsense in [
        "state = 'asleep'",
        "state = 'running'",
        "state = 'succeeded'",
        "claimable_at = NULL",
        "lease_owner = id",
        "lease_owner = id, lease_length = 1, lease_until = claimable_at, claimable_at = NULL, state = 'running'",
        "wake_at = 1, claimable_at = claimable_at + 1",
        "effect_state = 'marked', effectful = true",
        "effect_state = 'perhaps', effect_step = 'a', effectful = true",
    ] {
        let update = format!("UPDATE surefoot.run SET {nonsense}");
        let refused = sqlx::query(sqlx::AssertSqlSafe(update)).execute(&mut conn).await;
        let error = refused.expect_err(nonsense).to_string();
        assert!(error.contains("contradicts itself"), "{nonsense}: {error}");
    }
    let insert = "INSERT INTO surefoot.run SELECT (jsonb_populate_record(run,
        jsonb_build_object('id', gen_random_uuid(), 'detail', 'x'))).* FROM surefoot.run";
    let refused = sqlx::query(insert).execute(&mut conn).await.unwrap_err().to_string();
    assert!(refused.contains("contradicts itself"), "{refused}");
}
