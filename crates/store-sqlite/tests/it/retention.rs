//! Retention, pruning and deletion on the file: a failure before or after any change of a row leaves the old state.

use serde_json::json;
use sqlx::{AssertSqlSafe, Row, SqlSafeStr, SqliteConnection};
use surefoot_kernel_core::retention::Force;
use surefoot_kernel_core::{
    Commit, Delete, End, EventStore, Fact, Micros, OperatorStore, Place, PlanStore, Prunable,
    Prune, Pruned, RetentionError, RetentionStore, RowInput, Run, RunState, RunStore, SaidBy,
    Signal, StoreError, decide_row,
};
use surefoot_store_sqlite::{SqliteStore, sqlx};
use surefoot_testkit::ClaimRows as _;

use crate::schema::raw;
use crate::support::{World, app, claim, emit, load, next, order, publish, scope};

const DAY: i64 = 86_400;

async fn all(conn: &mut SqliteConnection, statement: String) -> Vec<sqlx::sqlite::SqliteRow> {
    let statement = AssertSqlSafe(statement).into_sql_str();
    sqlx::query(statement).fetch_all(conn).await.unwrap()
}

async fn run_sql(conn: &mut SqliteConnection, statement: String) {
    sqlx::query(AssertSqlSafe(statement).into_sql_str()).execute(conn).await.unwrap();
}

/// Every table that the kernel has: whoever adds one is tested too.
async fn tables(conn: &mut SqliteConnection) -> Vec<String> {
    let query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
        AND name <> 'fault' ORDER BY name";
    let rows = all(conn, query.to_owned()).await;
    rows.iter().map(|row| row.get("name")).collect()
}

/// Everything that is stored, as text.
async fn dump(conn: &mut SqliteConnection) -> Vec<String> {
    let mut lines = Vec::new();
    for table in tables(conn).await {
        let columns = all(conn, format!("SELECT name FROM pragma_table_info('{table}')")).await;
        let columns: Vec<String> =
            columns.iter().map(|row| format!("quote({})", row.get::<&str, _>("name"))).collect();
        let columns = columns.join(" || ',' || ");
        let rows = format!("SELECT {columns} AS line FROM {table} ORDER BY rowid");
        for row in all(conn, rows).await {
            lines.push(format!("{table}: {}", row.get::<&str, _>("line")));
        }
    }
    lines
}

/// From now on the `n`th change of a row fails, counted on both of its sides.
async fn arm(conn: &mut SqliteConnection) {
    run_sql(conn, "CREATE TABLE fault (n INTEGER NOT NULL)".to_owned()).await;
    run_sql(conn, "INSERT INTO fault VALUES (0)".to_owned()).await;
    for table in tables(conn).await {
        for change in ["INSERT", "UPDATE", "DELETE"] {
            for side in ["BEFORE", "AFTER"] {
                let trigger = format!(
                    "CREATE TRIGGER fault_{table}_{change}_{side} {side} {change} ON {table} BEGIN
                        UPDATE fault SET n = n - 1;
                        SELECT RAISE(ABORT, 'a fault') FROM fault WHERE n = 0;
                    END"
                );
                run_sql(conn, trigger).await;
            }
        }
    }
}

