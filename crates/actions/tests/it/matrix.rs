//! The crash matrix over ready-made actions: trouble at every call to the store, on both stores.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde::Deserialize;
use serde_json::{Value, json};
use surefoot_actions::event::{
    EmitEvent, EventInput, EventOutput, SendSignal, SignalInput, SignalOutput,
};
use surefoot_actions::http::{HttpAnswer, HttpCall, HttpInput, HttpRequest, HttpRequestInput};
use surefoot_kernel_core::{
    Amounts, Code, Dependency, Failure, Micros, StoreError, TxStore, Verdict,
};
use surefoot_language::{
    ActionResult, Ambiguous, AmbiguousCx, AmbiguousResult, Idempotent, IdempotentCx, Module, On,
    PlanResult, ReconcileResult, StepCx, Transactional, TransactionalCx,
};
use surefoot_store_postgres::{PostgresStore, PostgresTx, sqlx as pg};
use surefoot_store_sqlite::{SqliteOptions, SqliteStore, SqliteTx, sqlx};
use surefoot_testkit::matrix::{
    Did, Process, Reply, Report, Scenario, TxOf, Verb, crash_matrix_in_steps,
};
use surefoot_testkit::suite::{StoreFactory, Tamper, Tampered};
use tempfile::TempDir;

use crate::database::Database;
use crate::server::{Server, client};

const TABLE: &str = "CREATE TABLE app_table (key TEXT PRIMARY KEY, value TEXT NOT NULL)";

/// A file of one case.
struct OnFile {
    folder: TempDir,
    offset: Arc<AtomicI64>,
}

impl StoreFactory for OnFile {
    type Store = SqliteStore;

    async fn fresh() -> Self {
        let file = Self { folder: TempDir::new().unwrap(), offset: Arc::default() };
        let store = file.open().await;
        let mut tx = store.begin().await.unwrap();
        sqlx::query(TABLE).execute(&mut *tx).await.unwrap();
        TxStore::commit(&store, tx).await.unwrap();
        file
    }

    async fn open(&self) -> SqliteStore {
        let path = self.folder.path().join("store.db");
        let options = SqliteOptions::new(path).clock_offset(self.offset.clone());
        SqliteStore::open_with(options).await.unwrap()
    }

    async fn pass_time(&self, span: Micros) {
        self.offset.fetch_add(span.get(), Ordering::SeqCst);
    }

    async fn turn_back(&self, span: Micros) {
        self.offset.fetch_sub(span.get(), Ordering::SeqCst);
    }

    async fn write_row(tx: &mut SqliteTx, key: &str, value: &str) -> Result<(), StoreError> {
        let insert = sqlx::query(
            "INSERT INTO app_table (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        );
        let done = insert.bind(key).bind(value).execute(tx).await;
        done.map(drop).map_err(|error| StoreError::Refused(Box::new(error)))
    }

    async fn read_row(store: &SqliteStore, key: &str) -> Option<String> {
        let mut tx = store.begin().await.unwrap();
        let query = sqlx::query_scalar("SELECT value FROM app_table WHERE key = $1");
        query.bind(key).fetch_optional(&mut *tx).await.unwrap()
    }

    async fn tamper(&self, _: Tamper) -> Tampered {
        Tampered::Unsupported
    }
}

/// A database of one case.
struct OnServer {
    database: Database,
    offset: Arc<AtomicI64>,
}

impl StoreFactory for OnServer {
    type Store = PostgresStore;

    async fn fresh() -> Self {
        let server = Self { database: Database::new().await, offset: Arc::default() };
        let store = server.open().await;
        let mut tx = store.begin().await.unwrap();
        pg::query(TABLE).execute(&mut *tx).await.unwrap();
        TxStore::commit(&store, tx).await.unwrap();
        server
    }

    async fn open(&self) -> PostgresStore {
        let options = self.database.options().clock_offset(self.offset.clone());
        PostgresStore::open_with(options).await.unwrap()
    }

    async fn pass_time(&self, span: Micros) {
        self.offset.fetch_add(span.get(), Ordering::SeqCst);
    }

    async fn turn_back(&self, span: Micros) {
        self.offset.fetch_sub(span.get(), Ordering::SeqCst);
    }

    async fn write_row(tx: &mut PostgresTx, key: &str, value: &str) -> Result<(), StoreError> {
        let insert =
            pg::query("INSERT INTO app_table (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING");
        let done = insert.bind(key).bind(value).execute(tx).await;
        done.map(drop).map_err(|error| StoreError::Refused(Box::new(error)))
    }

