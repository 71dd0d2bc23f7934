//! Kills of a process that expires, prunes and deletes: whatever is left is whole, and the next process goes on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use surefoot_kernel_core::retention::Force;
use surefoot_kernel_core::{
    Amounts, Commit, Delete, Emission, Emit, Event, EventFilter, EventStore, Ids, LoadRequest,
    OperatorStore, Place as Deleting, PlanStore, Prunable, Prune, Publish, RetentionError,
    RetentionStore, RowInput, RunState, RunStore, decide_row,
};
use surefoot_language::{Bindings, compile_and_bind};
use surefoot_store_sqlite::sqlx::{self, Connection, Row, SqliteConnection};
use surefoot_store_sqlite::{SqliteOptions, SqliteStore};
use surefoot_testkit::suite::check_invariants;
use surefoot_worker::SystemIds;

use crate::app::{APP, Place, SLOW_SOURCE, module};
use crate::parent::Child;

/// Kills in all; each sees a process in another part of its work.
const KILLS: u32 = 50;
const SCOPES: u32 = 8;
/// Scopes with a lower number are deleted.
const KEPT_FROM: u32 = 4;
const EVENTS: u32 = 60;
const DAYS_31: i64 = 31 * 86_400_000_000;

async fn open(place: &Place, offset: i64) -> SqliteStore {
    let options = SqliteOptions::new(place.store()).clock_offset(Arc::new(AtomicI64::new(offset)));
    SqliteStore::open_with(options).await.unwrap()
}

fn scope(number: u32) -> surefoot_kernel_core::Scope {
    format!("s{number}").into()
}

fn event(number: u32) -> Event {
    Event::start("slow", json!({ "number": number })).dedupe_key(format!("key-{number}"))
}

async fn emit(store: &SqliteStore, at: u32, number: u32) -> Emission {
    let event = event(number).check().unwrap();
    let (app, id) = (APP.into(), SystemIds.event());
    store.event_emit(Emit { app, scope: scope(at), id, event, eager: None }).await.unwrap()
}

/// Scopes full of ended runs, and what each event was answered with.
async fn fill(place: &Place) -> BTreeMap<(u32, u32), Emission> {
    let store = open(place, 0).await;
    let module = module(place);
    let mut emitted = BTreeMap::new();
    for at in 0..SCOPES {
        let publish = Publish {
            app: APP.into(),
            scope: scope(at),
            workflow: "slow".into(),
            version: SystemIds.version(),
            plan: compile_and_bind(SLOW_SOURCE, module.manifest(), &Bindings::new()).unwrap(),
            source: SLOW_SOURCE.to_owned(),
            budget: Amounts::default(),
            activate: true,
            authorization: None,
            author: "ann".to_owned(),
        };
        store.version_publish(publish).await.unwrap();
        for number in 0..EVENTS {
            let emission = emit(&store, at, number).await;
            let run = emission.runs[0];
            let request = LoadRequest { run, after: None };
            let row = store.run_load(request).await.unwrap().unwrap().run;
            let (actor, reason) = ("ann".to_owned(), "late".to_owned());
            let now = store.store_now().await.unwrap();
            let facts = decide_row(&row, RowInput::Cancel { actor, reason }, now).unwrap();
            store.run_commit(Commit::new(&row, &facts)).await.unwrap();
            emitted.insert((at, number), emission);
        }
    }
    emitted
}

