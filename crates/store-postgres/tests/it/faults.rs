//! A server that is full, out of connections, or impatient; and actions that keep their row for long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use surefoot_testkit::ClaimRows as _;

use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};
use surefoot_kernel_core::{
    BoxFuture, EmitError, Event, EventFilter, EventStore, LoadRequest, Locked, Micros,
    OperatorStore, PlanStore, RenewRequest, Renewed, Run, RunStore, Scan, StoreError, TxStore,
    TxWork, Work,
};
use surefoot_store_postgres::{PostgresOptions, PostgresStore, PostgresTx, sqlx};
use surefoot_testkit::servers::{Fate, Postgres, Server};
use tokio::task::{JoinSet, spawn_blocking};

use crate::database::Database;
use crate::published::{self, emit, order, publish, published};
use crate::support::{LEASE, World, app, load, outcome, session, step};
use crate::wire::{Wired, caught, until_waiting};

/// A record that its transaction leaves nothing else behind.
struct Record;

impl TxWork<PostgresTx> for Record {
    fn work<'a>(&'a mut self, _: &'a mut PostgresTx, locked: Locked) -> BoxFuture<'a, Work> {
        let commit = outcome(&locked.run, json!("done"));
        Box::pin(std::future::ready(Work::Commit(Box::new(commit))))
    }
}

fn is_away(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable(_))
}

async fn execute(conn: &mut PgConnection, statement: String) {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(conn).await.unwrap();
}

/// The application has all of its connections in use. The kernel's own are others: only transactional steps wait, and no
/// lease is lost meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_that_uses_up_its_connections_stops_transactional_steps_only() {
    let world = World::with(|options| options.transactions(3)).await;
    world.store.version_publish(publish("stock")).await.unwrap();
    let (run, other) = (world.claimed(1).await.remove(0), world.claimed(1).await.remove(0));
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(world.store.begin().await.unwrap());
    }
    let (store, before) = (world.store.clone(), run.stamp());
    let transacting = tokio::spawn(async move { store.run_transact(before, &mut Record).await });
    for _ in 0..5 {
        world.store.event_emit(emit(order())).await.unwrap();
        assert_eq!(world.store.claim_rows(published::claim(1)).await.len(), 1);
    }
    step(&world.store, &other).await.unwrap();
    world.pass(Micros::from_secs(100));
    let runs = vec![run.stamp(), other.stamp()];
    let renewal = RenewRequest { session: session(), runs, lease: LEASE };
    let renewed = world.store.lease_renew(renewal).await.unwrap();
    assert!(
        renewed.iter().all(|(_, renewed)| matches!(renewed, Renewed::Held { .. })),
        "{renewed:?}"
    );
    world.pass(Micros::from_secs(100));
    assert!(
        world.store.run_recover(Scan { app: app(), limit: 10 }).await.unwrap().woken.is_empty()
    );
    assert!(!transacting.is_finished());
    for open in held {
        open.rollback().await;
    }
    let committed = transacting.await.unwrap().unwrap().unwrap();
    assert_eq!((committed.run.generation, committed.run.seq), (run.generation, run.seq + 1));
}

