//! An application whose payloads are all secret: each bears the mark.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use surefoot_codec::CodecStore;
use surefoot_kernel_core::plan::RetryPolicy;
use surefoot_kernel_core::{
    Dependency, Event, Micros, OperatorStore as _, Phase, Run, RunDetail, RunId, RunState, Source,
    ValueResolver,
};
use surefoot_language::{
    ActionResult, Ambiguous, AmbiguousCx, AmbiguousResult, AmbiguousStop, Idempotent, IdempotentCx,
    Module, On, PlanResult, Planned, ReconcileResult, Reconciled, StepCx, Stop, Transactional,
    TransactionalCx, Trigger,
};
use surefoot_store_sqlite::{SqliteStore, SqliteTx};
use surefoot_testkit::suite::StoreFactory as _;
use surefoot_worker::{Kernel, Publication, Tick, Worker};

use crate::encoded::TempFile;

pub(crate) const APP: &str = "shop";
pub(crate) const SCOPE: &str = "north";

/// What stands in every secret, and nowhere else.
pub(crate) const MARK: &str = "SECRET";

/// Everything at once: an event with data, context and authorization; a resolved value; a failed attempt; a loop; a
/// signal; a transaction; a child; an ambiguous effect that a person has to explain.
pub(crate) const FLOW: &str = r#"
inputs:
  name: { type: text, required: true }
triggers:
  stockLow:
    with: { name: "${{ trigger.name }}" }
steps:
  - ask: { name: "${{ inputs.name }}" }
    saveAs: answer
  - forEach: "${{ context.items }}"
    as: item
    do:
      - book: { note: "${{ item }}" }
  - waitFor: { kind: approval, key: "${{ run.id }}" }
    saveAs: approval
  - runWorkflow:
      workflow: part
      inputs: { name: "${{ inputs.name }}" }
    saveAs: part
  - pay: { name: "${{ part }}" }
"#;

/// A child that has a result.
pub(crate) const PART: &str = r#"
inputs:
  name: { type: text, required: true }
steps:
  - book: { note: "${{ inputs.name }}" }
"#;

/// Ends with a sentence.
pub(crate) const GOOD: &str = r#"
inputs:
  name: { type: text, required: true }
steps:
  - succeed: { message: "Done for ${{ inputs.name }}" }
"#;

/// Ends with a failure.
pub(crate) const BAD: &str = r#"
inputs:
  name: { type: text, required: true }
steps:
  - fail: { message: "Nothing for ${{ inputs.name }}", code: NOTHING }
"#;

/// Waits for everybody's news.
pub(crate) const HEAR: &str = "steps:\n  - hear: {}\n";

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct StockLow {
    name: String,
}

