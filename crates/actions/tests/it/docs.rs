//! Every workflow of the docs runs.

use std::time::Duration;

use serde_json::json;
use surefoot_actions::ai::{Ai, AiWorker, Classify, ClassifyMany, Extract, GenerateText};
use surefoot_actions::event::{EmitEvent, SendSignal};
use surefoot_actions::http::{HttpCall, HttpRequest};
use surefoot_actions::message::{DEDUPE_WINDOW_MIN, PublishMessage};
use surefoot_actions::query::{Query, Statement};
use surefoot_kernel_core::{Event, OperatorStore as _, RunState, TxStore};
use surefoot_language::Module;
use surefoot_store_sqlite::{SqliteStore, SqliteTx, sqlx};
use surefoot_testkit::{Say, ScriptedProvider};
use surefoot_worker::{Kernel, Publication};

use crate::broker::topic;
use crate::database::sqlite;
use crate::server::{CANARY, Server, client};

/// The blocks of the page that are workflows.
fn workflows() -> Vec<String> {
    let page = include_str!("../../../../docs/actions.md");
    let blocks = page.split("```yaml\n").skip(1);
    blocks.filter_map(|rest| rest.split("```").next().map(str::to_owned)).collect()
}

/// Answers whatever a schema asks for.
fn model() -> ScriptedProvider {
    ScriptedProvider::new(|request, _| {
        let asked = request.schema.as_ref().map(|it| it["properties"].clone()).unwrap_or_default();
        if let Some(labels) = asked.get("labels") {
            let label = labels["items"]["enum"][0].clone();
            let count = labels["minItems"].as_u64().unwrap();
            Say::Json(json!({ "labels": (0..count).map(|_| label.clone()).collect::<Vec<_>>() }))
        } else if let Some(label) = asked.get("label") {
            Say::Json(json!({ "label": label["enum"][0] }))
        } else if asked.get("boxes").is_some() {
            Say::Json(json!({ "item": "bolt", "boxes": 3 }))
        } else {
            Say::Text("Dear customer".to_owned())
        }
    })
}

/// The statements of the page, on a table with something in it.
async fn stock(store: &SqliteStore) -> Query<SqliteTx> {
    let mut tx = store.begin().await.unwrap();
    for sql in [
        "CREATE TABLE stock (item TEXT PRIMARY KEY, pieces INTEGER NOT NULL)",
        "INSERT INTO stock VALUES ('bolt', 10)",
    ] {
        sqlx::query(sql).execute(&mut *tx).await.unwrap();
    }
    TxStore::commit(store, tx).await.unwrap();
    Query::new([
        Statement::reads("stockOf", "SELECT pieces FROM stock WHERE item = $1").text("item"),
        Statement::writes("take", "UPDATE stock SET pieces = pieces - $2 WHERE item = $1")
            .text("item")
            .integer("pieces"),
    ])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_workflow_of_the_docs_runs() {
    let (server, store) = (Server::start().await, sqlite().await);
    let ai = Ai::new(store.clone(), "small");
    let module = Module::builder("docs", 1)
        .ambiguous(HttpRequest::new(client()))
        .idempotent(HttpCall::new(client()))
        .transactional(EmitEvent::new(store.clone()))
        .transactional(SendSignal::new(store.clone()))
        .transactional(stock(&store).await)
        .idempotent(PublishMessage::new().topic("orders", topic(DEDUPE_WINDOW_MIN).await).unwrap())
        .idempotent(GenerateText::new(ai.clone()))
        .idempotent(Classify::new(ai.clone()))
        .idempotent(ClassifyMany::new(ai.clone()))
        .idempotent(Extract::new(ai))
        .build()
        .unwrap();
    let soon = Duration::from_millis(20);
    let thinking = AiWorker::new("docs", store.clone(), model()).scan_every(soon).start();
    let kernel = Kernel::new("docs", store.clone());
    let scope = kernel.scope("docs");
    let manifest = module.manifest().clone();
    let working = kernel.worker(module).scan_every(soon).start().await.unwrap();
    let workflows = workflows();
    assert!(workflows.len() >= 10, "{}", workflows.len());
    for (at, source) in workflows.iter().enumerate() {
        let key = format!("docs-{at}");
        let published = scope.publish(&manifest, Publication::new(key.clone(), source)).await;
        published.unwrap_or_else(|error| panic!("{error}\n{source}"));
        let inputs =
            if source.contains("inputs:") { json!({ "base": server.url("") }) } else { json!({}) };
        let run = scope.emit(Event::start(key, inputs)).await.unwrap().runs[0];
        let ended = tokio::time::timeout(Duration::from_secs(60), kernel.await_run(run)).await;
        let state = ended.unwrap().unwrap().state();
        let shown = format!("{:?}", store.run_detail(run).await.unwrap().unwrap());
        assert_eq!(state, RunState::Succeeded, "{source}\n{shown}");
        assert!(!shown.contains(CANARY) && !shown.contains("canary"), "{shown}");
    }
    working.stop(Duration::from_secs(1)).await;
    thinking.stop().await;
}
