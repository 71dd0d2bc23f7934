//! Retention, pruning and deletion in the database: a failure before or after any change of a row leaves the old state.

use serde_json::json;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgConnection, Row};
use surefoot_kernel_core::retention::Force;
use surefoot_kernel_core::{
    Commit, Delete, EmitError, End, EventStore, Fact, Micros, OperatorStore, Place, PlanStore,
    Prunable, Prune, Pruned, RetentionError, RetentionStore, RowInput, RunState, RunStore, Signal,
    StoreError, TxStore, decide_row,
};
use surefoot_store_postgres::{PostgresStore, sqlx};
use surefoot_testkit::ClaimRows as _;

use crate::published::{claim, emit, end, order, publish, published, record, started};
use crate::support::{World, app, load, scope};

const DAY: i64 = 86_400;

async fn all(conn: &mut PgConnection, statement: String) -> Vec<PgRow> {
    sqlx::raw_sql(AssertSqlSafe(statement)).fetch_all(conn).await.unwrap()
}

async fn run_sql(conn: &mut PgConnection, statement: String) {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(conn).await.unwrap();
}

/// Every table that the kernel has: whoever adds one is tested too.
async fn tables(conn: &mut PgConnection) -> Vec<String> {
    let query = "SELECT tablename FROM pg_tables WHERE schemaname = 'surefoot' ORDER BY tablename";
    let rows = all(conn, query.to_owned()).await;
    rows.iter().map(|row| row.get("tablename")).collect()
}

/// Everything that is stored, as text.
async fn dump(conn: &mut PgConnection) -> Vec<String> {
    let mut lines = Vec::new();
    for table in tables(conn).await {
        let rows = format!("SELECT t::text AS line FROM surefoot.{table} AS t ORDER BY 1");
        for row in all(conn, rows).await {
            lines.push(format!("{table}: {}", row.get::<&str, _>("line")));
        }
    }
    lines
}

/// From now on the `n`th change of a row fails, counted on both of its sides.
async fn arm(conn: &mut PgConnection) {
    let fault = "CREATE TABLE fault (n bigint NOT NULL);
        INSERT INTO fault VALUES (0);
        CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
            left_over bigint;
        BEGIN
            UPDATE public.fault SET n = n - 1 RETURNING n INTO left_over;
            IF left_over = 0 THEN
                RAISE EXCEPTION 'a fault' USING ERRCODE = 'integrity_constraint_violation';
            END IF;
            IF TG_OP = 'DELETE' THEN
                RETURN OLD;
            END IF;
            RETURN NEW;
        END
        $$";
    run_sql(conn, fault.to_owned()).await;
    for table in tables(conn).await {
        for side in ["BEFORE", "AFTER"] {
            let trigger = format!(
                "CREATE TRIGGER fault_{side} {side} INSERT OR UPDATE OR DELETE ON surefoot.{table}
                FOR EACH ROW EXECUTE FUNCTION public.fault()"
            );
            run_sql(conn, trigger).await;
        }
    }
}

/// Has the call fail at each change of a row in turn, until it comes through; whatever fails leaves everything as
/// it was. Answers how often it failed.
async fn fails_cleanly<T>(
    world: &World,
    call: impl AsyncFn(&PostgresStore) -> Result<T, StoreError>,
) -> (u32, T) {
    let mut conn = world.database.raw().await;
    for n in 1..10_000 {
        run_sql(&mut conn, format!("UPDATE fault SET n = {n}")).await;
        let before = dump(&mut conn).await;
        match call(&world.store).await {
            Ok(answer) => {
                run_sql(&mut conn, "UPDATE fault SET n = 0".to_owned()).await;
                return (n - 1, answer);
            }
            Err(error) => {
                assert!(matches!(error, StoreError::Refused(_)), "{n}: {error:?}");
                assert_eq!(dump(&mut conn).await, before, "failure {n} left something");
            }
        }
    }
    unreachable!("it fails for ever")
}

/// Ended runs of dispatched events, one that is alive, a deferred event, and signals.
async fn busy() -> World {
    let world = published().await;
    for run in started(&world, 3).await {
        end(&world, &run, json!([1])).await;
    }
    record(&world, order().dedupe_key("pending").deferred()).await;
    record(&world, order().dedupe_key("alive")).await;
    let signal = Signal::new("approval", "7").data(7).check().unwrap();
    let send = surefoot_kernel_core::SendSignal { app: app(), scope: Some(scope()), signal };
    world.store.signal_send(send).await.unwrap();
    arm(&mut world.database.raw().await).await;
    world
}