impl Trigger for StockLow {
    const KIND: &'static str = "stockLow";
    const EVENT: &'static str = "inventory.stockLow";
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Named {
    name: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Note {
    note: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// Fails once, and sends what it resolves.
#[derive(Default)]
struct Ask(AtomicUsize);

impl Idempotent for Ask {
    const NAME: &'static str = "ask";
    type Input = Named;
    type Output = String;

    async fn run(&self, cx: &IdempotentCx, named: Named) -> ActionResult<String> {
        let card: String = cx.resolve("card").await?;
        if self.0.fetch_add(1, Ordering::SeqCst) == 0 {
            return Err(Stop::retry("BUSY", format!("{MARK}-failure for {}", named.name)));
        }
        Ok(format!("{MARK}-output of {card}"))
    }

    async fn plan(&self, _: &StepCx, named: &Named) -> PlanResult<String> {
        let planned = Planned::new(format!("Ask for {}", named.name));
        Ok(planned.output(format!("{MARK}-planned")).issue(format!("{MARK}-issue")))
    }
}

struct Book;

impl Transactional<SqliteTx> for Book {
    const NAME: &'static str = "book";
    type Input = Note;
    type Output = String;

    async fn run(&self, _: &mut TransactionalCx<'_, SqliteTx>, note: Note) -> ActionResult<String> {
        Ok(format!("{MARK}-booked {}", note.note))
    }

    async fn plan(&self, _: &StepCx, note: &Note) -> PlanResult<String> {
        Ok(Planned::new(format!("Book {}", note.note)))
    }
}

/// Nobody ever knows what became of it.
struct Pay;

impl Ambiguous for Pay {
    const NAME: &'static str = "pay";
    type Input = Named;
    type Output = BTreeMap<String, String>;

    async fn run(&self, _: &AmbiguousCx, _: Named) -> AmbiguousResult<Self::Output> {
        let stop = AmbiguousStop::may_have_happened(format!("{MARK}-unknown"));
        Err(stop.evidence(json!({ "said": format!("{MARK}-evidence") })))
    }

    async fn reconcile(&self, _: &AmbiguousCx, _: Named) -> ReconcileResult<Self::Output> {
        Ok(Reconciled::unknown(format!("{MARK}-why")))
    }

    async fn plan(&self, _: &StepCx, named: &Named) -> PlanResult<Self::Output> {
        Ok(Planned::new(format!("Pay for {}", named.name)))
    }

    fn retry(&self) -> RetryPolicy {
        RetryPolicy { attempts: 100, ..RetryPolicy::default() }
    }
}

struct Hear;

impl Idempotent for Hear {
    const NAME: &'static str = "hear";
    type Input = Nothing;
    type Output = Value;

    async fn run(&self, cx: &IdempotentCx, _: Nothing) -> ActionResult<Value> {
        let heard = cx.signal().cloned();
        heard.ok_or_else(|| Stop::wait_for(Dependency::on("news", "all").app_wide()))
    }

    async fn plan(&self, _: &StepCx, _: &Nothing) -> PlanResult<Value> {
        Ok(Planned::new("Hear"))
    }
}

struct Cards;

#[async_trait::async_trait]
impl ValueResolver for Cards {
    async fn resolve(&self, _: &str) -> Result<Option<Value>, Source> {
        Ok(Some(json!(format!("{MARK}-card"))))
    }
}

pub(crate) fn module() -> Module<On<SqliteTx>> {
    Module::builder("shop", 1)
        .trigger::<StockLow>()
        .idempotent(Ask::default())
        .transactional(Book)
        .ambiguous(Pay)
        .idempotent(Hear)
        .build()
        .unwrap()
}

/// Started with secrets alone.
pub(crate) fn low() -> Event {
    let data = StockLow { name: format!("{MARK}-data") };
    Event::new(StockLow::EVENT, data)
        .context(json!({ "items": [format!("{MARK}-item")] }))
        .authorization(json!({
            "actor": { "id": format!("{MARK}-actor") },
            "token": format!("{MARK}-token"),
        }))
}

/// The application on one file.
pub(crate) struct Shop {
    pub(crate) file: Arc<TempFile>,
    pub(crate) module: Module<On<SqliteTx>>,
}

impl Shop {
    pub(crate) async fn new() -> Self {
        Self { file: Arc::new(TempFile::fresh().await), module: module() }
    }

    pub(crate) async fn store(&self) -> SqliteStore {
        self.file.open().await
    }

    pub(crate) fn worker(&self, kernel: &Kernel<CodecStore<SqliteStore>>) -> Worker {
        kernel.worker(self.module.clone()).values(|_| Cards).build().unwrap()
    }

    pub(crate) async fn publish(
        &self,
        kernel: &Kernel<CodecStore<SqliteStore>>,
        workflow: &str,
        source: &str,
    ) {
        let publication = Publication::new(workflow, source);
        let publication =
            publication.authorization(json!({ "actor": format!("{MARK}-publisher") }));
        kernel.scope(SCOPE).publish(self.module.manifest(), publication).await.unwrap();
    }

    /// Has a worker go on with everything, a day at a time.
    pub(crate) async fn work(&self, worker: &Worker, days: usize) {
        for _ in 0..days {
            worker.tick(Tick::max_runs(100)).await.unwrap();
            self.file.pass_time(Micros::from(Duration::from_secs(86_400))).await;
        }
    }
}

pub(crate) async fn detail(store: &CodecStore<SqliteStore>, run: RunId) -> RunDetail {
    store.run_detail(run).await.unwrap().unwrap()
}

#[track_caller]
pub(crate) fn assert_state(run: &Run, state: RunState) {
    assert_eq!(run.state(), state, "{run:#?}");
}

/// The message of the failure that a run ended with, or needs a person for.
pub(crate) fn message(run: &Run) -> &str {
    match &run.phase {
        Phase::Failed { error, .. } => &error.message,
        Phase::NeedsAttention(attention) => &attention.error.message,
        Phase::Queued { .. }
        | Phase::Running { .. }
        | Phase::Waiting(_)
        | Phase::Succeeded { .. }
        | Phase::Canceled { .. } => "",
    }
}
