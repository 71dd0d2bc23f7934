//! The crash matrix over ready-made actions: trouble at every call to the store, on both stores.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use surefoot_actions::ai::{Ai, AiWorker, Classify, ClassifyMany, Extract, GenerateText};
use surefoot_actions::event::{
    EmitEvent, EventInput, EventOutput, SendSignal, SignalInput, SignalOutput,
};
use surefoot_actions::http::{HttpAnswer, HttpCall, HttpRequest, HttpRequestInput};
use surefoot_actions::message::{DEDUPE_WINDOW_MIN, MessageOutput, PublishMessage};
use surefoot_actions::query::{Query, QueryInput, QueryOutput, Statement, StatementTx};
use surefoot_kernel_core::{
    Amounts, BoxFuture, Code, Dependency, EffectKey, Failure, TaskStore, Verdict,
};
use surefoot_language::{
    Access, ActionResult, Ambiguous, AmbiguousCx, AmbiguousResult, AnyStore, Cost, Idempotent,
    IdempotentCx, Module, On, PlanResult, ReconcileResult, StepCx, Transactional, TransactionalCx,
};
use surefoot_sync_core::Topic;
use surefoot_testkit::ScriptedProvider;
use surefoot_testkit::matrix::{
    Did, Process, Reply, Report, Scenario, TxOf, Verb, crash_matrix_in_steps,
};
use surefoot_testkit::suite::StoreFactory;

use crate::broker::{messages, topic};
use crate::factories::{OnFile, OnServer};
use crate::server::{Server, client};
use crate::thinker::clever;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// An action that says to the matrix what it does. Its input is its own, so that no output knows the place of the server.
struct Told<F: StoreFactory, A> {
    process: Process<F>,
    action: A,
    input: Value,
}

impl<F: StoreFactory, A> Told<F, A> {
    fn new(process: &Process<F>, action: A, input: Value) -> Self {
        Self { process: process.clone(), action, input }
    }

    fn input<T: serde::de::DeserializeOwned>(&self) -> T {
        read(self.input.clone())
    }
}

fn read<T: serde::de::DeserializeOwned>(input: Value) -> T {
    serde_json::from_value(input).unwrap()
}

impl<F: StoreFactory, A: Idempotent> Idempotent for Told<F, A> {
    const NAME: &'static str = A::NAME;
    type Input = Nothing;
    type Output = A::Output;

    async fn authorize(&self, cx: &StepCx, _: &Nothing) -> ActionResult<Access> {
        self.action.authorize(cx, &self.input()).await
    }

    async fn run(&self, cx: &IdempotentCx, _: Nothing) -> ActionResult<A::Output> {
        self.process.called_idempotent(cx, cx.effect_key());
        self.action.run(cx, self.input()).await
    }

    async fn plan(&self, cx: &StepCx, _: &Nothing) -> PlanResult<A::Output> {
        self.action.plan(cx, &self.input()).await
    }

    fn cost(&self, _: &Nothing) -> Cost {
        self.action.cost(&self.input())
    }
}

/// Remembers under which keys it published.
struct Publishing<F: StoreFactory> {
    told: Told<F, PublishMessage>,
    keys: Keys,
}

type Keys = Arc<Mutex<BTreeSet<EffectKey>>>;

impl<F: StoreFactory> Idempotent for Publishing<F> {
    const NAME: &'static str = "publishMessage";
    type Input = Nothing;
    type Output = MessageOutput;

    async fn run(&self, cx: &IdempotentCx, input: Nothing) -> ActionResult<MessageOutput> {
        self.keys.lock().unwrap().insert(cx.effect_key().clone());
        self.told.run(cx, input).await?;
        // It depends on what was published before.
        Ok(MessageOutput { cursor: String::new() })
    }

    async fn plan(&self, cx: &StepCx, input: &Nothing) -> PlanResult<MessageOutput> {
        self.told.plan(cx, input).await
    }

