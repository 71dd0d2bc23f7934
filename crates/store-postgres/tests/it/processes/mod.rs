//! Real processes on a real server: killed, standing still, and many at once. Their leases are as in production; the
//! clock of record, which all of them read, is moved by the test.

mod app;
mod child;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use sqlx::Row;
use surefoot_kernel_core::{
    Amounts, Commit, Event, Fact, Ids, LoadRequest, OperatorStore, Phase, PlanStore, Publish,
    RowInput, Run, RunFilter, RunId, RunState, RunStore, Verdict, decide_row,
};
use surefoot_language::{Bindings, compile_and_bind};
use surefoot_store_postgres::{PostgresStore, sqlx};
use surefoot_testkit::SeqIds;
use surefoot_testkit::suite::check_invariants;
use surefoot_worker::Kernel;
use tokio::task::JoinSet;

use self::app::{APP, HELD, LEASE, ORDER, Outside, SCOPE, SLOW, TABLES, WORKFLOWS, module};
use self::child::Child;
use crate::database::Database;
use crate::published::{emit, order, publish};

/// What a run that is due waits for at most, by the contract; and what a busy machine may add to it.
const SCAN: Duration = Duration::from_secs(1);
const BUSY: Duration = Duration::from_secs(20);

/// The database that all processes share, as the parent looks at it.
struct Shop {
    database: Database,
    store: PostgresStore,
    outside: Outside,
}

impl Shop {
    async fn new() -> Self {
        let database = Database::new().await;
        sqlx::raw_sql(TABLES).execute(&mut database.raw().await).await.unwrap();
        let store = PostgresStore::open_with(database.options()).await.unwrap();
        let outside = Outside(database.name().to_owned());
        let (shop, ids) = (Self { database, store, outside }, SeqIds::new());
        for (workflow, source) in WORKFLOWS {
            let plan = compile_and_bind(source, module(&shop.outside).manifest(), &Bindings::new());
            let version = Publish {
                app: APP.into(),
                scope: SCOPE.into(),
                workflow: workflow.into(),
                version: ids.version(),
                plan: plan.unwrap(),
                source: source.to_owned(),
                budget: Amounts::default(),
                activate: true,
                authorization: None,
                author: "ann".to_owned(),
            };
            shop.store.version_publish(version).await.unwrap();
        }
        shop
    }

    fn child(&self) -> Child {
        Child::start(self.database.name(), "work")
    }

    /// For everybody.
    async fn pass(&self, span: Duration) {
        let gain = "UPDATE gained SET micros = micros + $1";
        let query = sqlx::query(gain).bind(i64::try_from(span.as_micros()).unwrap());
        query.execute(&mut self.database.raw().await).await.unwrap();
    }

    async fn emit(&self, workflow: &str) -> RunId {
        let kernel = Kernel::new(APP, self.store.clone());
        let emission = kernel.scope(SCOPE).emit(Event::start(workflow, json!({}))).await;
        emission.unwrap().runs[0]
    }

    async fn run(&self, run: RunId) -> Run {
        self.store.run_load(LoadRequest { run, after: None }).await.unwrap().unwrap().run
    }

    async fn facts(&self, run: RunId) -> Vec<Fact> {
        let stored = self.store.run_load(LoadRequest { run, after: None }).await;
        let journal = stored.unwrap().unwrap().journal.unwrap();
        journal.into_iter().flat_map(|entry| entry.facts).collect()
    }

    async fn until(&self, run: RunId, is_so: impl Fn(&Run) -> bool) -> Run {
        for _ in 0..60_000 {
            let run = self.run(run).await;
            if is_so(&run) {
                return run;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("never: {:?}", self.run(run).await);
    }

    async fn until_ended(&self, run: RunId) -> Run {
        self.until(run, |run| run.state().is_terminal()).await
    }

    async fn go_on(&self) {
        self.outside.did("go on", "all").await.unwrap();
    }

    async fn booked(&self) -> BTreeMap<(String, String), i64> {
        let booked = "SELECT run, step, count(*) AS times FROM booked GROUP BY run, step";
        let rows = sqlx::query(booked).fetch_all(&mut self.database.raw().await).await.unwrap();
        let row =
            |row: &sqlx::postgres::PgRow| ((row.get("run"), row.get("step")), row.get("times"));
        rows.iter().map(row).collect()
    }

    /// What nobody can know, a person says.
    async fn attend(&self, run: &Run) {
        let Phase::NeedsAttention(attention) = &run.phase else { return };
        let step = attention.error.step.clone().unwrap();
        let key = run.effect_key(&step);
        let paid = self.outside.who("pay").await;
        assert!(paid.iter().all(|(paid, _)| paid != key.as_str()), "the provider knows: {run:?}");
        let input = RowInput::Resolve { step, verdict: Verdict::NotPerformed };
        let now = self.store.store_now().await.unwrap();
        let facts = decide_row(run, input, now).unwrap();
        self.store.run_commit(Commit::new(run, &facts)).await.unwrap();
    }
}

fn result(run: &Run) -> i64 {
    let Phase::Succeeded { result, .. } = &run.phase else { panic!("{run:?}") };
    result.as_i64().unwrap()
}

/// Covers field faults 20, 21.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_stood_still_past_its_lease_changes_nothing() {
    let shop = Shop::new().await;
    let (run, slow) = (shop.emit(SLOW).await, shop.child());
    shop.outside.until("wait").await;
    slow.signal(Signal::STOP);
    shop.pass(LEASE + SCAN).await;
    let other = shop.child();
    let ended = shop.until_ended(run).await;
    assert_eq!((result(&ended), ended.generation), (other.id(), 2));
    let facts = shop.facts(run).await;
    // Now it may go on, and comes back with an answer of its own.
    shop.go_on().await;
    slow.signal(Signal::CONT);
    assert!(slow.stop().await.success());
    assert_eq!((shop.run(run).await, shop.facts(run).await), (ended, facts));
    assert!(other.stop().await.success());
    check_invariants(&shop.store).await;
}

/// A worker stands still in the middle of a transactional step, and has the run's row locked: the server ends its session
/// when the transaction's time is over, and the run goes on elsewhere.
///
/// Covers field fault 44.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_stands_still_in_a_transaction_keeps_its_run_from_nobody() {
    let shop = Shop::new().await;
    let (run, slow) = (shop.emit(HELD).await, shop.child());
    shop.outside.until("hold").await;
    slow.signal(Signal::STOP);
    shop.pass(LEASE + SCAN).await;
    let other = shop.child();
    let ended = shop.until_ended(run).await;
    assert_eq!((result(&ended), ended.generation), (other.id(), 2));
    let booked: Vec<i64> = shop.booked().await.into_values().collect();
    assert_eq!(booked, [1], "what the first one booked is rolled back");
    shop.go_on().await;
    slow.signal(Signal::CONT);
    assert!(slow.stop().await.success());
    assert_eq!((shop.run(run).await, shop.booked().await.len()), (ended, 1));
    assert!(other.stop().await.success());
}

