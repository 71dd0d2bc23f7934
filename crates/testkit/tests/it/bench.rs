//! The bench: workflows of days in no time, with a process that dies where the test says.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::{EffectState, Event, RunState, StepState};
use surefoot_language::{
    ActionResult, Ambiguous, AmbiguousCx, AmbiguousResult, Module, PlanResult, Planned,
    ReconcileResult, Reconciled, StepCx, Stop, Transactional, TransactionalCx,
};
use surefoot_store_sqlite::sqlx;
use surefoot_store_sqlite::{SqliteStore, SqliteTx};
use surefoot_testkit::{Bench, Crash};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    boxes: i64,
}

/// What was done outside, by effect key.
#[derive(Clone, Default)]
struct Shop {
    mails: Arc<Mutex<Vec<String>>>,
    payments: Arc<Mutex<Vec<String>>>,
    asked: Arc<AtomicU32>,
}

struct Pay(Shop);

impl Ambiguous for Pay {
    const NAME: &'static str = "pay";
    const SETTLE_AFTER: Duration = Duration::from_secs(60);
    type Input = Order;
    type Output = i64;

    async fn run(&self, cx: &AmbiguousCx, order: Order) -> AmbiguousResult<i64> {
        self.0.payments.lock().unwrap().push(cx.effect_key().to_string());
        Ok(order.boxes)
    }

    async fn reconcile(&self, cx: &AmbiguousCx, order: Order) -> ReconcileResult<i64> {
        self.0.asked.fetch_add(1, Ordering::SeqCst);
        let knows = self.0.payments.lock().unwrap().contains(&cx.effect_key().to_string());
        Ok(if knows { Reconciled::Succeeded(order.boxes) } else { Reconciled::NotFound })
    }

    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<i64> {
        Ok(Planned::new("Pay"))
    }
}

fn shop() -> (Shop, Module) {
    let shop = Shop::default();
    let mails = shop.mails.clone();
    let module = Module::builder("shop", 1)
        .pure_fn("double", |order: Order| Ok(order.boxes * 2))
        .idempotent_fn(
            "mail",
            |_: &Order| Planned::new("Write"),
            move |cx, order: Order| {
                mails.lock().unwrap().push(cx.effect_key().to_string());
                std::future::ready(Ok(order.boxes))
            },
        )
        .idempotent_fn(
            "busy",
            |_: &Order| Planned::new("Try"),
            async |_, _: Order| -> ActionResult<i64> { Err(Stop::retry("BUSY", "429")) },
        )
        .ambiguous(Pay(shop.clone()))
        .build();
    (shop, module.unwrap())
}

const SOURCE: &str = "
inputs:
  boxes: { type: integer, required: true }
steps:
  - double: { boxes: '${{ inputs.boxes }}' }
    saveAs: twice
  - mail: { boxes: '${{ twice }}' }
  - delay: { for: 3d }
  - waitFor: { kind: approval, key: bolt }
    saveAs: approval
  - pay: { boxes: '${{ approval.data }}' }
";

fn start() -> Event {
    Event::start("reorder", json!({ "boxes": 3 }))
}

#[tokio::test]
async fn days_pass_by_themselves_and_signals_come_when_they_are_waited_for() {
    let (shop, module) = shop();
    let bench = Bench::in_memory(module);
    bench.publish("reorder", SOURCE).await;
    let before = bench.kernel().store().clock().now();
    let end = bench.signal_when_waiting("approval", "bolt", 7).run_to_end(start()).await;
    assert_eq!(end.state, RunState::Succeeded, "{}", end.explain());
    assert_eq!(end.step("double").output::<i64>(), 6);
    assert_eq!(
        (end.step("pay").output::<i64>(), end.step("pay").state()),
        (7, StepState::Completed)
    );
    assert_eq!(end.step("pay").effect_state(), Some(EffectState::Succeeded));
    assert_eq!(shop.mails.lock().unwrap().len(), 1);
    let passed = Duration::from(bench.kernel().store().clock().now().since(before));
    assert!(passed >= Duration::from_secs(3 * 86_400), "{passed:?}");
}

/// The children of a run are driven with it: they are sent signals, their time passes, and a process dies in them.
#[tokio::test]
async fn children_are_driven_with_their_parent() {
    let (shop, module) = shop();
    let bench = Bench::in_memory(module);
    bench.publish("pack", CHILD).await;
    bench.publish("reorder", PARENT).await;
    // Nobody approves: the parent waits for a child that rests.
    let start = Event::start("reorder", json!({}));
    let rests = bench.run_to_end(start).await;
    assert_eq!(rests.state, RunState::Waiting, "{}", rests.explain());
    assert!(shop.payments.lock().unwrap().is_empty());
    bench.crash(Crash::AfterEffectOf("pay")).crash(Crash::AfterEffectOf("mail"));
    let end = bench.signal_when_waiting("approval", "bolt", 7).go_on(rests.run.id).await;
    assert_eq!(end.state, RunState::Succeeded, "{}", end.explain());
    assert_eq!(end.step("double").output::<i64>(), 4, "two children");
    let payments = shop.payments.lock().unwrap().clone();
    assert_eq!(payments.len(), 2, "found out, not paid again: {payments:?}");
    assert_eq!(shop.asked.load(Ordering::SeqCst), 1);
    let mails = shop.mails.lock().unwrap().clone();
    assert_eq!((mails.len(), mails[0] == mails[1]), (2, true), "an idempotent one again");
}