/// Has the call fail at each change of a row in turn, until it comes through; whatever fails leaves everything as
/// it was. Answers how often it failed.
async fn fails_cleanly<T>(
    world: &World,
    call: impl AsyncFn(&SqliteStore) -> Result<T, StoreError>,
) -> (u32, T) {
    let mut conn = raw(&world.path()).await;
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

async fn end(world: &World, run: &Run) {
    let step = "steps.0".into();
    let output = json!({ "n": 1 });
    let ended = Fact::Ended {
        end: End::Succeeded { result: json!([1]), message: None, step: None },
        at: world.store.store_now().await.unwrap(),
    };
    let facts = [Fact::StepCompleted { step, output, by: SaidBy::Action }, ended];
    world.store.run_commit(Commit::new(run, &facts)).await.unwrap();
}

/// Ended runs of dispatched events, one that is alive, a deferred event, and signals.
async fn busy() -> World {
    let world = World::published().await;
    for run in world.claimed(3).await {
        end(&world, &run).await;
    }
    world.emit(order().dedupe_key("pending").deferred()).await;
    world.emit(order().dedupe_key("alive")).await;
    let signal = Signal::new("approval", "7").data(7).check().unwrap();
    let send = surefoot_kernel_core::SendSignal { app: app(), scope: Some(scope()), signal };
    world.store.signal_send(send).await.unwrap();
    arm(&mut raw(&world.path()).await).await;
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
    let mut conn = raw(&world.path()).await;
    let rows = all(&mut conn, "SELECT count(*) AS n FROM surefoot_event_payload".to_owned()).await;
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
    let mut conn = raw(&world.path()).await;
    for table in ["surefoot_journal", "surefoot_run_result"] {
        let rows = all(&mut conn, format!("SELECT count(*) AS n FROM {table}")).await;
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
    let mut conn = raw(&world.path()).await;
    for line in dump(&mut conn).await {
        let is_kept = ["surefoot_audit: ", "surefoot_meta: ", "surefoot_worker_session: "];
        assert!(is_kept.iter().any(|table| line.starts_with(table)), "{line}");
    }
    // The same ids and keys again: nothing of the old ones is found.
    world.store.version_publish(publish("stock")).await.unwrap();
    let again = world.emit(order().dedupe_key("alive")).await;
    assert!(again.new && again.runs.len() == 1);
}

/// Covers field fault 85.
#[tokio::test]
async fn a_tree_too_large_for_one_transaction_is_deleted_in_parts_and_not_retried_meanwhile() {
    let world = World::published().await;
    let mut conn = raw(&world.path()).await;
    let runs = world.claimed(1).await;
    let failed = Fact::Ended {
        end: End::Failed(surefoot_kernel_core::Failure::new("FAILED", "no")),
        at: world.store.store_now().await.unwrap(),
    };
    let root = world.store.run_commit(Commit::new(&runs[0], &[failed])).await.unwrap().run;
    let columns =
        all(&mut conn, "SELECT name FROM pragma_table_info('surefoot_run')".to_owned()).await;
    let columns: Vec<String> = columns.iter().map(|row| row.get("name")).collect();
    let child: Vec<&str> = columns
        .iter()
        .map(|name| match name.as_str() {
            "no" => "NULL",
            "id" => "randomblob(16)",
            "parent_run" => "root",
            "parent_step" => "'steps.0'",
            "parent_index" => "value",
            "parent_depth" => "1",
            name => name,
        })
        .collect();
    let child = format!(
        "WITH RECURSIVE n (value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM n WHERE value < 19999)
        INSERT INTO surefoot_run ({}) SELECT {} FROM surefoot_run, n WHERE parent_run IS NULL",
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
    assert!(dump(&mut conn).await.iter().all(|line| !line.starts_with("surefoot_doomed")));
    assert!(world.store.claim_rows(claim(9, next())).await.is_empty());
}

/// The settings on which durability rests are looked at, and the file is sound.
#[tokio::test]
async fn the_store_checks_itself() {
    let world = World::published().await;
    let facts = world.store.store_check().await.unwrap();
    assert!(facts.iter().all(|fact| fact.ok), "{facts:?}");
    let names: Vec<&str> = facts.iter().map(|fact| fact.name).collect();
    assert!(names.contains(&"journal mode") && names.contains(&"integrity"), "{names:?}");
    let emitted = world.store.event_emit(emit(order())).await.unwrap();
    assert_eq!(emitted.runs.len(), 1);
    let mut conn = raw(world.store.path()).await;
    for (drop, lacking) in [
        ("DROP INDEX surefoot_audit_run", "index `surefoot_audit_run`"),
        ("DROP TABLE surefoot_audit", "table `surefoot_audit`"),
    ] {
        run_sql(&mut conn, drop.to_owned()).await;
        let facts = world.store.store_check().await.unwrap();
        let bad: Vec<_> = facts.iter().filter(|fact| !fact.ok).collect();
        assert!(bad.len() == 1 && bad[0].found.contains(lacking), "{facts:?}");
    }
}

/// A damaged file is what `doctor` is there for: it says so, and does not end with an error.
#[tokio::test]
async fn a_damaged_file_is_a_finding() {
    use std::io::{Seek as _, SeekFrom, Write as _};
    let world = World::published().await;
    for _ in 0..50 {
        world.store.event_emit(emit(order())).await.unwrap();
    }
    let mut conn = raw(world.store.path()).await;
    run_sql(&mut conn, "PRAGMA wal_checkpoint(TRUNCATE)".to_owned()).await;
    let find = "SELECT rootpage FROM sqlite_schema WHERE name = 'surefoot_run_live'";
    let page: i64 = all(&mut conn, find.to_owned()).await[0].get(0);
    drop(conn);
    let path = world.store.path().to_owned();
    let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start((page.cast_unsigned() - 1) * 4096)).unwrap();
    file.write_all(&[0xff; 4096]).unwrap();
    drop(file);
    let store = SqliteStore::open(&path).await.unwrap();
    let facts = store.store_check().await.unwrap();
    assert!(facts.iter().any(|fact| fact.name == "integrity" && !fact.ok), "{facts:?}");
}

/// What was read on one connection and is deleted on another one must be the same row still: a number that was free for
/// a moment would name somebody else's.
#[tokio::test]
async fn no_row_number_is_given_twice() {
    let world = World::published().await;
    let mut conn = raw(&world.path()).await;
    let mut last = [0_i64; 3];
    for round in 0..3 {
        world.store.version_publish(publish("order")).await.unwrap();
        world.emit(order().dedupe_key(round.to_string())).await;
        let signal = Signal::new("approval", "7").check().unwrap();
        let send = surefoot_kernel_core::SendSignal { app: app(), scope: Some(scope()), signal };
        world.store.signal_send(send).await.unwrap();
        for (table, last) in
            ["surefoot_event", "surefoot_run", "surefoot_signal"].iter().zip(&mut last)
        {
            let newest = format!("SELECT max(no) AS n FROM {table}");
            let newest: i64 = all(&mut conn, newest).await[0].get("n");
            assert!(newest > *last, "{table} gives number {newest} again");
            *last = newest;
        }
        let place = Place { app: app(), scope: scope(), workflow: None };
        let (force, actor, reason) = (Force::No, "ann".to_owned(), "moved".to_owned());
        let begin = Delete { place: place.clone(), force, actor, reason };
        world.store.delete_begin(begin).await.unwrap();
        while !world.store.delete_pass(place.clone(), 100).await.unwrap().done {}
    }
}
