//! Events and signals while others write at the same time.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use surefoot_testkit::ClaimRows as _;

use sqlx::Connection;
use surefoot_kernel_core::retention::Force;
use surefoot_kernel_core::{
    Commit, Delete, Dependency, Dispatched, Emission, Emit, EmitError, Event, EventFilter,
    EventStore, Fact, LoadRequest, OperatorStore, Place, PlanStore, RetentionStore, Run, RunFilter,
    RunId, RunState, RunStore, Scan, SendSignal, Signal, StoreError, TxStore,
};
use surefoot_store_postgres::{PostgresStore, sqlx};
use surefoot_testkit::servers::Fate;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::published::{claim, emit, order, publish, published, record, started};
use crate::support::{World, app, load, scope};
use crate::wire::{Wired, begun, caught};

/// What must come, however busy the machine is.
async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let timed = tokio::time::timeout(Duration::from_secs(60), future).await;
    timed.unwrap_or_else(|_| unreachable!("{what} did not come"))
}

/// Covers behaviour 76.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_an_open_transaction_holds_holds_up_nobody_else() {
    for commits in [true, false] {
        let world = published().await;
        let mut tx = world.store.begin().await.unwrap();
        let first = emit(order().dedupe_key("k"));
        let first = world.store.event_emit_in(&mut tx, first).await.unwrap();
        assert!(first.new);
        let store = world.store.clone();
        let second = emit(order().dedupe_key("k"));
        let second_id = second.id;
        let waiting = tokio::spawn(async move { store.event_emit(second).await.unwrap() });
        let mut others = JoinSet::new();
        for number in 0..20 {
            let store = world.store.clone();
            let event = emit(order().dedupe_key(format!("other {number}")));
            others.spawn(async move { store.event_emit(event).await.unwrap().new });
        }
        let others = soon("the other events", others.join_all()).await;
        assert_eq!(others, vec![true; 20]);
        assert!(!waiting.is_finished(), "it cannot know yet");
        if commits {
            tx.commit().await.unwrap();
        } else {
            tx.rollback().await;
        }
        let second = soon("the second event", waiting).await.unwrap();
        assert_eq!(second.new, !commits);
        assert_eq!(second.event, if commits { first.event } else { second_id });
        assert_eq!(second.runs.len(), 1);
    }
}

/// Nobody pays for the mistake of another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_the_database_refuses_is_refused_alone() {
    let world = published().await;
    let mut emits = JoinSet::new();
    for number in 0..40 {
        let store = world.store.clone();
        let mut event = emit(order());
        if number % 13 == 5 {
            // No text of PostgreSQL has one.
            event.scope = "nor\0th".into();
        }
        emits.spawn(async move { (number, store.event_emit(event).await) });
    }
    for (number, emitted) in soon("the answers", emits.join_all()).await {
        match emitted {
            Ok(emission) => assert!(number % 13 != 5 && emission.new && emission.runs.len() == 1),
            Err(EmitError::Store(StoreError::Refused(_))) => assert_eq!(number % 13, 5),
            Err(error) => panic!("{number}: {error:?}"),
        }
    }
    let all = RunFilter { limit: 100, ..RunFilter::default() };
    assert_eq!(world.store.run_list(all).await.unwrap().rows.len(), 37);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dispatchers_at_once_share_the_events_and_each_run_is_there_once() {
    let world = published().await;
    for _ in 0..60 {
        record(&world, order().deferred()).await;
    }
    let mut dispatchers = JoinSet::new();
    for _ in 0..4 {
        let store = world.other().await;
        dispatchers.spawn(async move {
            let mut dispatched = Vec::new();
            loop {
                let pass = store.event_dispatch(&app(), 7).await.unwrap();
                assert!(pass.failed.is_empty(), "{pass:?}");
                if pass == Dispatched::default() {
                    return dispatched;
                }
                dispatched.extend(pass.dispatched);
            }
        });
    }
    let mut dispatched: Vec<_> = dispatchers.join_all().await.into_iter().flatten().collect();
    let last = world.store.event_dispatch(&app(), 100).await.unwrap();
    dispatched.extend(last.dispatched);
    dispatched.sort_unstable();
    let count = dispatched.len();
    dispatched.dedup();
    assert_eq!((count, dispatched.len()), (60, 60));
    let all = RunFilter { limit: 100, ..RunFilter::default() };
    assert_eq!(world.store.run_list(all).await.unwrap().rows.len(), 60);
}