    fn cost(&self, input: &Nothing) -> Cost {
        self.told.cost(input)
    }
}

impl<F: StoreFactory> Ambiguous for Told<F, HttpRequest> {
    const NAME: &'static str = "httpRequest";
    const SETTLE_AFTER: Duration = Duration::from_secs(240);
    type Input = Nothing;
    type Output = HttpAnswer;

    async fn run(&self, cx: &AmbiguousCx, _: Nothing) -> AmbiguousResult<HttpAnswer> {
        let answer = self.action.run(cx, self.request("/status/200")).await;
        // Logged once it is known to have arrived: there is no call to the store in between.
        self.process.called_ambiguous(cx, cx.effect_key());
        answer
    }

    async fn reconcile(&self, cx: &AmbiguousCx, _: Nothing) -> ReconcileResult<HttpAnswer> {
        let known = self.process.asked(cx, cx.effect_key());
        let found = if known { "/status/200" } else { "/status/404" };
        self.action.reconcile(cx, self.request(found)).await
    }

    async fn plan(&self, cx: &StepCx, _: &Nothing) -> PlanResult<HttpAnswer> {
        self.action.plan(cx, &self.request("/status/200")).await
    }

    fn cost(&self, _: &Nothing) -> Cost {
        self.action.cost(&self.request("/status/200"))
    }
}

impl<F: StoreFactory> Told<F, HttpRequest> {
    fn request(&self, confirm: &str) -> HttpRequestInput {
        let url: String = self.input();
        read(json!({
            "method": "POST", "url": format!("{url}/status/200"), "json": {},
            "confirm": { "url": format!("{url}{confirm}") },
        }))
    }
}

impl<F: StoreFactory> Transactional<TxOf<F>> for Told<F, EmitEvent<F::Store>> {
    const NAME: &'static str = "emitEvent";
    type Input = Nothing;
    type Output = EventOutput;

    async fn run(
        &self,
        cx: &mut TransactionalCx<'_, TxOf<F>>,
        _: Nothing,
    ) -> ActionResult<EventOutput> {
        let row = self.process.called_transactional(cx);
        F::write_row(cx.tx(), &row, "emitted").await?;
        let emitted = self.action.run(cx, self.input()).await?;
        // Its id depends on the run's.
        Ok(EventOutput { event: String::new(), ..emitted })
    }

    async fn plan(&self, cx: &StepCx, _: &Nothing) -> PlanResult<EventOutput> {
        self.action.plan(cx, &self.input::<EventInput>()).await
    }
}

impl<F: StoreFactory> Transactional<TxOf<F>> for Told<F, SendSignal<F::Store>> {
    const NAME: &'static str = "signal";
    type Input = Nothing;
    type Output = SignalOutput;

    async fn run(
        &self,
        cx: &mut TransactionalCx<'_, TxOf<F>>,
        _: Nothing,
    ) -> ActionResult<SignalOutput> {
        let row = self.process.called_transactional(cx);
        F::write_row(cx.tx(), &row, "signaled").await?;
        self.action.run(cx, self.input()).await
    }

    async fn plan(&self, cx: &StepCx, _: &Nothing) -> PlanResult<SignalOutput> {
        self.action.plan(cx, &self.input::<SignalInput>()).await
    }
}

/// The statement itself writes the row that the matrix looks for.
impl<F: StoreFactory> Transactional<TxOf<F>> for Told<F, Query<TxOf<F>>>
where
    TxOf<F>: StatementTx,
{
    const NAME: &'static str = "query";
    type Input = Nothing;
    type Output = QueryOutput;

    async fn run(
        &self,
        cx: &mut TransactionalCx<'_, TxOf<F>>,
        _: Nothing,
    ) -> ActionResult<QueryOutput> {
        let row = self.process.called_transactional(cx);
        self.action.run(cx, written(&row)).await
    }

    async fn plan(&self, cx: &StepCx, _: &Nothing) -> PlanResult<QueryOutput> {
        self.action.plan(cx, &written("any")).await
    }
}