/// The server itself has no connection left: whatever needs a new one is told so, and nothing is in doubt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_free_connection_is_away_and_nothing_is_lost() {
    let world = World::new().await;
    let mut conn = world.database.raw().await;
    let (name, role) = (world.database.name(), format!("few_{}", world.database.name()));
    execute(&mut conn, format!("CREATE ROLE {role} LOGIN CONNECTION LIMIT 3")).await;
    let grant = format!(
        "GRANT ALL ON SCHEMA surefoot TO {role};
        GRANT ALL ON ALL TABLES IN SCHEMA surefoot TO {role};
        GRANT ALL ON ALL SEQUENCES IN SCHEMA surefoot TO {role};"
    );
    execute(&mut conn, grant).await;
    let options = world.database.options_as(&role).clock_offset(world.offset.clone());
    let store = PostgresStore::open_with(options).await.unwrap();
    let mut ended = 0;
    let mut away = 0;
    for run in world.claimed(30).await {
        let (commit, load) = (outcome(&run, json!(1)), LoadRequest { run: run.id, after: None });
        let (one, two, three) = tokio::join!(
            store.run_commit(commit),
            store.run_load(load),
            store.run_recover(Scan { app: app(), limit: 10 }),
        );
        let errors = [one.as_ref().err(), two.as_ref().err(), three.as_ref().err()];
        for error in errors.into_iter().flatten() {
            assert!(is_away(error), "{name}: {error:?}");
            away += 1;
        }
        let written = load_of(&world, &run).await.seq - run.seq;
        assert_eq!(written, u64::from(one.is_ok()), "written, and not told");
        ended += written;
    }
    println!("{ended} commits, {away} calls without a connection");
    assert!(ended > 0);
    drop(store);
    let drop_role = format!("DROP OWNED BY {role}; DROP ROLE {role}");
    execute(&mut conn, drop_role).await;
}

async fn load_of(world: &World, run: &Run) -> Run {
    load(&world.store, run.id).await.run
}

/// A database that gives its statements no time: the kernel's own are not under that rule. Those in transactions of the
/// application are, and what is canceled there has left nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_with_a_statement_timeout_cancels_no_statement_of_the_kernel() {
    let world = World::new().await;
    let mut conn = world.database.raw().await;
    let name = world.database.name();
    execute(&mut conn, format!("ALTER DATABASE {name} SET statement_timeout = 50")).await;
    let store = world.other().await;
    store.version_publish(publish("stock")).await.unwrap();
    store.event_emit(emit(order())).await.unwrap();
    assert_eq!(store.claim_rows(published::claim(1)).await.len(), 1);
    for run in world.claimed(3).await {
        // Somebody has the row for longer than that.
        execute(&mut conn, "BEGIN".to_owned()).await;
        let id = sqlx::types::Uuid::from_bytes(run.id.to_bytes());
        let lock = sqlx::query("SELECT FROM surefoot.run WHERE id = $1 FOR UPDATE").bind(id);
        lock.execute(&mut conn).await.unwrap();
        let answer = store.run_transact(run.stamp(), &mut Record).await;
        assert!(answer.as_ref().is_err_and(is_away), "{answer:?}");
        let (waits, commit) = (store.clone(), outcome(&run, json!(1)));
        let committing = tokio::spawn(async move { waits.run_commit(commit).await });
        let mut watch = world.database.raw().await;
        execute(&mut watch, "SET statement_timeout = 0".to_owned()).await;
        until_waiting(&mut watch, 1).await;
        // Longer than a statement may take.
        execute(&mut watch, "SELECT pg_sleep(0.2)".to_owned()).await;
        assert!(!committing.is_finished());
        execute(&mut conn, "ROLLBACK".to_owned()).await;
        assert_eq!(committing.await.unwrap().unwrap().run.seq, run.seq + 1);
        assert_eq!(load_of(&world, &run).await.seq, run.seq + 1);
    }
}