/// Covers behaviour 69.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_begins_when_nobody_records_into_the_place_any_more() {
    let world = published().await;
    let mut tx = world.store.begin().await.unwrap();
    let recorded = world.store.event_emit_in(&mut tx, emit(order())).await.unwrap();
    let place = Place { app: app(), scope: scope(), workflow: None };
    let (actor, reason) = ("bob".to_owned(), "they left".to_owned());
    let delete = Delete { place: place.clone(), force: Force::No, actor, reason };
    let store = world.store.clone();
    let begun = tokio::spawn(async move { store.delete_begin(delete).await });
    // Others record while it waits.
    for _ in 0..10 {
        soon("an event", record(&world, order())).await;
    }
    assert!(!begun.is_finished(), "an event of the place is not committed yet");
    tx.commit().await.unwrap();
    soon("the mark", begun).await.unwrap().unwrap();
    let refused = world.store.event_emit(emit(order())).await;
    assert!(matches!(&refused, Err(EmitError::BeingDeleted { place: of }) if *of == place));
    assert!(world.store.run_load(of(recorded.runs[0])).await.unwrap().is_some());
    soon("the end of the deletion", async {
        while !world.store.delete_pass(place.clone(), 100).await.unwrap().done {}
    })
    .await;
    let events = EventFilter { limit: 100, ..EventFilter::default() };
    assert!(world.store.event_list(events).await.unwrap().rows.is_empty());
    assert!(world.store.run_load(of(recorded.runs[0])).await.unwrap().is_none());
    assert!(world.store.event_emit(emit(order())).await.unwrap().new);
}

fn of(run: RunId) -> LoadRequest {
    LoadRequest { run, after: None }
}

/// The connections die again and again, in the middle of whatever they do: who does not know asks again, under the same
/// id, and everything is there once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_that_are_emitted_again_after_lost_answers_are_there_once() {
    let world = published().await;
    let (done, mut progress) = tokio::sync::mpsc::unbounded_channel();
    let mut emitters = JoinSet::new();
    for _ in 0..4 {
        let (store, done) = (world.store.clone(), done.clone());
        emitters.spawn(async move {
            for _ in 0..40 {
                let event = emit(order());
                let emission = until_known(&store, &event).await;
                assert_eq!((emission.event, emission.runs.len()), (event.id, 1));
                done.send(()).unwrap();
            }
        });
    }
    drop(done);
    let mut conn = world.database.raw().await;
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    // One kill for each event that came through, so that it goes on.
    while soon("an event", progress.recv()).await.is_some() {
        sqlx::raw_sql(kill).execute(&mut conn).await.unwrap();
    }
    emitters.join_all().await;
    let all = EventFilter { limit: 1_000, ..EventFilter::default() };
    assert_eq!(world.store.event_list(all).await.unwrap().rows.len(), 160);
    let all = RunFilter { limit: 1_000, ..RunFilter::default() };
    assert_eq!(world.store.run_list(all).await.unwrap().rows.len(), 160);
}

async fn until_known(store: &PostgresStore, event: &Emit) -> Emission {
    loop {
        match store.event_emit(event.clone()).await {
            Ok(emission) => return emission,
            Err(EmitError::Store(StoreError::UnknownOutcome(_) | StoreError::Unavailable(_))) => {}
            Err(error) => unreachable!("{error:?}"),
        }
    }
}

