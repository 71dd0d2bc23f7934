//! The handle of an application: publish, emit, signal, await.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::{
    EmitError, Event, PublishError, RunState, Signal, SignalError, StoreError, TxStore,
};
use surefoot_worker::{AwaitError, Kernel, Publication, Running, Scoped, Worker};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::actions::{Actions, n};
use crate::plans::{act, wait_for};
use crate::store::{Op, TestStore, Verdict, unavailable, unknown};
use crate::world::{SCOPE, World, until};

fn start() -> Event {
    Event::start("work", json!({}))
}

/// A started worker that has been idle, so that an emit may start runs on it.
async fn idle(world: &World) -> Running {
    let running = world.builder().scan_every(Duration::from_secs(60)).start().await.unwrap();
    // A version that was published through the kernel is known at once.
    let source = "steps:\n  - mail: { n: 1 }\n";
    let publication = Publication::new("work", source);
    world.kernel.scope(SCOPE).publish(world.module.manifest(), publication).await.unwrap();
    until("it looked for work", || world.store.count("due") >= 1).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    running.notify();
    tokio::time::sleep(Duration::from_secs(1)).await;
    running
}

#[test]
fn what_an_application_holds_can_be_held_anywhere() {
    fn holdable<T: Send + Sync + 'static>() {}
    holdable::<Kernel<TestStore>>();
    holdable::<Scoped<TestStore>>();
    holdable::<Worker>();
    holdable::<Running>();
    holdable::<surefoot_worker::AfterCommit<u8>>();
    holdable::<surefoot_worker::WorkerWaker>();
}