/// By the store's own clock: from the end of the lease to the takeover.
///
/// Covers field faults 39, 42.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_a_killed_worker_is_taken_within_a_second_of_its_lease() {
    let shop = Shop::new().await;
    let (run, first) = (shop.emit(SLOW).await, shop.child());
    shop.outside.until("wait").await;
    let orphan = shop.run(run).await;
    let until = orphan.lease().unwrap().until;
    first.signal(Signal::KILL);
    first.ended().await;
    let second = shop.child();
    // To two seconds before the end of the lease, whatever has passed.
    let now = shop.store.store_now().await.unwrap();
    let left = Duration::from(until.since(now));
    shop.pass(left.saturating_sub(Duration::from_secs(2))).await;
    let ended = shop.until_ended(run).await;
    assert_eq!((result(&ended), ended.generation, ended.attempt), (second.id(), 2, 2));
    let at = ended.ended_at.unwrap();
    assert!(at >= until, "it was taken before its lease was over");
    let after = Duration::from(at.since(until));
    println!("the run ended {after:?} after the end of its lease");
    assert!(after <= SCAN + BUSY, "the run ended {after:?} after the end of its lease");
    assert!(second.stop().await.success());
}

/// Covers field faults 5, 8, 11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_are_killed_lose_nothing_and_pay_nothing_twice() {
    const ORDERS: usize = 40;
    let shop = Shop::new().await;
    let mut runs = Vec::new();
    for _ in 0..ORDERS {
        runs.push(shop.emit(ORDER).await);
    }
    // One after the other works a little further, and is killed there.
    for killed in 1..=6 {
        let child = shop.child();
        let enough = killed * 5;
        while shop.outside.who("pay").await.len() < enough {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        child.signal(Signal::KILL);
        child.ended().await;
        shop.pass(LEASE + SCAN).await;
    }
    let last = shop.child();
    for run in &runs {
        loop {
            let now = shop.run(*run).await;
            if now.state().is_terminal() {
                break;
            }
            shop.attend(&now).await;
            // What was in doubt is asked about later.
            shop.pass(Duration::from_secs(5)).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    assert!(last.stop().await.success());
    check_invariants(&shop.store).await;
    let ended = RunFilter { states: vec![RunState::Succeeded], limit: 100, ..RunFilter::default() };
    assert_eq!(shop.store.run_list(ended).await.unwrap().rows.len(), ORDERS);
    let booked = shop.booked().await;
    assert_eq!(booked.len(), ORDERS * 2);
    assert!(booked.values().all(|times| *times == 1), "{booked:?}");
    let paid: Vec<String> = shop.outside.who("pay").await.into_iter().map(|(key, _)| key).collect();
    let keys: BTreeSet<&String> = paid.iter().collect();
    assert_eq!((paid.len(), keys.len()), (ORDERS, ORDERS), "paid twice, or not at all");
    let mails: BTreeSet<String> =
        shop.outside.who("mail").await.into_iter().map(|(key, _)| key).collect();
    assert_eq!(mails.len(), ORDERS, "each under its own key, and no other");
}

/// Covers field fault 123.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_processes_that_start_at_once_migrate_once() {
    let database = Database::empty().await;
    let children: Vec<Child> = (0..20).map(|_| Child::start(database.name(), "open")).collect();
    let mut ending = JoinSet::new();
    for (nth, child) in children.into_iter().enumerate() {
        // Some are killed, wherever they are.
        let is_killed = nth % 4 == 0;
        if is_killed {
            child.signal(Signal::KILL);
        }
        ending.spawn(async move { (is_killed, child.ended().await.success()) });
    }
    for (is_killed, is_well) in ending.join_all().await {
        assert!(is_killed || is_well, "a process could not start");
    }
    let store = PostgresStore::open_with(database.options()).await.unwrap();
    store.version_publish(publish("stock")).await.unwrap();
    use surefoot_kernel_core::EventStore as _;
    assert_eq!(store.event_emit(emit(order())).await.unwrap().runs.len(), 1);
}
