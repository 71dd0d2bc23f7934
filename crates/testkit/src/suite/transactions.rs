//! Transactions: the application's rows and the kernel's are one, or none is.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "assertions of the suite: a rule that fails panics"
)]

use serde_json::json;
use surefoot_kernel_core::{
    Answer, BoxFuture, Call, Command, Commit, Dependency, Event, EventStore as _, Fact, Locked,
    PlanStore as _, Run, RunState, RunStore as _, SaidBy, StoreError, Timestamp, TxStore, TxWork,
    Work, WorkflowKey,
};

use super::StoreFactory;
use super::world::{World, app, scope, send, step, succeeded};
use crate::Drive;
use crate::plans::{plan, pure, transactional, triggered};

/// Work that must not begin.
#[derive(Debug, Default)]
pub(super) struct Refuser {
    pub(super) was_called: bool,
}

impl<Tx: Send> TxWork<Tx> for Refuser {
    fn work<'a>(&'a mut self, _: &'a mut Tx, _: Locked) -> BoxFuture<'a, Work> {
        self.was_called = true;
        Box::pin(std::future::ready(Work::Rollback))
    }
}

type Tx<F> = <<F as StoreFactory>::Store as TxStore>::Tx;

fn low() -> Event {
    Event::new("stock.low", json!({})).dedupe_key("bolt:1")
}

fn listening() -> surefoot_kernel_core::plan::Plan {
    triggered(plan(vec![pure("a")]), "low", "stock.low")
}

/// A held run that stands before its transactional step.
async fn before_transaction<F: StoreFactory>(world: &World<F>) -> (Drive, Call) {
    let mut drive = world.running(plan(vec![transactional("book"), pure("a")])).await;
    let command = drive.to_call(&world.store).await.unwrap();
    let Some(Command::Transact(call)) = command else { unreachable!("{command:?}") };
    (drive, call)
}

/// Writes a row, then answers.
fn book<F: StoreFactory>(
    value: &'static str,
    answer: Option<Answer>,
) -> impl FnMut(&mut Tx<F>) -> BoxFuture<'_, Option<Answer>> + Send {
    move |tx| {
        let answer = answer.clone();
        Box::pin(async move {
            F::write_row(tx, "bolt", value).await.unwrap();
            answer
        })
    }
}

/// Covers behaviour 83.
/// Covers field fault 68.
pub async fn an_event_exists_exactly_if_its_transaction_committed<F: StoreFactory>(
    world: &World<F>,
) {
    world.publish("flow", listening()).await;
    let mut open = world.store.begin().await.unwrap();
    F::write_row(&mut open, "bolt", "1").await.unwrap();
    let emitted = world.store.event_emit_in(&mut open, world.emission(low())).await.unwrap();
    assert_eq!((emitted.new, emitted.runs.len()), (true, 1));
    drop(open);
    assert_eq!(F::read_row(&world.store, "bolt").await, None);
    assert!(world.claim().await.is_empty());

    let mut open = world.store.begin().await.unwrap();
    F::write_row(&mut open, "bolt", "2").await.unwrap();
    let emitted = world.store.event_emit_in(&mut open, world.emission(low())).await.unwrap();
    assert!(emitted.new, "the key is free again");
    let again = world.store.event_emit_in(&mut open, world.emission(low())).await.unwrap();
    assert_eq!((again.new, again.event, &again.runs), (false, emitted.event, &emitted.runs));
    world.store.commit(open).await.unwrap();
    assert_eq!(F::read_row(&world.other, "bolt").await.as_deref(), Some("2"));
    assert_eq!(world.claim().await.iter().map(|run| run.id).collect::<Vec<_>>(), emitted.runs);
    assert!(!world.emit(low()).await.new);
}

/// Nobody sees what is not committed.
pub async fn an_open_transaction_is_seen_by_nobody_else<F: StoreFactory>(world: &World<F>) {
    world.publish("flow", listening()).await;
    let mut open = world.store.begin().await.unwrap();
    F::write_row(&mut open, "bolt", "1").await.unwrap();
    let emission = world.store.event_emit_in(&mut open, world.emission(low())).await.unwrap();
    assert_eq!(F::read_row(&world.other, "bolt").await, None);
    let load = surefoot_kernel_core::LoadRequest { run: emission.runs[0], after: None };
    assert!(world.other.run_load(load).await.unwrap().is_none());
    world.store.commit(open).await.unwrap();
    assert_eq!(F::read_row(&world.other, "bolt").await.as_deref(), Some("1"));
    assert!(world.other.run_load(load).await.unwrap().is_some());
}