#[tokio::test(start_paused = true)]
async fn a_workflow_is_published_from_its_source_and_run() {
    let world = World::new(Actions::default());
    let scope = world.kernel.scope(SCOPE);
    let source = "\
inputs:
  boxes: { type: integer, required: true }
steps:
  - compute: { n: \"${{ inputs.boxes * 250 }}\" }
    saveAs: price
  - pay: { cents: \"${{ price.n }}\" }
";
    let manifest = world.module.manifest();
    let published = scope.publish(manifest, Publication::new("reorder", source)).await.unwrap();
    assert_eq!(published.revision, 1);
    let draft = scope.publish(manifest, Publication::new("reorder", source).draft()).await.unwrap();
    assert_eq!(draft.revision, 2);
    let run = scope.emit(Event::start("reorder", json!({ "boxes": 3 }))).await.unwrap().runs[0];
    assert_eq!(world.settle(&world.worker(), run).await, RunState::Succeeded);
    assert_eq!(world.outputs(run).await[1], json!({ "cents": 750 }));
    assert_eq!(world.run(run).await.origin.version, published.version);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_does_not_compile_is_refused_with_its_place() {
    let world = World::new(Actions::default());
    let publication = Publication::new("reorder", "steps:\n  - mial: { n: 1 }\n");
    let refused = world.kernel.scope(SCOPE).publish(world.module.manifest(), publication).await;
    let Err(PublishError::Compile { rendered, findings }) = refused else { panic!("{refused:?}") };
    assert!(rendered.contains("mial"), "{rendered}");
    assert_eq!(findings[0]["line"], 2);
}

/// A name that nobody could tell from another one makes no place of its own.
#[tokio::test(start_paused = true)]
async fn what_is_no_name_is_refused_where_it_comes_in() {
    let world = World::new(Actions::default());
    let manifest = world.module.manifest();
    for (scope, key) in [(SCOPE, "x".repeat(201)), (SCOPE, "my flow".into()), (" ", "work".into())]
    {
        let publication = Publication::new(key, "steps:\n  - mail: { n: 1 }\n");
        let refused = world.kernel.scope(scope).publish(manifest, publication).await;
        assert!(matches!(refused, Err(PublishError::Name(_))), "{refused:?}");
    }
    let blank = world.kernel.scope("");
    let emitted = blank.emit(Event::new("stock.low", json!({}))).await;
    assert!(matches!(emitted, Err(EmitError::Name(_))), "{emitted:?}");
    let started = world.kernel.scope(SCOPE).emit(Event::start("my flow", json!({}))).await;
    assert!(matches!(started, Err(EmitError::Name(_))), "{started:?}");
    let signaled = blank.signal(Signal::new("approval", "7")).await;
    assert!(matches!(signaled, Err(SignalError::Name(_))), "{signaled:?}");
}

/// Covers behaviour 83.
#[tokio::test(start_paused = true)]
async fn what_is_emitted_in_a_transaction_exists_with_it() {
    let world = World::new(Actions::default());
    let (kernel, scope) = (&world.kernel, world.kernel.scope(SCOPE));
    let publication = || Publication::new("work", "steps:\n  - mail: { n: 1 }\n");
    for commits in [false, true] {
        let mut tx = kernel.begin().await.unwrap();
        let manifest = world.module.manifest();
        let published = scope.publish_in(&mut tx, manifest, publication()).await.unwrap();
        let emitted = scope.emit_in(&mut tx, start().dedupe_key("one")).await.unwrap();
        let sent = scope.signal_in(&mut tx, Signal::new("approval", "7")).await.unwrap();
        assert_eq!(
            (published.revision, emitted.runs.len(), emitted.new, sent.new),
            (1, 1, true, true)
        );
        if commits {
            kernel.commit(tx).await.unwrap();
            published.committed();
            sent.committed();
            let run = emitted.committed().runs[0];
            assert_eq!(world.settle(&world.worker(), run).await, RunState::Succeeded);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn committed_wakes_the_worker_at_once() {
    let world = World::new(Actions::default());
    let running = idle(&world).await;
    let mut tx = world.kernel.begin().await.unwrap();
    let emitted = world.kernel.scope(SCOPE).emit_in(&mut tx, start()).await.unwrap();
    TxStore::commit(&world.store, tx).await.unwrap();
    let began = Instant::now();
    let run = emitted.committed().runs[0];
    world.kernel.await_run(run).await.unwrap();
    assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
    running.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn an_emit_whose_answer_was_lost_is_found_again_by_its_id() {
    for landed in [true, false] {
        let world = World::new(Actions::default());
        world.publish("work", vec![act("mail", n(1))]).await;
        let mut tries = 0;
        world.store.on(move |op| match op {
            Op::Emit => {
                tries += 1;
                match tries {
                    1 if landed => Verdict::Lose(unknown()),
                    1 => Verdict::Fail(unknown()),
                    2 => Verdict::Fail(unavailable()),
                    _ => Verdict::Go,
                }
            }
            _ => Verdict::Go,
        });
        let emission = world.kernel.scope(SCOPE).emit(start()).await.unwrap();
        assert_eq!((emission.new, emission.runs.len(), world.store.count("emit")), (true, 1, 3));
    }
}

#[tokio::test(start_paused = true)]
async fn an_emit_on_a_store_that_is_away_says_so_at_once() {
    let world = World::new(Actions::default());
    world.store.on(|_| Verdict::Fail(unavailable()));
    let refused = world.kernel.scope(SCOPE).emit(start()).await;
    assert!(matches!(refused, Err(EmitError::Store(StoreError::Unavailable(_)))));
    let refused = world.kernel.signal(Signal::new("approval", "7")).await;
    assert!(refused.is_err());
    assert_eq!((world.store.count("emit"), world.store.count("signal")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_emit_on_an_idle_worker_starts_its_run_without_a_claim() {
    let world = World::new(Actions::default());
    let running = idle(&world).await;
    let claims = world.store.count("claim");
    let emission = world.kernel.scope(SCOPE).emit(start()).await.unwrap();
    assert_eq!(emission.started.len(), 1);
    let ended = world.kernel.await_run(emission.runs[0]).await.unwrap();
    assert_eq!((ended.state(), ended.attempt, ended.generation), (RunState::Succeeded, 1, 1));
    assert_eq!(world.store.count("claim"), claims);
    running.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_last_claim_was_full_gets_no_run_ahead_of_those_that_wait() {
    let world = World::new(Actions::default());
    let publication = Publication::new("work", "steps:\n  - mail: { n: 1 }\n");
    let worker = world.worker();
    world.kernel.scope(SCOPE).publish(world.module.manifest(), publication).await.unwrap();
    // It has not claimed yet, so nobody knows what waits.
    let running = worker.start().await.unwrap();
    let emission = world.kernel.scope(SCOPE).emit(start()).await.unwrap();
    assert!(emission.started.is_empty());
    world.kernel.await_run(emission.runs[0]).await.unwrap();
    running.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn an_emit_for_a_version_that_another_process_published_is_claimed_at_once() {
    let world = World::new(Actions::default());
    let running = idle(&world).await;
    world.publish("booked", vec![act("book", n(1))]).await;
    let began = Instant::now();
    let run = world.emit("booked").await;
    world.kernel.await_run(run).await.unwrap();
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    running.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn no_more_runs_are_started_than_there_are_slots_and_slots_come_back() {
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    let world = World::new(Actions::default().mail(move |_, config| {
        let held = held.clone();
        async move {
            held.notified().await;
            Ok(config)
        }
    }));
    let running = idle(&world).await;
    let scope = world.kernel.scope(SCOPE);
    let mut runs = Vec::new();
    for number in 0..6 {
        let emission = scope.emit(start().dedupe_key(number.to_string())).await.unwrap();
        // A duplicate starts nothing and keeps no slot.
        let again = scope.emit(start().dedupe_key(number.to_string())).await.unwrap();
        assert_eq!((again.new, again.started.len()), (false, 0));
        runs.push(emission.runs[0]);
    }
    until("every slot is busy", || world.log().count("mail.run") == 4).await;
    assert_eq!(running.health().busy, 4);
    for run in runs {
        gate.notify_one();
        assert_eq!(world.kernel.await_run(run).await.unwrap().state(), RunState::Succeeded);
    }
    running.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn runs_that_were_started_by_an_emit_whose_answer_was_lost_are_driven() {
    let world = World::new(Actions::default());
    let running = idle(&world).await;
    let mut lost = false;
    world.store.on(move |op| match op {
        Op::Emit if !lost => {
            lost = true;
            Verdict::Lose(unknown())
        }
        _ => Verdict::Go,
    });
    let began = Instant::now();
    let emission = world.kernel.scope(SCOPE).emit(start()).await.unwrap();
    let ended = world.kernel.await_run(emission.runs[0]).await.unwrap();
    assert_eq!((ended.state(), ended.attempt), (RunState::Succeeded, 1));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    running.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_leaves_no_run_without_a_driver() {
    let world = World::new(Actions::default());
    let running = idle(&world).await;
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    world.store.on(move |op| match op {
        Op::Emit => Verdict::Hold(held.clone()),
        _ => Verdict::Go,
    });
    let scope = world.kernel.scope(SCOPE);
    let caller = tokio::spawn(async move { scope.emit(start()).await });
    until("it is on the way", || world.store.count("emit") == 1).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    caller.abort();
    gate.notify_one();
    until("its run is driven", || world.log().count("mail.run") == 1).await;
    running.stop(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn awaiting_ends_with_the_end_or_with_attention() {
    let world = World::new(
        Actions::default()
            .pay(|_, _| async {
                Err(surefoot_language::AmbiguousStop::may_have_happened("timeout"))
            })
            .find(|_, _| async { Ok(surefoot_language::Reconciled::unknown("no records")) }),
    );
    world.publish("paid", vec![act("pay", n(1))]).await;
    world.publish("waits", vec![wait_for("approval", "7", None)]).await;
    let (paid, waits) = (world.emit("paid").await, world.emit("waits").await);
    let running = world.builder().start().await.unwrap();
    assert_eq!(world.kernel.await_run(paid).await.unwrap().state(), RunState::NeedsAttention);
    let waiting = tokio::time::timeout(Duration::from_secs(600), world.kernel.await_run(waits));
    assert!(waiting.await.is_err());
    // Polling has slowed down to once a second.
    let looks = world.store.count("open");
    assert!((500..700).contains(&looks), "{looks}");
    world.kernel.scope(SCOPE).signal(Signal::new("approval", "7")).await.unwrap();
    assert_eq!(world.kernel.await_run(waits).await.unwrap().state(), RunState::Succeeded);
    let unknown = surefoot_kernel_core::RunId::from_bytes([9; 16]);
    assert!(matches!(world.kernel.await_run(unknown).await, Err(AwaitError::NotFound { .. })));
    running.stop(Duration::ZERO).await;
}

/// Thousands may wait for runs that others work on, and each looks again and again: that is one question at a time.
#[tokio::test(start_paused = true)]
async fn whoever_waits_for_runs_of_others_asks_together() {
    let world = World::new(Actions::default());
    world.publish("waits", vec![wait_for("approval", "7", None)]).await;
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (kernel, run) = (world.kernel.clone(), world.emit("waits").await);
        waiting.spawn(async move { kernel.await_run(run).await.map(|run| run.state()) });
    }
    let held = Arc::new(Notify::new());
    let (question, mut first) = (held.clone(), true);
    world.store.on(move |op| match op {
        Op::Open if std::mem::take(&mut first) => Verdict::Hold(question.clone()),
        _ => Verdict::Go,
    });
    until("the first one asks", || world.store.count("open") == 1).await;
    held.notify_one();
    until("the others do", || world.store.count("open") == 2).await;
    assert_eq!(world.store.count("load"), 0, "none of them is over");
    // A question that cannot be answered is everybody's for whom it was asked.
    world.store.on(|op| match op {
        Op::Open => Verdict::Fail(unavailable()),
        _ => Verdict::Go,
    });
    while let Some(answer) = waiting.join_next().await {
        assert!(matches!(answer.unwrap(), Err(AwaitError::Store(StoreError::Unavailable(_)))));
    }
}

/// Of those who wait one asks for all: if that one goes away, the others ask again.
#[tokio::test(start_paused = true)]
async fn whoever_stops_waiting_leaves_the_others_their_answer() {
    let world = World::new(Actions::default());
    let nobody = surefoot_kernel_core::RunId::from_bytes([9; 16]);
    let mut is_first = true;
    world.store.on(move |op| match op {
        Op::Open if std::mem::take(&mut is_first) => Verdict::Wait(Arc::new(Notify::new())),
        _ => Verdict::Go,
    });
    let ask = |kernel: Kernel<TestStore>| async move { kernel.await_run(nobody).await };
    let first = tokio::spawn(ask(world.kernel.clone()));
    until("the first one asks", || world.store.count("open") == 1).await;
    let second = tokio::spawn(ask(world.kernel.clone()));
    tokio::task::yield_now().await;
    first.abort();
    assert!(matches!(second.await.unwrap(), Err(AwaitError::NotFound { .. })));
}

/// The first data of a signal stays, so a lost answer is simply asked for again.
#[tokio::test(start_paused = true)]
async fn a_signal_whose_answer_was_lost_is_sent_again() {
    let world = World::new(Actions::default());
    let run = world.start(vec![wait_for("approval", "7", None)]).await;
    let worker = world.worker();
    worker.run_one().await.unwrap();
    let mut lost = false;
    world.store.on(move |op| match op {
        Op::Signal if !lost => {
            lost = true;
            Verdict::Lose(unknown())
        }
        _ => Verdict::Go,
    });
    let sent =
        world.kernel.scope(SCOPE).signal(Signal::new("approval", "7").data(1)).await.unwrap();
    assert!(!sent.new);
    assert_eq!(world.settle(&worker, run).await, RunState::Succeeded);
    assert_eq!(world.outputs(run).await, [json!({ "signaled": true, "data": 1 })]);
}