fn written(row: &str) -> QueryInput {
    read(json!({ "statement": "write", "params": { "key": row } }))
}

fn statements<Tx: StatementTx>() -> Query<Tx> {
    let write = "INSERT INTO app_table (key, value) VALUES ($1, 'queried')";
    Query::new([Statement::writes("write", write).text("key")])
}

/// One step of each; the last one waits for the signal that the step before it has sent.
struct ReadyMade<F> {
    server: Server,
    /// On a real server.
    orders: Arc<dyn Topic>,
    published: Keys,
    factory: PhantomData<fn() -> F>,
}

impl<F: StoreFactory> Scenario<F> for ReadyMade<F>
where
    TxOf<F>: StatementTx,
{
    type Binding = On<TxOf<F>>;

    fn module(&self, process: &Process<F>) -> Module<On<TxOf<F>>> {
        let store = process.store().inner().clone();
        let (url, keys) = (self.server.url(""), self.published.clone());
        let call = json!({ "url": format!("{url}/status/200") });
        let topic = PublishMessage::new().topic("orders", self.orders.clone()).unwrap();
        let message = json!({ "topic": "orders", "data": { "id": 7 }, "tenant": "shop" });
        let (event, signal) =
            (json!({ "type": "shop.paid" }), json!({ "kind": "paid", "key": "o-1" }));
        Module::builder("ready-made", 1)
            .idempotent(Told::new(process, HttpCall::new(client()), call))
            .ambiguous(Told::new(process, HttpRequest::new(client()), json!(url)))
            .idempotent(Publishing { told: Told::new(process, topic, message), keys })
            .transactional::<_, TxOf<F>>(Told::new(process, statements(), Value::Null))
            .transactional::<_, TxOf<F>>(Told::new(process, EmitEvent::new(store.clone()), event))
            .transactional::<_, TxOf<F>>(Told::new(process, SendSignal::new(store), signal))
            .build()
            .unwrap()
    }

    fn workflows(&self) -> &[(&str, &str)] {
        &[(
            "pay",
            "steps:\n  - httpCall: {}\n  - httpRequest: {}\n  - publishMessage: {}\n  - query: {}\n  - emitEvent: {}\n  - signal: {}\n  - waitFor: { kind: paid, key: o-1 }\n",
        )]
    }

    fn budget(&self) -> Amounts {
        Amounts::default()
    }

    fn reply(&self, _: &Dependency) -> Option<Reply> {
        None
    }

    /// A person is asked only where a marked call was never made, and says so.
    fn attend(&self, error: &Failure, _: &[Did]) -> Option<Verb> {
        let not_performed = Verb::Resolve(Verdict::NotPerformed);
        (error.code == Code::EFFECT_OUTCOME_UNKNOWN).then_some(not_performed)
    }
}

/// The four actions that ask a model; its tasks are done by the process itself, beside its worker, and the model outlives it.
struct Thinking {
    model: ScriptedProvider,
}