/// The disk is full at any statement that writes: nothing of it is there, nobody is in doubt, and once there is room again
/// all goes on. Works on every machine: the server itself is made to say so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_a_store_that_is_away() {
    let wired = Wired::of(published().await).await;
    let mut run = wired.world.claimed(1).await.remove(0);
    let full = |text: &str| wired.proxy.trap_all(text, Fate::Fail("53100"));

    // A commit is tried again for as long as it is nobody's fault.
    let disk = full("run/commit_steps");
    let (store, commit) = (wired.store.clone(), outcome(&run, json!(1)));
    let committing = tokio::spawn(async move { store.run_commit(commit).await });
    caught(&disk).await;
    disk.disarm();
    run = committing.await.unwrap().unwrap().run;

    let disk = full("event/emit");
    let event = emit(order());
    let answer = wired.store.event_emit(event.clone()).await;
    assert!(matches!(&answer, Err(EmitError::Store(error)) if is_away(error)), "{answer:?}");
    disk.disarm();
    assert!(wired.store.event_emit(event).await.unwrap().new);

    for text in ["SELECT; COMMIT", "run/claimable"] {
        let disk = full(text);
        let claim = wired.store.run_claim(published::claim(1)).await;
        assert!(claim.as_ref().is_err_and(is_away), "{claim:?}");
        disk.disarm();
    }
    // The server tells of an error before it has let the locks go, and claims pass over what is locked.
    let mut claimed = 0;
    while claimed == 0 {
        claimed = wired.store.claim_rows(published::claim(9)).await.len();
    }
    assert_eq!(claimed, 1);

    for text in ["RELEASE", "run/step", "COMMIT"] {
        let disk = full(text);
        let answer = wired.store.run_transact(run.stamp(), &mut Record).await;
        if disk.caught() > 0 {
            assert!(answer.as_ref().is_err_and(is_away), "{text}: {answer:?}");
        }
        disk.disarm();
        run = load(&wired.store, run.id).await.run;
    }
    let facts = load(&wired.world.store, run.id).await.journal.unwrap().len();
    assert_eq!(u64::try_from(facts).unwrap(), run.seq);
}

/// A server of its own, whose files may not grow beyond a size from some moment on: its writes really fail.
struct Small(Server);

impl Small {
    async fn new() -> Self {
        Self(spawn_blocking(|| Postgres::given().unwrap().start().unwrap()).await.unwrap())
    }

    /// From another start on.
    async fn limit(self, bytes: Option<u64>) -> Self {
        let Self(mut server) = self;
        let limited = spawn_blocking(move || {
            server.limit_files(bytes);
            server.restart().unwrap();
            server
        });
        Self(limited.await.unwrap())
    }

    async fn store(&self) -> PostgresStore {
        PostgresStore::open_with(PostgresOptions::new(self.0.url()).unwrap()).await.unwrap()
    }
}

/// Text that cannot be made smaller.
fn noise(seed: u64, bytes: usize) -> String {
    let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'!' + u8::try_from((state >> 40) % 90).unwrap())
    };
    (0..bytes).map(|_| next()).collect()
}

/// What was acknowledged before is there, what was not is not, and there is no doubt about anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_cannot_grow_lose_nothing() {
    let small = Small::new().await;
    let store = small.store().await;
    store.version_publish(publish("stock")).await.unwrap();
    drop(store);
    // A segment of the log has 16 MiB and fits; tables do not get larger.
    let small = small.limit(Some(17 << 20)).await;
    let store = small.store().await;
    let big = |nth: u64| {
        let text = noise(nth, 2 << 20);
        emit(Event::new("order.placed", json!({ "text": text })))
    };
    let mut acknowledged = 0;
    let refused = loop {
        match store.event_emit(big(acknowledged)).await {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
        assert!(acknowledged < 64, "the files grow");
    };
    assert!(matches!(&refused, EmitError::Store(error) if is_away(error)), "{refused:?}");
    assert!(acknowledged > 0);
    // Whatever needs no room goes on.
    assert_eq!(store.claim_rows(published::claim(1)).await.len(), 1);
    let all = || EventFilter { limit: 100, ..EventFilter::default() };
    let there = store.event_list(all()).await.unwrap().rows.len();
    assert_eq!(u64::try_from(there).unwrap(), acknowledged);
    drop(store);
    let small = small.limit(None).await;
    let store = small.store().await;
    store.event_emit(big(acknowledged)).await.unwrap();
    let there = store.event_list(all()).await.unwrap().rows.len();
    assert_eq!(u64::try_from(there).unwrap(), acknowledged + 1);
    drop(store);
    spawn_blocking(move || small.0.stop().unwrap()).await.unwrap();
}