/// A publication is part of the application's transaction.
pub async fn a_version_exists_exactly_if_its_transaction_committed<F: StoreFactory>(
    world: &World<F>,
) {
    let mut open = world.store.begin().await.unwrap();
    let publish = world.publication("flow", listening());
    let published = world.store.version_publish_in(&mut open, publish).await.unwrap();
    assert_eq!(published.revision, 1);
    drop(open);
    assert!(world.store.workflow_list(&app(), None).await.unwrap().is_empty());
    assert_eq!(world.emit(Event::new("stock.low", json!({}))).await.matched, 0);
    let mut open = world.store.begin().await.unwrap();
    let publish = world.publication("flow", listening());
    let published = world.store.version_publish_in(&mut open, publish).await.unwrap();
    assert_eq!(published.revision, 1, "a number that was rolled back is no gap");
    world.store.commit(open).await.unwrap();
    let flow = WorkflowKey::from("flow");
    assert_eq!(world.other.version_list(&app(), &scope(), &flow).await.unwrap().len(), 1);
    assert_eq!(world.emit(low()).await.matched, 1);
}

/// A signal wakes when its transaction commits, and not if it does not.
pub async fn a_signal_wakes_exactly_if_its_transaction_committed<F: StoreFactory>(
    world: &World<F>,
) {
    let mut drive = world.running(plan(vec![crate::plans::idempotent("a")])).await;
    let run = drive.run().id;
    world.park(&mut drive, Dependency::on("approval", "7")).await;
    let approved = || send(surefoot_kernel_core::Signal::new("approval", "7"));
    let mut open = world.store.begin().await.unwrap();
    let sent = world.store.signal_send_in(&mut open, approved()).await.unwrap();
    assert_eq!((sent.new, &sent.woken[..]), (true, &[run][..]));
    drop(open);
    assert_eq!(world.row(run).await.state(), RunState::Waiting);
    let mut open = world.store.begin().await.unwrap();
    assert!(world.store.signal_send_in(&mut open, approved()).await.unwrap().new);
    assert_eq!(world.row(run).await.state(), RunState::Waiting);
    world.store.commit(open).await.unwrap();
    assert_eq!(world.row(run).await.state(), RunState::Queued);
}

/// Work and outcome of a transactional step are one commit.
///
/// Covers field fault 24.
/// Covers field fault 26.
pub async fn work_and_outcome_are_one_commit<F: StoreFactory>(world: &World<F>) {
    let (mut drive, call) = before_transaction(world).await;
    let run = drive.run().id;
    let before = drive.stamp();
    let answer = Some(succeeded(json!({ "booked": true })));
    let committed = drive.transact(&world.store, &call, book::<F>("1", answer)).await.unwrap();
    let committed = committed.unwrap();
    assert_eq!(committed.run.revision, before.revision + 1);
    assert_eq!(F::read_row(&world.other, "bolt").await.as_deref(), Some("1"));
    let (row, journal) = world.all_of(run).await;
    assert_eq!(row, committed.run);
    let outcome = journal.last().unwrap();
    assert!(
        matches!(outcome.facts.last(), Some(Fact::StepCompleted { output, .. }) if output["booked"] == true)
    );
    // A second go at the same step is refused before its work begins.
    let mut work = Refuser::default();
    let refused = world.store.run_transact(before, &mut work).await;
    assert!(matches!(refused, Err(StoreError::Conflict)) && !work.was_called, "{refused:?}");
}

/// Covers behaviour 127.
pub async fn a_rollback_leaves_nothing<F: StoreFactory>(world: &World<F>) {
    let (mut drive, call) = before_transaction(world).await;
    let before = world.all_of(drive.run().id).await;
    let nothing = drive.transact(&world.store, &call, book::<F>("1", None)).await.unwrap();
    assert_eq!(nothing, None);
    assert_eq!(F::read_row(&world.store, "bolt").await, None);
    assert_eq!(world.all_of(drive.run().id).await, before);
    // The run is still held, and the retry gets a new transaction.
    let answer = Some(succeeded(json!(1)));
    drive.transact(&world.store, &call, book::<F>("2", answer)).await.unwrap().unwrap();
    assert_eq!(F::read_row(&world.store, "bolt").await.as_deref(), Some("2"));
}