#[tokio::test]
async fn an_expiry_that_fails_anywhere_leaves_the_old_state() {
    let world = busy().await;
    world.pass(Micros::from_secs(31 * DAY));
    let (failures, expired) =
        fails_cleanly(&world, async |store| store.event_expire(&app(), 100).await).await;
    assert_eq!(expired.emptied, 3, "one is alive, one is pending");
    assert!(failures >= 12, "{failures}");
    let mut conn = world.database.raw().await;
    let rows = all(&mut conn, "SELECT count(*) AS n FROM surefoot.event_payload".to_owned()).await;
    assert_eq!(rows[0].get::<i64, _>("n"), 2);
}

#[tokio::test]
async fn a_prune_that_fails_anywhere_leaves_the_old_state() {
    let world = busy().await;
    world.pass(Micros::from_secs(DAY));
    let before = world.store.store_now().await.unwrap();
    let what = Prunable::Runs { states: vec![RunState::Succeeded] };
    let prune = Prune { app: app(), scope: None, what, before, limit: 100, audit: None };
    let (mut failures, mut deleted) = (0, 0);
    loop {
        let (failed, pruned) =
            fails_cleanly(&world, async |store| store.prune(prune.clone()).await).await;
        failures += failed;
        deleted += pruned.deleted;
        if !pruned.more {
            break;
        }
    }
    assert_eq!(deleted, 3);
    assert!(failures >= 24, "{failures}");
    let mut conn = world.database.raw().await;
    for table in ["journal", "run_result"] {
        let rows = all(&mut conn, format!("SELECT count(*) AS n FROM surefoot.{table}")).await;
        assert_eq!(rows[0].get::<i64, _>("n"), 0, "{table}");
    }
}

/// Covers behaviour 69.
/// Covers field faults 87, 89.
#[tokio::test]
async fn a_scope_deletion_that_fails_anywhere_leaves_the_old_state_and_no_row_behind() {
    let world = busy().await;
    let place = Place { app: app(), scope: scope(), workflow: None };
    let (actor, reason) = ("bob".to_owned(), "they left".to_owned());
    let delete = Delete { place: place.clone(), force: Force::No, actor, reason };
    let of_store = |error: RetentionError| {
        let RetentionError::Store(error) = error else { unreachable!("{error:?}") };
        error
    };
    let (failures, ()) = fails_cleanly(&world, async |store| {
        store.delete_begin(delete.clone()).await.map_err(of_store)
    })
    .await;
    assert!(failures >= 4, "{failures}");
    let (mut failures, mut passes) = (0, 0);
    loop {
        let (failed, pass) = fails_cleanly(&world, async |store| {
            store.delete_pass(place.clone(), 2).await.map_err(of_store)
        })
        .await;
        failures += failed;
        passes += 1;
        assert!(pass.unexplained.is_empty() && pass.ending == 0 && passes < 100, "{pass:?}");
        if pass.done {
            break;
        }
    }
    assert!(failures > 40 && passes > 5, "{failures} {passes}");
    let mut conn = world.database.raw().await;
    for line in dump(&mut conn).await {
        let is_kept = ["audit: ", "meta: ", "worker_session: "];
        assert!(is_kept.iter().any(|table| line.starts_with(table)), "{line}");
    }
    // The same ids and keys again: nothing of the old ones is found.
    world.store.version_publish(publish("stock")).await.unwrap();
    let again = record(&world, order().dedupe_key("alive")).await;
    assert!(again.new && again.runs.len() == 1);
}