/// How long a step of each of these runs takes, in the middle.
async fn median(store: &PostgresStore, runs: &mut [Run]) -> Duration {
    let mut took = Vec::new();
    for run in &mut *runs {
        let began = Instant::now();
        *run = step(store, run).await.unwrap().run;
        took.push(began.elapsed());
    }
    took.sort_unstable();
    took[took.len() / 2]
}

/// One action keeps its fence, its own commit waits for the row, and renewals meet it; a hundred other runs do not feel it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_that_is_held_for_long_slows_nobody_else_down() {
    let world = World::new().await;
    let held = world.claimed(1).await.remove(0);
    let mut runs = world.claimed(100).await;
    let (mut free, mut fenced) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        free.push(median(&world.store, &mut runs).await);
        let mut tx = world.store.begin().await.unwrap();
        let now = load_of(&world, &held).await;
        world.store.fence(now.id, now.generation).hold(&mut tx).await.unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let mut beside = JoinSet::new();
        let (store, commit) = (world.store.clone(), outcome(&now, json!(1)));
        beside.spawn(async move { drop(store.run_commit(commit).await.unwrap()) });
        let stamps: Vec<_> = runs.iter().chain([&now]).map(Run::stamp).collect();
        let (store, is_over) = (world.store.clone(), over.clone());
        beside.spawn(async move {
            while !is_over.load(Ordering::SeqCst) {
                let runs = stamps.clone();
                let renewal = RenewRequest { session: session(), runs, lease: LEASE };
                drop(store.lease_renew(renewal).await.unwrap());
            }
        });
        fenced.push(median(&world.store, &mut runs).await);
        over.store(true, Ordering::SeqCst);
        tx.rollback().await;
        beside.join_all().await;
    }
    free.sort_unstable();
    fenced.sort_unstable();
    let (free, fenced) = (free[2], fenced[2]);
    println!("a step takes {free:?} without the fence and {fenced:?} with it");
    // Renewals in a loop take their part of the server; a step that waited for the row would take hundreds of times as long.
    assert!(fenced <= free * 10, "a step takes {free:?} without the fence and {fenced:?} with it");
}

/// Covers field fault 124.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_opens_a_database_that_is_in_use_waits_for_nobody_and_stops_nobody() {
    let world = published().await;
    let claimed = world.claimed(4).await;
    // As many runs as are claimed below stand ready, however slowly the loops make more.
    for _ in 0..20 {
        world.store.event_emit(emit(order())).await.unwrap();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut work = JoinSet::new();
    for mut run in claimed {
        let (store, stop) = (world.store.clone(), stop.clone());
        work.spawn(async move {
            let mut steps = 0;
            while !stop.load(Ordering::SeqCst) {
                run = step(&store, &run).await.unwrap().run;
                store.event_emit(emit(order())).await.unwrap();
                steps += 1;
            }
            steps
        });
    }
    // A transaction of the application is open all the time.
    let mut open = world.store.begin().await.unwrap();
    world.store.event_emit_in(&mut open, emit(order())).await.unwrap();
    for _ in 0..20 {
        let opened = world.other().await;
        assert_eq!(opened.claim_rows(published::claim(1)).await.len(), 1);
    }
    stop.store(true, Ordering::SeqCst);
    let steps = work.join_all().await;
    assert!(steps.iter().all(|steps| *steps > 0), "{steps:?}");
    open.rollback().await;
    // A schema of a newer build is left alone, with a word about what to do.
    let mut conn = world.database.raw().await;
    execute(&mut conn, "UPDATE surefoot.meta SET value = '999' WHERE key = 'schema'".to_owned())
        .await;
    let refused = PostgresStore::open_with(world.database.options()).await;
    let told = refused.unwrap_err();
    assert!(matches!(told, StoreError::SchemaTooNew { found: 999, .. }), "{told:?}");
    let row = sqlx::query("SELECT count(*) FROM surefoot.run").fetch_one(&mut conn).await.unwrap();
    assert!(row.get::<i64, _>(0) > 0);
    conn.close().await.unwrap();
    drop(Database::new().await);
}