/// The work sees the run as it is locked, at the store's time, and what it wrote itself.
pub async fn the_work_is_given_the_locked_run<F: StoreFactory>(world: &World<F>) {
    struct Look(Option<(Run, Timestamp)>);
    impl<Tx: Send> TxWork<Tx> for Look {
        fn work<'a>(&'a mut self, _: &'a mut Tx, locked: Locked) -> BoxFuture<'a, Work> {
            self.0 = Some((locked.run, locked.now));
            Box::pin(std::future::ready(Work::Rollback))
        }
    }
    let (drive, _) = before_transaction(world).await;
    world.pass_secs(60).await;
    world.renew(world.session, vec![drive.stamp()]).await;
    let before = world.now().await;
    let mut look = Look(None);
    assert_eq!(world.store.run_transact(drive.stamp(), &mut look).await.unwrap(), None);
    let (run, now) = look.0.unwrap();
    assert_eq!(run, world.row(drive.run().id).await);
    assert!(before <= now && now <= world.now().await);
}

/// An action that panics leaves neither row nor lock.
pub async fn a_panic_in_the_work_leaves_nothing<F: StoreFactory>(world: &World<F>) {
    struct Panics<F>(std::marker::PhantomData<fn() -> F>);
    impl<F: StoreFactory> TxWork<Tx<F>> for Panics<F> {
        fn work<'a>(&'a mut self, tx: &'a mut Tx<F>, _: Locked) -> BoxFuture<'a, Work> {
            Box::pin(async move {
                F::write_row(tx, "bolt", "1").await.unwrap();
                panic!("an action of a test");
            })
        }
    }
    let (mut drive, call) = before_transaction(world).await;
    let before = world.all_of(drive.run().id).await;
    let (store, stamp) = (world.store.clone(), drive.stamp());
    let task = tokio::spawn(async move {
        let _ = store.run_transact(stamp, &mut Panics::<F>(std::marker::PhantomData)).await;
    });
    assert!(task.await.unwrap_err().is_panic());
    assert_eq!(F::read_row(&world.store, "bolt").await, None);
    assert_eq!(world.all_of(drive.run().id).await, before);
    let answer = Some(succeeded(json!(1)));
    drive.transact(&world.store, &call, book::<F>("2", answer)).await.unwrap().unwrap();
}

/// Covers field fault 69.
pub async fn a_dropped_transaction_leaves_nothing_and_no_lock<F: StoreFactory>(world: &World<F>) {
    struct Hangs<F>(std::marker::PhantomData<fn() -> F>, std::sync::Arc<tokio::sync::Notify>);
    impl<F: StoreFactory> TxWork<Tx<F>> for Hangs<F> {
        fn work<'a>(&'a mut self, tx: &'a mut Tx<F>, _: Locked) -> BoxFuture<'a, Work> {
            Box::pin(async move {
                F::write_row(tx, "bolt", "1").await.unwrap();
                self.1.notify_one();
                std::future::pending().await
            })
        }
    }
    let (mut drive, call) = before_transaction(world).await;
    for _ in 0..20 {
        let wrote = std::sync::Arc::new(tokio::sync::Notify::new());
        let mut work = Hangs::<F>(std::marker::PhantomData, wrote.clone());
        tokio::select! {
            _ = world.store.run_transact(drive.stamp(), &mut work) => unreachable!("it hangs"),
            () = wrote.notified() => {}
        }
        assert_eq!(F::read_row(&world.store, "bolt").await, None);
    }
    let answer = Some(succeeded(json!(1)));
    drive.transact(&world.store, &call, book::<F>("2", answer)).await.unwrap().unwrap();
    assert_eq!(F::read_row(&world.other, "bolt").await.as_deref(), Some("2"));
}