fn park(run: &Run, key: &str) -> Commit {
    let (step, on) = ("steps.0".into(), Some(Dependency::on("approval", key)));
    let at = run.started_at.unwrap();
    Commit::new(run, &[Fact::Parked { step, on, deadline: None, spins: 0, at }])
}

fn send(key: &str) -> SendSignal {
    let signal = Signal::new("approval", key).data(7).check().unwrap();
    SendSignal { app: app(), scope: Some(scope()), signal }
}

/// Covers behaviour 144.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_park_and_a_signal_at_once_the_later_one_sees_the_other() {
    let world = published().await;
    let runs = started(&world, 40).await;
    let mut calls = JoinSet::new();
    for (number, run) in runs.iter().enumerate() {
        let key = number.to_string();
        let (parker, sender) = (world.store.clone(), world.store.clone());
        let (park, send) = (park(run, &key), send(&key));
        calls.spawn(async move { drop(parker.run_commit(park).await.unwrap()) });
        calls.spawn(async move { drop(sender.signal_send(send).await.unwrap()) });
    }
    soon("the calls", calls.join_all()).await;
    for run in runs {
        assert_eq!(load(&world.store, run.id).await.run.state(), RunState::Queued);
    }
}

/// A signal waits for nobody who works on a run that waits for it: recovery wakes that one.
#[tokio::test]
async fn a_signal_passes_a_locked_run_over_and_recovery_wakes_it() {
    let world = published().await;
    let runs = started(&world, 2).await;
    for run in &runs {
        world.store.run_commit(park(run, "7")).await.unwrap();
    }
    let mut conn = world.database.raw().await;
    let mut theirs = conn.begin().await.unwrap();
    let lock = sqlx::query("SELECT FROM surefoot.run WHERE id = $1 FOR UPDATE");
    lock.bind(Uuid::from_bytes(runs[0].id.to_bytes())).execute(&mut *theirs).await.unwrap();
    let sent = soon("the signal", world.store.signal_send(send("7"))).await.unwrap();
    assert_eq!((sent.new, sent.woken), (true, vec![runs[1].id]));
    theirs.rollback().await.unwrap();
    assert_eq!(load(&world.store, runs[0].id).await.run.state(), RunState::Waiting);
    let scan = Scan { app: app(), limit: 10 };
    assert_eq!(world.store.run_recover(scan.clone()).await.unwrap().woken, [runs[0].id]);
    assert!(world.store.run_recover(scan).await.unwrap().woken.is_empty());
}

/// What was begun first may be committed last: nothing is passed over since something later was seen before.
///
/// Covers field fault 122.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_comes_later_than_its_ids_is_not_passed_over() {
    let world = published().await;
    let (first, second) = (emit(order().deferred()), emit(order().deferred()));
    let mut slow = world.store.begin().await.unwrap();
    world.store.event_emit_in(&mut slow, first.clone()).await.unwrap();
    let mut quick = world.store.begin().await.unwrap();
    world.store.event_emit_in(&mut quick, second.clone()).await.unwrap();
    quick.commit().await.unwrap();
    let dispatched = world.store.event_dispatch(&app(), 10).await.unwrap();
    assert_eq!(dispatched.dispatched, [second.id]);
    assert_eq!(world.store.claim_rows(claim(10)).await.len(), 1);
    slow.commit().await.unwrap();
    let dispatched = world.store.event_dispatch(&app(), 10).await.unwrap();
    assert_eq!(dispatched.dispatched, [first.id]);
    assert_eq!(world.store.claim_rows(claim(10)).await.len(), 1);
}

/// An event that stands in the lane, in the order of the calls; completes when it is recorded, and says whether it is new.
async fn sent(
    store: &PostgresStore,
    event: Event,
) -> Pin<Box<impl Future<Output = bool> + Send + use<>>> {
    let (store, event) = (store.clone(), emit(event));
    begun(async move { store.event_emit(event).await.unwrap().new }).await
}