impl<F: StoreFactory> Scenario<F> for Thinking
where
    F::Store: TaskStore,
{
    type Binding = AnyStore;

    fn module(&self, process: &Process<F>) -> Module {
        let ai = Ai::new(process.store().clone(), "small");
        let labels = json!(["friendly", "rude"]);
        let pieces = json!({
            "type": "object", "properties": { "pieces": { "type": "integer" } }, "required": ["pieces"],
        });
        let prompt = json!({ "prompt": "Say hello" });
        let one = json!({ "text": "hello", "labels": labels });
        let many = json!({ "texts": ["hello", "go away"], "labels": labels });
        let found = json!({ "text": "bolt, 3 pieces", "schema": pieces });
        Module::builder("thinking", 1)
            .idempotent(Told::new(process, GenerateText::new(ai.clone()), prompt))
            .idempotent(Told::new(process, Classify::new(ai.clone()), one))
            .idempotent(Told::new(process, ClassifyMany::new(ai.clone()), many))
            .idempotent(Told::new(process, Extract::new(ai), found))
            .build()
            .unwrap()
    }

    fn workflows(&self) -> &[(&str, &str)] {
        &[(
            "think",
            "steps:\n  - generateText: {}\n  - classify: {}\n  - classifyMany: {}\n  - extract: {}\n",
        )]
    }

    fn budget(&self) -> Amounts {
        Amounts::default()
    }

    fn reply(&self, _: &Dependency) -> Option<Reply> {
        None
    }

    fn attend(&self, _: &Failure, _: &[Did]) -> Option<Verb> {
        None
    }

    fn beside<'a>(&'a self, process: &'a Process<F>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let (store, model) = (process.store().clone(), self.model.clone());
            // No look in the middle of a call: its number would depend on how fast the machine is.
            let rarely = Duration::from_secs(30);
            let thinking = AiWorker::new("matrix", store, model).scan_every(rarely);
            // What the store did not answer is done in the next round.
            let _ = thinking.tick().await;
        })
    }
}

/// Whatever happens to whomever, one effect key is one message.
async fn matrix<F: StoreFactory>(step: usize) -> Report
where
    TxOf<F>: StatementTx,
{
    let orders = topic(DEDUPE_WINDOW_MIN).await;
    let server = Server::start().await;
    let published = Keys::default();
    let scenario = ReadyMade::<F> {
        server,
        orders: orders.clone(),
        published: published.clone(),
        factory: PhantomData,
    };
    let report = crash_matrix_in_steps(scenario, 4, step).await;
    let keys = published.lock().unwrap().len();
    assert_eq!(messages(&*orders).await, keys, "{report}");
    report
}

async fn thinking<F: StoreFactory>(step: usize) -> Report
where
    F::Store: TaskStore,
{
    crash_matrix_in_steps::<F, _>(Thinking { model: clever() }, 4, step).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_crash_point_keeps_the_contract_on_the_embedded_store() {
    let report = matrix::<OnFile>(7).await;
    assert!(report.failures.is_empty() && report.cases > 30, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_crash_point_keeps_the_contract_on_the_shared_store() {
    let report = matrix::<OnServer>(17).await;
    assert!(report.failures.is_empty() && report.cases > 10, "{report}");
}

/// Covers behaviours 214, 215.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_crash_point_of_tasks_keeps_the_contract_on_the_embedded_store() {
    let report = thinking::<OnFile>(11).await;
    assert!(report.failures.is_empty() && report.cases > 30, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_crash_point_of_tasks_keeps_the_contract_on_the_shared_store() {
    let report = thinking::<OnServer>(29).await;
    assert!(report.failures.is_empty() && report.cases > 10, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak"]
async fn all_crash_points_keep_the_contract_on_the_embedded_store() {
    let report = matrix::<OnFile>(1).await;
    eprintln!("{} points, {} cases", report.points.len(), report.cases);
    assert!(report.failures.is_empty(), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak"]
async fn all_crash_points_keep_the_contract_on_the_shared_store() {
    let report = matrix::<OnServer>(1).await;
    eprintln!("{} points, {} cases", report.points.len(), report.cases);
    assert!(report.failures.is_empty(), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak"]
async fn all_crash_points_of_tasks_keep_the_contract_on_the_embedded_store() {
    let report = thinking::<OnFile>(1).await;
    eprintln!("{} points, {} cases", report.points.len(), report.cases);
    assert!(report.failures.is_empty(), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak"]
async fn all_crash_points_of_tasks_keep_the_contract_on_the_shared_store() {
    let report = thinking::<OnServer>(1).await;
    eprintln!("{} points, {} cases", report.points.len(), report.cases);
    assert!(report.failures.is_empty(), "{report}");
}
