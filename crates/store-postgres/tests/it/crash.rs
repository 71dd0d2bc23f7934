//! The server is killed while everybody works, and comes back.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::json;
use surefoot_kernel_core::{
    Commit, Emission, Emit, EmitError, End, EventFilter, EventStore, Fact, LoadRequest,
    OperatorStore, PlanStore, Run, RunFilter, RunId, RunState, RunStore, SaidBy, StoreError,
};
use surefoot_store_postgres::{PostgresOptions, PostgresStore, sqlx};
use surefoot_testkit::servers::{Postgres, Server};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};

use crate::database::Database;
use crate::published::{claim, emit, order, publish};
use crate::support::LEASE;

const EMITTERS: usize = 4;
const EVENTS: usize = 25;
const KILLS: usize = 4;

/// Whether the server is there; who fails waits until it is.
type Up = watch::Receiver<bool>;

fn is_loss(error: &StoreError) -> bool {
    matches!(error, StoreError::UnknownOutcome(_) | StoreError::Unavailable(_))
}

async fn until_known(store: &PostgresStore, event: &Emit, up: &mut Up) -> Emission {
    loop {
        match store.event_emit(event.clone()).await {
            Ok(emission) => return emission,
            Err(EmitError::Store(error)) if is_loss(&error) => {
                up.wait_for(|up| *up).await.unwrap();
            }
            Err(error) => unreachable!("{error:?}"),
        }
    }
}

/// Ends runs, and says which of them are acknowledged. What is lost is for whoever claims it next.
async fn end_runs(store: &PostgresStore) -> Vec<RunId> {
    let runs = match store.run_claim(claim(8)).await {
        Ok(runs) => runs,
        Err(error) => {
            assert!(is_loss(&error), "{error:?}");
            return Vec::new();
        }
    };
    let mut ended = Vec::new();
    for stored in runs {
        match store.run_commit(outcome_and_end(&stored.run)).await {
            Ok(_) => ended.push(stored.run.id),
            Err(error) => assert!(is_loss(&error), "{error:?}"),
        }
    }
    ended
}

fn outcome_and_end(run: &Run) -> Commit {
    let (step, output, by) = ("steps.0".into(), json!(7), SaidBy::Action);
    let at = run.started_at.unwrap();
    let ended = Fact::Ended { end: End::Canceled, at };
    Commit::new(run, &[Fact::StepCompleted { step, output, by }, ended])
}

/// Kills the server each time that so much has been acknowledged, and starts it again.
async fn strike(
    mut server: Server,
    mut progress: mpsc::UnboundedReceiver<()>,
    up: watch::Sender<bool>,
) -> (Server, usize) {
    let between = EMITTERS * EVENTS / (KILLS + 1);
    let (mut acknowledged, mut kills) = (0, 0);
    while progress.recv().await.is_some() {
        acknowledged += 1;
        if acknowledged % between == 0 && kills < KILLS {
            kills += 1;
            up.send(false).unwrap();
            server = spawn_blocking(move || {
                server.kill().unwrap();
                server.restart().unwrap();
                server
            })
            .await
            .unwrap();
            up.send(true).unwrap();
        }
    }
    (server, kills)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_kills_of_the_server_and_happens_once() {
    let server = spawn_blocking(|| Postgres::given().unwrap().start().unwrap()).await.unwrap();
    let offset = Arc::new(AtomicI64::new(0));
    let options = PostgresOptions::new(server.url()).unwrap().clock_offset(offset.clone());
    let store = PostgresStore::open_with(options).await.unwrap();
    store.version_publish(publish("stock")).await.unwrap();

    let (done, progress) = mpsc::unbounded_channel();
    let (up, is_up) = watch::channel(true);
    let mut emitters = JoinSet::new();
    for _ in 0..EMITTERS {
        let (store, done, mut up) = (store.clone(), done.clone(), is_up.clone());
        emitters.spawn(async move {
            for _ in 0..EVENTS {
                let event = emit(order());
                assert_eq!(until_known(&store, &event, &mut up).await.event, event.id);
                done.send(()).unwrap();
            }
        });
    }
    drop(done);
    let worker = tokio::spawn({
        let (store, mut up) = (store.clone(), is_up.clone());
        async move {
            let mut ended = HashSet::new();
            // Until nobody tells any more.
            while up.has_changed().is_ok() && up.wait_for(|up| *up).await.is_ok() {
                for run in end_runs(&store).await {
                    assert!(ended.insert(run), "{run} was ended twice");
                }
            }
            ended
        }
    });
    let (server, kills) = strike(server, progress, up).await;
    assert_eq!(kills, KILLS);
    emitters.join_all().await;
    let mut ended = worker.await.unwrap();

    // What was claimed, and lost, is claimed again when its lease is over.
    while ended.len() < EMITTERS * EVENTS {
        offset.fetch_add(LEASE.get(), Ordering::SeqCst);
        let more = end_runs(&store).await;
        let states = |states| RunFilter { states, limit: 1_000, ..RunFilter::default() };
        let all = store.run_list(states(vec![RunState::Canceled])).await.unwrap().rows;
        assert!(ended.iter().chain(&more).all(|run| all.iter().any(|row| row.run.id == *run)));
        ended.extend(all.into_iter().map(|row| row.run.id));
    }
    let all = EventFilter { limit: 1_000, ..EventFilter::default() };
    assert_eq!(store.event_list(all).await.unwrap().rows.len(), EMITTERS * EVENTS);
    for run in ended {
        let stored = store.run_load(LoadRequest { run, after: None }).await.unwrap().unwrap();
        let facts: usize = stored.journal.unwrap().iter().map(|entry| entry.facts.len()).sum();
        assert_eq!((stored.run.state(), facts), (RunState::Canceled, 2), "{run}");
    }
    spawn_blocking(move || server.stop().unwrap()).await.unwrap();
}

/// Covers field fault 123.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starters_that_are_killed_in_a_migration_leave_it_to_the_next() {
    let database = Database::empty().await;
    let mut starters = JoinSet::new();
    for _ in 0..20 {
        let options = database.options();
        starters.spawn(async move {
            loop {
                match PostgresStore::open_with(options.clone()).await {
                    Ok(store) => return store,
                    Err(error) => assert!(is_loss(&error), "{error:?}"),
                }
            }
        });
    }
    let mut conn = database.raw().await;
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let mut killed = 0;
    while killed < 40 && !starters.is_empty() {
        killed += sqlx::raw_sql(kill).fetch_all(&mut conn).await.unwrap().len();
        if starters.try_join_next().is_some_and(|joined| joined.is_err()) {
            panic!("a starter failed");
        }
        tokio::task::yield_now().await;
    }
    starters.join_all().await;
    assert!(killed > 0, "nobody was killed");
    let store = PostgresStore::open_with(database.options()).await.unwrap();
    store.version_publish(publish("stock")).await.unwrap();
    assert_eq!(store.event_emit(emit(order())).await.unwrap().runs.len(), 1);
}
