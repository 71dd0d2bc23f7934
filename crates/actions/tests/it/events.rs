//! Events, signals and statements: what a step recorded is there if its outcome is, on both stores.

use serde_json::{Value, json};
use surefoot_actions::event::{EmitEvent, SendSignal};
use surefoot_actions::query::{Query, Statement, StatementTx};
use surefoot_kernel_core::{Event, PassTime, RunState, TxStore};
use surefoot_language::{Module, On, Trigger};
use surefoot_testkit::{Bench, Crash, End};

use crate::database::{postgres, sqlite};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Booked {
    run: String,
    item: String,
}

impl Trigger for Booked {
    const KIND: &'static str = "booked";
    const EVENT: &'static str = "shop.booked";
}

pub(crate) fn statements<Tx: StatementTx>() -> Query<Tx> {
    Query::new([
        Statement::writes("book", "INSERT INTO booking (item, pieces) VALUES ($1, $2)")
            .text("item")
            .integer("pieces"),
        Statement::reads(
            "booked",
            "SELECT item, pieces FROM booking WHERE item = $1 ORDER BY pieces",
        )
        .text("item"),
        Statement::reads(
            "many",
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1001) SELECT i FROM n",
        ),
        Statement::reads("twice", "SELECT item, pieces AS item FROM booking"),
    ])
}

fn module<S: TxStore>(store: &S) -> Module<On<S::Tx>>
where
    S::Tx: StatementTx,
{
    Module::builder("shop", 1)
        .trigger::<Booked>()
        .transactional(statements::<S::Tx>())
        .transactional(EmitEvent::new(store.clone()))
        .transactional(SendSignal::new(store.clone()))
        .build()
        .unwrap()
}

const BOOK: &str = r#"
steps:
  - query: { statement: book, params: { item: bolt, pieces: 3 } }
  - emitEvent: { type: shop.booked, data: { run: "${{ run.id }}", item: bolt }, dedupeKey: "${{ run.id }}" }
    saveAs: event
  - waitFor: { kind: confirmed, key: "${{ run.id }}" }
    saveAs: answer
  - query: { statement: booked, params: { item: bolt } }
    saveAs: found
  - query: { statement: book, params: { item: "${{ answer.data.by }}", pieces: "${{ size(found.rows) }}" } }
"#;

const CONFIRM: &str = r#"
inputs:
  run: { type: text, required: true }
  item: { type: text, required: true }
triggers:
  booked: { with: { run: "${{ trigger.run }}", item: "${{ trigger.item }}" } }
steps:
  - query: { statement: book, params: { item: "${{ inputs.item }}", pieces: 4 } }
  - signal: { kind: confirmed, key: "${{ inputs.run }}", data: { by: stock } }
"#;

async fn book<S: TxStore + PassTime>(store: S, crash: Option<Crash>) -> End
where
    S::Tx: StatementTx,
{
    let module = module(&store);
    let bench = Bench::on(store, module);
    bench.publish("book", BOOK).await.publish("confirm", CONFIRM).await;
    if let Some(crash) = crash {
        bench.crash(crash);
    }
    bench.run_to_end(Event::start("book", json!({}))).await
}

fn is_right(end: &End, crash: Option<&Crash>) {
    assert_eq!(end.state, RunState::Succeeded, "{crash:?}: {}", end.explain());
    let rows = json!([{ "item": "bolt", "pieces": 3 }, { "item": "bolt", "pieces": 4 }]);
    let queries = end.steps("query");
    assert_eq!(queries[1].output::<Value>()["rows"], rows, "{crash:?}");
    assert_eq!(queries[2].output::<Value>()["affected"], 1, "{crash:?}");
    assert_eq!(end.step("emitEvent").output::<Value>()["new"], true, "{crash:?}");
}

fn crashes() -> Vec<Option<Crash>> {
    let mut crashes = vec![None];
    for action in ["query", "emitEvent", "signal"] {
        crashes.extend([Some(Crash::AfterEffectOf(action)), Some(Crash::AfterOutcomeOf(action))]);
    }
    crashes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_step_recorded_is_there_once_on_the_embedded_store() {
    for crash in crashes() {
        let end = book(sqlite().await, crash.clone()).await;
        is_right(&end, crash.as_ref());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_step_recorded_is_there_once_on_the_shared_store() {
    for crash in crashes() {
        let shared = postgres().await;
        let end = book(shared.store.clone(), crash.clone()).await;
        is_right(&end, crash.as_ref());
    }
}

async fn fails<S: TxStore + PassTime>(store: S, step: &str) -> String
where
    S::Tx: StatementTx,
{
    let module = module(&store);
    let bench = Bench::on(store, module);
    bench.publish("odd", &format!("steps:\n  - {step}\n")).await;
    let end = bench.run_to_end(Event::start("odd", json!({}))).await;
    assert_eq!(end.state, RunState::Failed, "{step}");
    end.explain().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_recorded_fails_with_its_own_code() {
    let store = sqlite().await;
    let fill = "steps:\n  - query: { statement: book, params: { item: x, pieces: 1 } }\n";
    let bench = Bench::on(store.clone(), module(&store));
    bench.publish("fill", fill).await;
    bench.run_to_end(Event::start("fill", json!({}))).await;
    for (step, code) in [
        ("query: { statement: nothing }", "CONFIG_INVALID"),
        ("query: { statement: book, params: { item: bolt } }", "CONFIG_INVALID"),
        ("query: { statement: many }", "QUERY_TOO_LARGE"),
        ("query: { statement: twice }", "QUERY_UNREADABLE"),
        (r#"emitEvent: { type: "a", workflow: " " }"#, "EVENT_INVALID"),
    ] {
        let said = fails(store.clone(), step).await;
        assert!(said.contains(code), "{step}: {said}");
    }
    let shared = postgres().await;
    let said = fails(shared.store.clone(), "query: { statement: many }").await;
    assert!(said.contains("QUERY_TOO_LARGE"), "{said}");
}
