//! What claims and steps cost where there is much: in pages that the server touches, which no busy machine changes.

use sqlx::{AssertSqlSafe, PgConnection, Row};
use surefoot_kernel_core::Run;
use surefoot_store_postgres::sqlx;
use surefoot_testkit::ClaimRows as _;

use crate::published::{claim, end, published, started};
use crate::support::load;

async fn execute(conn: &mut PgConnection, statement: String) {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(conn).await.unwrap();
}

/// So many runs like this one.
async fn multiply(conn: &mut PgConnection, run: &Run, times: u32) {
    let id = sqlx::types::Uuid::from_bytes(run.id.to_bytes());
    let copies = format!(
        "CREATE TEMP TABLE copies AS SELECT run.* FROM surefoot.run, generate_series(1, {times})
            WHERE run.id = '{id}';
        UPDATE copies SET id = gen_random_uuid(), root = id;
        INSERT INTO surefoot.run SELECT * FROM copies;
        DROP TABLE copies;"
    );
    execute(conn, copies).await;
}

/// The plan of a claim with what it really touches.
async fn pages_of_a_claim(conn: &mut PgConnection) -> i64 {
    let claim = "EXPLAIN (ANALYZE, BUFFERS)
        SELECT id FROM surefoot.run
        WHERE app = 'inventory' AND mode = 'execute'
            AND footprint = (SELECT footprint FROM surefoot.version LIMIT 1)
            AND claimable_at <= surefoot.clock()
        ORDER BY claimable_at, id LIMIT 10 FOR NO KEY UPDATE SKIP LOCKED";
    let off = "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan";
    execute(conn, off.to_owned()).await;
    let rows = sqlx::query(claim).fetch_all(conn).await.unwrap();
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    // The first line about them is that of the whole.
    let buffers = lines.iter().find(|line| line.trim_start().starts_with("Buffers: shared"));
    let of = |what: &str| -> i64 {
        let found = buffers.and_then(|line| line.split(' ').find_map(|it| it.strip_prefix(what)));
        found.map_or(0, |pages| pages.parse().unwrap())
    };
    of("hit=") + of("read=")
}

/// Runs that have ended, or wait, are in no index that a claim reads.
///
/// Covers field faults 75, 82.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_do_not_feel_the_runs_that_ended() {
    let world = published().await;
    let runs = started(&world, 30).await;
    end(&world, &runs[0], serde_json::json!(1)).await;
    let mut conn = world.database.raw().await;
    let few = pages_of_a_claim(&mut conn).await;
    let ended = load(&world.store, runs[0].id).await.run;
    multiply(&mut conn, &ended, 20_000).await;
    let many = pages_of_a_claim(&mut conn).await;
    println!("a claim touches {few} pages, and {many} beside 20,000 runs that ended");
    assert!(many <= few * 2 + 50, "a claim touches {many} pages, and {few} where there is little");
    assert!(world.store.claim_rows(claim(10)).await.is_empty());
}

/// A reader with an old snapshot keeps every dead row version: claims step over them, and no more than once each.
///
/// Covers field faults 74, 77.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_beside_a_reader_with_an_old_snapshot_stay_near() {
    const CHURN: u32 = 300;
    let world = published().await;
    let mut reader = world.database.raw().await;
    execute(&mut reader, "BEGIN ISOLATION LEVEL REPEATABLE READ".to_owned()).await;
    sqlx::query("SELECT count(*) FROM surefoot.run").fetch_one(&mut reader).await.unwrap();
    let mut conn = world.database.raw().await;
    let fresh = pages_of_a_claim(&mut conn).await;
    for run in started(&world, CHURN).await {
        end(&world, &run, serde_json::json!(1)).await;
    }
    let churned = pages_of_a_claim(&mut conn).await;
    println!("a claim touches {fresh} pages, and {churned} behind {CHURN} dead runs");
    // Each run was queued, and claimed: two versions that an index of claimable runs has had.
    assert!(churned <= fresh + i64::from(CHURN) * 4 + 50, "{churned} pages, {fresh} before");
    execute(&mut reader, "COMMIT".to_owned()).await;
    execute(&mut conn, "VACUUM surefoot.run".to_owned()).await;
    let cleaned = pages_of_a_claim(&mut conn).await;
    assert!(cleaned <= fresh + 20, "{cleaned} pages after the reader was gone, {fresh} before");
    assert!(world.store.claim_rows(claim(10)).await.is_empty());
}