/// Covers field fault 85.
#[tokio::test]
async fn a_tree_too_large_for_one_transaction_is_deleted_in_parts_and_not_retried_meanwhile() {
    let world = published().await;
    let mut conn = world.database.raw().await;
    let runs = started(&world, 1).await;
    let failed = Fact::Ended {
        end: End::Failed(surefoot_kernel_core::Failure::new("FAILED", "no")),
        at: world.store.store_now().await.unwrap(),
    };
    let root = world.store.run_commit(Commit::new(&runs[0], &[failed])).await.unwrap().run;
    let columns = "SELECT column_name::text AS name FROM information_schema.columns
        WHERE table_schema = 'surefoot' AND table_name = 'run' ORDER BY ordinal_position";
    let columns = all(&mut conn, columns.to_owned()).await;
    let columns: Vec<String> = columns.iter().map(|row| row.get("name")).collect();
    let child: Vec<&str> = columns
        .iter()
        .map(|name| match name.as_str() {
            "id" => "gen_random_uuid()",
            "parent_run" => "root",
            "parent_step" => "'steps.0'",
            "parent_index" => "value",
            "parent_depth" => "1",
            name => name,
        })
        .collect();
    let child = format!(
        "INSERT INTO surefoot.run ({}) SELECT {} FROM surefoot.run, generate_series(0, 19999) AS value
        WHERE parent_run IS NULL",
        columns.join(", "),
        child.join(", ")
    );
    run_sql(&mut conn, child).await;
    world.pass(Micros::from_secs(DAY));
    let before = world.store.store_now().await.unwrap();
    let what = Prunable::Runs { states: vec![RunState::Failed] };
    let prune = Prune { app: app(), scope: None, what, before, limit: 100, audit: None };
    let mut deleted = 0;
    let mut parts = 0;
    loop {
        let pruned = world.store.prune(prune.clone()).await.unwrap();
        if deleted == 0 {
            // What was begun in one scope is nothing to those who prune another one.
            let elsewhere = Prune { scope: Some("elsewhere".into()), ..prune.clone() };
            assert_eq!(world.store.prune(elsewhere).await.unwrap(), Pruned::default());
            assert_eq!(world.store.app_health(&app()).await.unwrap().trees_half_deleted, 1);
        }
        deleted += pruned.deleted;
        parts += 1;
        if !pruned.more {
            break;
        }
        if deleted == 20_001 {
            continue;
        }
        let row = load(&world.store, root.id).await.run;
        let facts = decide_row(&row, RowInput::Retry, before).unwrap();
        let retried = world.store.run_commit(Commit::new(&row, &facts)).await;
        assert!(matches!(retried, Err(StoreError::BeingDeleted)), "{retried:?}");
        assert_eq!(load(&world.store, root.id).await.run, row);
    }
    assert_eq!(deleted, 20_001);
    assert!(parts > 3, "{parts} parts");
    assert!(dump(&mut conn).await.iter().all(|line| !line.starts_with("doomed")));
    assert!(world.store.claim_rows(claim(9)).await.is_empty());
}

/// The settings on which durability rests are looked at.
#[tokio::test]
async fn the_store_checks_itself() {
    let world = published().await;
    let facts = world.store.store_check().await.unwrap();
    let found = |name: &str| facts.iter().find(|fact| fact.name == name).unwrap();
    assert!(found("schema version").ok && found("server version").ok, "{facts:?}");
    let mut conn = world.database.raw().await;
    for (name, setting) in [("fsync", "fsync"), ("full page writes", "full_page_writes")] {
        let row = all(&mut conn, format!("SHOW {setting}")).await;
        let is_on = row[0].get::<&str, _>(0) == "on";
        assert_eq!(found(name).ok, is_on, "what the server says: {facts:?}");
    }
    // A server that acknowledges what is not on the disk yet is told not to.
    assert!(found("synchronous commit").ok, "{facts:?}");
}

/// An event, its payload, its runs and their counters are one.
#[tokio::test]
async fn an_emission_that_fails_anywhere_leaves_nothing() {
    let world = busy().await;
    let (failures, emission) = fails_cleanly(&world, async |store| {
        let emitted = store.event_emit(emit(order())).await;
        emitted.map_err(|error| {
            let EmitError::Store(error) = error else { unreachable!("{error:?}") };
            error
        })
    })
    .await;
    assert!(emission.new && emission.runs.len() == 1);
    assert!(failures >= 8, "{failures}");
}

/// A transaction that sees the database as it was before a deletion began records nothing into what is being deleted: it
/// is refused in favour of the deletion, and done again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_snapshot_emits_nothing_into_a_deletion() {
    let world = published().await;
    let mut conn = world.database.raw().await;
    let name = world.database.name();
    let default = "SET default_transaction_isolation = 'repeatable read'";
    run_sql(&mut conn, format!("ALTER DATABASE {name} {default}")).await;
    let store = world.other().await;
    let mut tx = store.begin().await.unwrap();
    sqlx::query("SELECT count(*) FROM surefoot.run").fetch_one(&mut *tx).await.unwrap();
    // What is committed in the meantime is no deletion, and harms nobody.
    record(&world, order()).await;
    assert!(store.event_emit_in(&mut tx, emit(order())).await.is_ok());
    tx.commit().await.unwrap();

    let mut tx = store.begin().await.unwrap();
    sqlx::query("SELECT count(*) FROM surefoot.run").fetch_one(&mut *tx).await.unwrap();
    let place = Place { app: app(), scope: scope(), workflow: None };
    let delete = Delete {
        place: place.clone(),
        force: Force::No,
        actor: "ann".to_owned(),
        reason: "over".to_owned(),
    };
    world.store.delete_begin(delete).await.unwrap();
    while !world.store.delete_pass(place.clone(), 100).await.unwrap().done {}
    let refused = store.event_emit_in(&mut tx, emit(order())).await;
    assert!(
        matches!(refused, Err(EmitError::Store(StoreError::TransactionConflict(_)))),
        "{refused:?}"
    );
    tx.rollback().await;
    let left = all(&mut conn, "SELECT FROM surefoot.event".to_owned()).await;
    assert!(left.is_empty(), "{} events are left in what was deleted", left.len());
}