    async fn read_row(store: &PostgresStore, key: &str) -> Option<String> {
        let mut tx = store.begin().await.unwrap();
        let query = pg::query_scalar("SELECT value FROM app_table WHERE key = $1");
        query.bind(key).fetch_optional(&mut *tx).await.unwrap()
    }

    async fn tamper(&self, _: Tamper) -> Tampered {
        Tampered::Unsupported
    }
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// An action that says to the matrix what it does. Its input is its own, so that no output knows the place of the server.
struct Told<F: StoreFactory, A> {
    process: Process<F>,
    action: A,
    url: String,
}

fn read<T: serde::de::DeserializeOwned>(input: Value) -> T {
    serde_json::from_value(input).unwrap()
}

impl<F: StoreFactory> Ambiguous for Told<F, HttpRequest> {
    const NAME: &'static str = "httpRequest";
    const SETTLE_AFTER: std::time::Duration = std::time::Duration::from_secs(240);
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
}

impl<F: StoreFactory> Told<F, HttpRequest> {
    fn request(&self, confirm: &str) -> HttpRequestInput {
        let url = &self.url;
        read(json!({
            "method": "POST", "url": format!("{url}/status/200"), "json": {},
            "confirm": { "url": format!("{url}{confirm}") },
        }))
    }
}

impl<F: StoreFactory> Idempotent for Told<F, HttpCall> {
    const NAME: &'static str = "httpCall";
    type Input = Nothing;
    type Output = HttpAnswer;

    async fn run(&self, cx: &IdempotentCx, _: Nothing) -> ActionResult<HttpAnswer> {
        self.process.called_idempotent(cx, cx.effect_key());
        self.action.run(cx, self.call()).await
    }

    async fn plan(&self, cx: &StepCx, _: &Nothing) -> PlanResult<HttpAnswer> {
        self.action.plan(cx, &self.call()).await
    }
}

impl<F: StoreFactory> Told<F, HttpCall> {
    fn call(&self) -> HttpInput {
        read(json!({ "url": format!("{}/status/200", self.url) }))
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
        let emitted = self.action.run(cx, read(json!({ "type": "shop.paid" }))).await?;
        // Its id depends on the run's.
        Ok(EventOutput { event: String::new(), ..emitted })
    }

    async fn plan(&self, cx: &StepCx, _: &Nothing) -> PlanResult<EventOutput> {
        let input: EventInput = read(json!({ "type": "shop.paid" }));
        self.action.plan(cx, &input).await
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
        self.action.run(cx, read(json!({ "kind": "paid", "key": "o-1" }))).await
    }

    async fn plan(&self, cx: &StepCx, _: &Nothing) -> PlanResult<SignalOutput> {
        let input: SignalInput = read(json!({ "kind": "paid", "key": "o-1" }));
        self.action.plan(cx, &input).await
    }
}

/// One step of each; the last one waits for the signal that the step before it has sent.
struct ReadyMade<F> {
    server: Server,
    factory: PhantomData<fn() -> F>,
}

impl<F: StoreFactory> Scenario<F> for ReadyMade<F> {
    type Binding = On<TxOf<F>>;

    fn module(&self, process: &Process<F>) -> Module<On<TxOf<F>>> {
        let store = process.store().inner().clone();
        Module::builder("ready-made", 1)
            .idempotent(self.told(process, HttpCall::new(client())))
            .ambiguous(self.told(process, HttpRequest::new(client())))
            .transactional::<_, TxOf<F>>(self.told(process, EmitEvent::new(store.clone())))
            .transactional::<_, TxOf<F>>(self.told(process, SendSignal::new(store)))
            .build()
            .unwrap()
    }

    fn workflows(&self) -> &[(&str, &str)] {
        &[(
            "pay",
            "steps:\n  - httpCall: {}\n  - httpRequest: {}\n  - emitEvent: {}\n  - signal: {}\n  - waitFor: { kind: paid, key: o-1 }\n",
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

impl<F: StoreFactory> ReadyMade<F> {
    fn told<A>(&self, process: &Process<F>, action: A) -> Told<F, A> {
        Told { process: process.clone(), action, url: self.server.url("") }
    }
}

async fn matrix<F: StoreFactory>(step: usize) -> Report {
    let scenario = ReadyMade::<F> { server: Server::start().await, factory: PhantomData };
    crash_matrix_in_steps(scenario, 4, step).await
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak"]
async fn all_crash_points_keep_the_contract() {
    let report = matrix::<OnFile>(1).await;
    assert!(report.failures.is_empty(), "{report}");
    let report = matrix::<OnServer>(1).await;
    assert!(report.failures.is_empty(), "{report}");
}