/// The child's part: a little of everything, again and again, until nothing is left.
pub(crate) async fn retire(place: &Place) {
    let store = open(place, DAYS_31).await;
    crate::child::say("ready");
    let before = store.store_now().await.unwrap();
    let mut idle = 0;
    while idle < 2 {
        let expired = store.event_expire(&APP.into(), 2).await.unwrap().emptied;
        let what = Prunable::Runs { states: vec![RunState::Canceled] };
        let prune = Prune { app: APP.into(), scope: None, what, before, limit: 2, audit: None };
        let pruned = store.prune(prune).await.unwrap().deleted;
        let mut deleting = false;
        for at in 0..KEPT_FROM {
            let app = APP.into();
            let place = Deleting { app, scope: scope(at), workflow: None };
            let (actor, reason) = ("bob".to_owned(), "they left".to_owned());
            let begin = Delete { place: place.clone(), force: Force::No, actor, reason };
            match store.delete_begin(begin).await {
                Ok(()) => deleting |= !store.delete_pass(place, 2).await.unwrap().done,
                Err(RetentionError::NotFound { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        idle = if expired + pruned > 0 || deleting { 0 } else { idle + 1 };
    }
    crate::child::say("done");
    // Until the parent ends it.
    std::thread::sleep(Duration::from_secs(60));
}

async fn count(conn: &mut SqliteConnection, statement: &'static str) -> i64 {
    sqlx::query(statement).fetch_one(conn).await.unwrap().get(0)
}

/// What must hold after every kill: nothing is half there.
async fn check(place: &Place) {
    let store = open(place, DAYS_31).await;
    check_invariants(&store).await;
    let mut conn = SqliteConnection::connect(place.store().to_str().unwrap()).await.unwrap();
    let broken = sqlx::query("PRAGMA foreign_key_check").fetch_all(&mut conn).await.unwrap();
    assert!(broken.is_empty(), "{} rows of nothing", broken.len());
    for half in [
        "SELECT count(*) FROM surefoot_event LEFT JOIN surefoot_event_payload ON event = no
            WHERE (emptied_at IS NULL) <> (event IS NOT NULL)",
        "SELECT count(*) FROM surefoot_run LEFT JOIN surefoot_run_payload ON run = no WHERE run IS NULL",
        "SELECT count(*) FROM surefoot_run WHERE seq > 0
            AND seq <> (SELECT sum(count) FROM surefoot_journal WHERE run = no)",
        "SELECT count(*) FROM surefoot_run AS run LEFT JOIN surefoot_version AS version ON version.id = run.version
            WHERE version.id IS NULL",
        "SELECT count(*) FROM surefoot_event WHERE length(runs) <> 16",
    ] {
        assert_eq!(count(&mut conn, half).await, 0, "{half}");
    }
}

/// One that is at work for so long.
async fn killed_after(place: &Place, span: Duration) {
    let child = Child::start(place, "retire", None);
    child.wait_for("ready");
    // The moment is the point: there is no condition to wait for.
    std::thread::sleep(span);
    child.signal(Signal::KILL);
    child.join_killed();
    check(place).await;
}

/// Covers field faults 85, 87.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_killed_while_it_deletes_leaves_nothing_half_there() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(folder.path());
    let emitted = fill(&place).await;
    for nth in 0..KILLS {
        killed_after(&place, Duration::from_micros(u64::from(nth) * 7_919 % 30_000)).await;
    }
    let mut conn = SqliteConnection::connect(place.store().to_str().unwrap()).await.unwrap();
    let all = i64::from(SCOPES * EVENTS);
    // On a busy machine none may have come to anything yet.
    let mut patience = Duration::from_millis(30);
    while count(&mut conn, "SELECT count(*) FROM surefoot_run").await == all {
        killed_after(&place, patience).await;
        patience *= 2;
    }
    let child = Child::start(&place, "retire", None);
    child.wait_for("done");
    child.signal(Signal::KILL);
    child.join_killed();
    check(&place).await;

    let store = open(&place, DAYS_31).await;
    let filter = EventFilter { app: Some(APP.into()), limit: 1_000, ..EventFilter::default() };
    let events = store.event_list(filter).await.unwrap().rows;
    assert_eq!(events.len(), usize::try_from((SCOPES - KEPT_FROM) * EVENTS).unwrap());
    assert!(events.iter().all(|event| event.is_expired));
    for ((at, number), first) in emitted.into_iter().filter(|((at, _), _)| *at >= KEPT_FROM) {
        let again = emit(&store, at, number).await;
        assert_eq!((again.event, &again.runs), (first.event, &first.runs), "s{at} key-{number}");
        assert!(!again.new && again.same_payload);
    }
    for (left, expected) in [
        ("SELECT count(*) FROM surefoot_run", 0),
        ("SELECT count(*) FROM surefoot_journal", 0),
        ("SELECT count(*) FROM surefoot_deletion", 0),
        ("SELECT count(*) FROM surefoot_doomed", 0),
        ("SELECT count(*) FROM surefoot_workflow", i64::from(SCOPES - KEPT_FROM)),
        ("SELECT count(*) FROM surefoot_audit WHERE verb = 'deleted'", i64::from(KEPT_FROM)),
    ] {
        assert_eq!(count(&mut conn, left).await, expected, "{left}");
    }
}
