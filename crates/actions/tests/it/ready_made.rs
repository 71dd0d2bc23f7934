//! All of them in one module, and what a dry run says of it.

use std::sync::Arc;

use serde_json::json;
use surefoot_actions::ai::{Ai, Classify, ClassifyMany, Extract, GenerateText};
use surefoot_actions::event::{EmitEvent, SendSignal};
use surefoot_actions::http::{HttpCall, HttpRequest};
use surefoot_actions::message::{DEDUPE_WINDOW_MIN, PublishMessage};
use surefoot_kernel_core::{EffectClass, Event, TxStore};
use surefoot_language::{Module, On};
use surefoot_store_sqlite::{SqliteStore, SqliteTx, sqlx};
use surefoot_sync_core::Topic;
use surefoot_worker::{Kernel, Publication};

use crate::broker::{messages, topic};
use crate::database::sqlite;
use crate::events::statements;
use crate::server::{CANARY, Server, client};

/// Every ready-made action.
pub(crate) fn module(store: &SqliteStore, orders: Arc<dyn Topic>) -> Module<On<SqliteTx>> {
    let ai = Ai::new(store.clone(), "small");
    Module::builder("ready-made", 1)
        .ambiguous(HttpRequest::new(client()))
        .idempotent(HttpCall::new(client()))
        .transactional(EmitEvent::new(store.clone()))
        .transactional(SendSignal::new(store.clone()))
        .transactional(statements::<SqliteTx>())
        .idempotent(PublishMessage::new().topic("orders", orders).unwrap())
        .idempotent(GenerateText::new(ai.clone()))
        .idempotent(Classify::new(ai.clone()))
        .idempotent(ClassifyMany::new(ai.clone()))
        .idempotent(Extract::new(ai))
        .build()
        .unwrap()
}

const ALL: &str = r#"
inputs:
  base: { type: text, required: true }
steps:
  - httpRequest: { method: POST, url: "${{ inputs.base }}/pay", query: { key: { secret: KEY } }, json: { cents: 1 } }
  - httpCall: { url: "${{ inputs.base }}/echo", headers: { Authorization: { secret: KEY } } }
  - emitEvent: { type: shop.paid, data: { cents: 1 } }
  - signal: { kind: paid, key: o-1 }
  - query: { statement: book, params: { item: bolt, pieces: 3 } }
  - publishMessage: { topic: orders, data: { id: 7 } }
  - generateText: { prompt: hello }
  - classify: { text: hello, labels: [friendly, rude] }
  - classifyMany: { texts: [hello], labels: [friendly, rude] }
  - extract: { text: 3 bolts, schema: { type: object } }
"#;

const RECORDED: [&str; 4] = ["surefoot_event", "surefoot_signal", "booking", "surefoot_task"];

/// How many rows there are of all that a step could have recorded; the dry run itself is started by no event.
async fn recorded(store: &SqliteStore) -> i64 {
    let mut tx = store.begin().await.unwrap();
    let mut all = 0;
    for table in RECORDED {
        let sql = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        let rows: i64 = sqlx::query_scalar(sql).fetch_one(&mut *tx).await.unwrap();
        all += rows;
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_says_what_each_would_do_and_cost_and_nothing_is_done() {
    let (server, store, orders) =
        (Server::start().await, sqlite().await, topic(DEDUPE_WINDOW_MIN).await);
    let module = module(&store, orders.clone());
    let kernel = Kernel::new("shop", store.clone());
    let scope = kernel.scope("berlin");
    let published = scope.publish(module.manifest(), Publication::new("all", ALL)).await.unwrap();
    let before = recorded(&store).await;
    let start = Event::start("all", json!({ "base": server.url("") }));
    let bill = scope.dry_run(&module, published.version, start).await.unwrap();
    let url = server.url("");
    let expected = [
        ("httpRequest", format!("POST {url}/pay?key=*** with 11 bytes of application/json, once")),
        ("httpCall", format!("GET {url}/echo, again if no answer comes")),
        ("emitEvent", "Emit `shop.paid` in `berlin`".to_owned()),
        ("signal", "Signal `paid` of `o-1` in `berlin`".to_owned()),
        ("query", "Write by `book` with 2 values".to_owned()),
        ("publishMessage", "Publish 8 bytes to `orders`".to_owned()),
        ("generateText", "Generate a text: ask `small` with 5 bytes of text".to_owned()),
        ("classify", "Classify a text: ask `small` with ".to_owned()),
        ("classifyMany", "Classify texts: ask `small` with ".to_owned()),
        ("extract", "Extract data: ask `small` with ".to_owned()),
    ];
    assert_eq!(bill.effects.len(), expected.len());
    for (effect, (action, summary)) in bill.effects.iter().zip(expected) {
        let said = effect.summary.clone().unwrap_or_default();
        assert!(effect.action == action && said.starts_with(&summary), "{effect:?}");
    }
    let costs: Vec<(&str, String)> =
        bill.costs.iter().map(|cost| (cost.dimension.as_str(), cost.sure.to_string())).collect();
    let expected = [("aiCalls", "4"), ("httpRequests", "2"), ("messages", "1")];
    assert_eq!(costs, expected.map(|(dimension, sure)| (dimension, sure.to_owned())));
    let classes = [
        (EffectClass::Transactional, 3),
        (EffectClass::Idempotent, 6),
        (EffectClass::Ambiguous, 1),
    ];
    assert_eq!(bill.by_class, classes.into_iter().collect());
    assert!(bill.issues.is_empty() && bill.is_cost_complete, "{bill:?}");
    assert!(!format!("{bill:?}").contains(CANARY));
    assert!(server.hits().is_empty());
    assert_eq!(messages(&*orders).await, 0);
    assert_eq!(recorded(&store).await, before);
}