const PARENT: &str = "
steps:
  - runWorkflows:
      workflow: pack
      each: [2, 3]
      as: boxes
      inputs: { boxes: '${{ boxes }}' }
      parallel: 1
    saveAs: packed
  - double: { boxes: '${{ size(packed) }}' }
    saveAs: twice
  - mail: { boxes: '${{ twice }}' }
";

const CHILD: &str = "
inputs:
  boxes: { type: integer, required: true }
steps:
  - waitFor: { kind: approval, key: bolt }
  - delay: { for: 3d }
  - pay: { boxes: '${{ inputs.boxes }}' }
";

#[tokio::test]
async fn after_a_crash_another_process_goes_on_as_the_class_says() {
    let (shop, module) = shop();
    let bench = Bench::in_memory(module);
    bench.publish("reorder", SOURCE).await;
    bench
        .crash(Crash::AfterEffectOf("mail"))
        .crash(Crash::AfterOutcomeOf("mail"))
        .crash(Crash::AfterEffectOf("pay"))
        .signal_when_waiting("approval", "bolt", 7);
    let end = bench.run_to_end(start()).await;
    assert_eq!(end.state, RunState::Succeeded, "{}", end.explain());
    let mails = shop.mails.lock().unwrap().clone();
    assert_eq!((mails.len(), &mails[0]), (2, &mails[1]), "again, under the same key");
    assert_eq!(shop.payments.lock().unwrap().len(), 1, "asked for, and not made again");
    assert_eq!(shop.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_call_that_was_marked_and_not_made_is_asked_for_and_comes_before_a_person() {
    let (shop, module) = shop();
    let bench = Bench::in_memory(module);
    bench.publish("reorder", SOURCE).await;
    bench.crash(Crash::AfterMarkOf("pay")).signal_when_waiting("approval", "bolt", 7);
    let end = bench.run_to_end(start()).await;
    assert_eq!(end.state, RunState::NeedsAttention, "{}", end.explain());
    assert_eq!(end.step("pay").state(), StepState::NeedsAttention);
    assert!(shop.payments.lock().unwrap().is_empty());
    assert!(shop.asked.load(Ordering::SeqCst) > 1);
}

#[tokio::test]
async fn a_run_rests_where_nobody_sends_its_signal_and_where_its_retries_are_over() {
    let (_, module) = shop();
    let bench = Bench::in_memory(module);
    bench.publish("reorder", SOURCE).await;
    let end = bench.run_to_end(start()).await;
    assert_eq!(end.state, RunState::Waiting, "{}", end.explain());
    assert!(end.explain().to_string().contains("approval"), "{}", end.explain());
    assert!(end.steps("pay").is_empty(), "the run did not come there");

    bench.publish("busy", "steps: [{ busy: { boxes: 1 } }]").await;
    let end = bench.run_to_end(Event::start("busy", json!({}))).await;
    assert_eq!(end.state, RunState::Failed, "{}", end.explain());
    assert!(end.explain().to_string().contains("RETRY_EXHAUSTED"), "{}", end.explain());
}

/// What a bench says by a panic.
async fn says(bench: Bench<surefoot_testkit::MemoryStore>, event: Event) -> String {
    let running = tokio::spawn(async move { drop(bench.run_to_end(event).await) });
    let panicked = running.await.unwrap_err().into_panic();
    let text = panicked.downcast_ref::<String>().cloned();
    text.unwrap_or_default()
}

#[tokio::test]
async fn what_cannot_be_tested_is_said() {
    let (_, module) = shop();
    let bench = Bench::in_memory(module.clone());
    assert_eq!(says(bench, start()).await, "the event starts 0 runs, not one");

    let bench = Bench::in_memory(module);
    bench.publish("reorder", SOURCE).await.crash(Crash::AfterEffectOf("nail"));
    assert_eq!(
        says(bench, start()).await,
        "the process was to die after the effect of `nail`, and the run did not come there"
    );
}

struct Book;

impl Transactional<SqliteTx> for Book {
    const NAME: &'static str = "book";
    type Input = Order;
    type Output = i64;

    async fn run(&self, cx: &mut TransactionalCx<'_, SqliteTx>, order: Order) -> ActionResult<i64> {
        let sql = "INSERT INTO booking (boxes) VALUES (?)";
        sqlx::query(sql).bind(order.boxes).execute(cx.tx()).await?;
        Ok(order.boxes)
    }

    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<i64> {
        Ok(Planned::new("Book"))
    }
}

#[tokio::test]
async fn a_module_that_names_its_store_runs_on_that() {
    use surefoot_kernel_core::TxStore;

    let store = SqliteStore::in_memory().await.unwrap();
    let mut tx = store.begin().await.unwrap();
    sqlx::query("CREATE TABLE booking (boxes INTEGER)").execute(&mut *tx).await.unwrap();
    TxStore::commit(&store, tx).await.unwrap();
    let module = Module::builder("shop", 1).transactional(Book).build().unwrap();
    let bench = Bench::on(store.clone(), module);
    bench.publish("book", "steps: [{ book: { boxes: 2 } }, { delay: { for: 30d } }]").await;
    bench.crash(Crash::AfterEffectOf("book")).crash(Crash::AfterOutcomeOf("book"));
    let end = bench.run_to_end(Event::start("book", json!({}))).await;
    assert_eq!(end.state, RunState::Succeeded, "{}", end.explain());
    let mut tx = store.begin().await.unwrap();
    let booked: i64 =
        sqlx::query_scalar("SELECT count(*) FROM booking").fetch_one(&mut *tx).await.unwrap();
    assert_eq!(booked, 1, "what the first process did was rolled back with it");
}