/// One event of a batch waits for a key that somebody holds: the batch is sifted beside the lane, and the lane goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_sifted_holds_up_nobody_else() {
    let wired = Wired::of(published().await).await;
    let mut tx = wired.world.store.begin().await.unwrap();
    wired.world.store.event_emit_in(&mut tx, emit(order().dedupe_key("held"))).await.unwrap();
    // The first goes alone, and those that come while it is on its way go together.
    let first = wired.proxy.trap("event/emit", Fate::Delay);
    let mut emits = JoinSet::new();
    emits.spawn(sent(&wired.store, order()).await);
    caught(&first).await;
    let waits = tokio::spawn(sent(&wired.store, order().dedupe_key("held")).await);
    for number in 0..40 {
        emits.spawn(sent(&wired.store, order().dedupe_key(format!("free {number}"))).await);
    }
    // The batch itself is the next one, and its first half the one after that.
    let batch = wired.proxy.trap("event/emit", Fate::Delay);
    first.release();
    caught(&batch).await;
    let half = wired.proxy.trap("event/emit", Fate::Delay);
    batch.release();
    caught(&half).await;
    assert!(wired.store.event_emit(emit(order())).await.unwrap().new);
    half.release();
    assert_eq!(emits.join_all().await.into_iter().filter(|new| *new).count(), 41);
    assert!(!waits.is_finished());
    tx.rollback().await;
    assert!(waits.await.unwrap());
}

/// A handle knows what events match, and asks again as soon as anybody has changed it: an event never starts a version
/// that was replaced before it was emitted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_published_by_another_process_counts_from_then_on() {
    let world = published().await;
    let other = world.other().await;
    record(&world, order()).await;
    let versions = Arc::new(Mutex::new(Vec::new()));
    let published = Arc::new(AtomicUsize::new(0));
    let mut emitters = JoinSet::new();
    for _ in 0..4 {
        let (store, published) = (world.store.clone(), published.clone());
        emitters.spawn(async move {
            let mut seen = Vec::new();
            while seen.last().is_none_or(|(least, _)| *least < 20) {
                let least = published.load(Ordering::SeqCst);
                let emission = store.event_emit(emit(order())).await.unwrap();
                seen.push((least, emission.runs[0]));
            }
            seen
        });
    }
    for number in 1..=20 {
        let mut next = publish("stock");
        next.plan.hashes.source = format!("{number:064}");
        versions.lock().unwrap().push(next.version);
        other.version_publish(next).await.unwrap();
        published.store(number, Ordering::SeqCst);
        tokio::task::yield_now().await;
    }
    let versions = versions.lock().unwrap().clone();
    for (least, run) in emitters.join_all().await.into_iter().flatten() {
        let started = load(&world.store, run).await.run.origin.version;
        let number = versions.iter().position(|version| *version == started).map_or(0, |it| it + 1);
        assert!(number >= least, "version {number} was started after {least} was published");
    }
}

/// What is published in a transaction is matched by its own events, and by nobody else's before it commits.
#[tokio::test]
async fn a_publication_in_a_transaction_is_matched_inside_it_only() {
    let world = World::new().await;
    assert_eq!(record(&world, order()).await.matched, 0);
    for commits in [false, true] {
        let mut tx = world.store.begin().await.unwrap();
        world.store.version_publish_in(&mut tx, publish("stock")).await.unwrap();
        let inside = world.store.event_emit_in(&mut tx, emit(order())).await.unwrap();
        assert_eq!(inside.matched, 1);
        assert_eq!(record(&world, order()).await.matched, 0);
        if commits {
            tx.commit().await.unwrap();
        } else {
            tx.rollback().await;
        }
        assert_eq!(record(&world, order()).await.matched, u32::from(commits));
    }
}