/// Two holders of one run, one of them by mistake: one transaction counts.
///
/// Covers field fault 15.
pub async fn of_two_transactions_of_one_step_one_counts<F: StoreFactory>(world: &World<F>) {
    for _ in 0..10 {
        let (mut one, call) = before_transaction(world).await;
        let mut two = one.clone();
        let answer = || Some(succeeded(json!(1)));
        let (first, second) = tokio::join!(
            one.transact(&world.store, &call, book::<F>("1", answer())),
            two.transact(&world.other, &call, book::<F>("2", answer())),
        );
        assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
        let value = if first.is_ok() { "1" } else { "2" };
        assert_eq!(F::read_row(&world.store, "bolt").await.as_deref(), Some(value));
        let lost = first.err().or(second.err());
        let is_fenced = matches!(
            lost,
            Some(crate::DriveError::Store(
                StoreError::Conflict | StoreError::TransactionConflict(_)
            ))
        );
        assert!(is_fenced, "{lost:?}");
    }
}

/// Facts of pure steps that were not durable yet are written with the transactional one.
pub async fn pending_facts_are_written_in_the_same_transaction<F: StoreFactory>(world: &World<F>) {
    struct Both(Option<Commit>);
    impl<Tx: Send> TxWork<Tx> for Both {
        fn work<'a>(&'a mut self, _: &'a mut Tx, _: Locked) -> BoxFuture<'a, Work> {
            let commit = self.0.take().unwrap();
            Box::pin(std::future::ready(Work::Commit(Box::new(commit))))
        }
    }
    let drive = world.running(plan(vec![pure("a"), transactional("book")])).await;
    let done = |key: &str| {
        let (step, output) = (step(key), json!(key));
        Fact::StepCompleted { step, output, by: SaidBy::Action }
    };
    let inputs = Fact::InputsComputed { inputs: json!({}) };
    let facts = [inputs, done("steps.0"), done("steps.1")];
    let mut work = Both(Some(Commit::new(drive.run(), &facts)));
    let committed = world.store.run_transact(drive.stamp(), &mut work).await.unwrap().unwrap();
    assert_eq!(committed.run.seq, 3);
    let journal = world.journal(drive.run().id).await;
    assert_eq!((journal.len(), &journal[0].facts[..]), (1, &facts[..]));
}

/// Emits an event, then answers.
fn emitting<F: StoreFactory>(
    world: &World<F>,
    answer: Option<Answer>,
) -> impl FnMut(&mut Tx<F>) -> BoxFuture<'_, Option<Answer>> + Send + use<F> {
    let (store, emit) = (world.store.clone(), world.emission(low()));
    move |tx| {
        let (store, emit, answer) = (store.clone(), emit.clone(), answer.clone());
        Box::pin(async move {
            store.event_emit_in(tx, emit).await.unwrap();
            answer
        })
    }
}

/// What a transactional action emits exists with its outcome.
pub async fn an_emit_of_a_transactional_step_is_part_of_it<F: StoreFactory>(world: &World<F>) {
    world.publish("listener", listening()).await;
    for (answer, exists) in [(None, false), (Some(succeeded(json!(1))), true)] {
        let (mut drive, call) = before_transaction(world).await;
        let work = emitting::<F>(world, answer);
        drive.transact(&world.store, &call, work).await.unwrap();
        let emission = world.store.event_emit(world.emission(low().deferred())).await.unwrap();
        if exists {
            assert_eq!((emission.new, emission.runs.len()), (false, 1));
        } else {
            assert!(emission.new, "a rolled-back step emitted");
            return_key(world, emission.event).await;
        }
    }
}

/// Has the deferred event of the first half dispatched, so that its key names one run.
async fn return_key<F: StoreFactory>(world: &World<F>, event: surefoot_kernel_core::EventId) {
    let pass = world.store.event_dispatch(&app(), 10).await.unwrap();
    assert_eq!(pass.dispatched, [event]);
}

/// Covers behaviour 129.
pub async fn an_application_error_is_no_conflict_of_transactions<F: StoreFactory>(
    world: &World<F>,
) {
    let broken = std::io::Error::other("connection reset");
    assert!(!world.store.is_transaction_conflict(&broken));
    let unknown = StoreError::UnknownOutcome(Box::new(broken));
    assert!(!world.store.is_transaction_conflict(&unknown), "an unknown commit is no conflict");
    assert!(!world.store.is_transaction_conflict(&StoreError::Conflict));
}
