//! What the processes run: an order that is booked, mailed and paid.
//!
//! What happens outside the store is written to files beside it, one flushed line per effect: they outlive every kill.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use surefoot_kernel_core::plan::RetryPolicy;
use surefoot_language::{
    ActionResult, Ambiguous, AmbiguousCx, AmbiguousResult, Idempotent, IdempotentCx, Module, On,
    PlanResult, Planned, ReconcileResult, Reconciled, StepCx, Transactional, TransactionalCx,
};
use surefoot_store_sqlite::{SqliteTx, sqlx};

pub(crate) const APP: &str = "shop";
pub(crate) const SCOPE: &str = "north";
pub(crate) const WORKFLOW: &str = "order";
pub(crate) const SLOW: &str = "slow";

pub(crate) const SOURCE: &str = "
steps:
  - book: {}
  - mail: {}
  - pay: {}
  - book: {}
";

pub(crate) const SLOW_SOURCE: &str = "steps:\n  - wait: {}\n";

/// Short, so that the next process need not wait for long.
pub(crate) const LEASE: Duration = Duration::from_millis(400);

/// The folder of the store and of what is outside it.
#[derive(Debug, Clone)]
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.0.join("store.db")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Appends a line that survives.
    pub(crate) fn write(&self, name: &str, line: &str) -> std::io::Result<()> {
        let mut file = std::fs::File::options().create(true).append(true).open(self.file(name))?;
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()
    }

    /// The lines of a file that are whole.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.file(name)).unwrap_or_default();
        text.split_inclusive('\n')
            .filter_map(|line| line.strip_suffix('\n'))
            .map(str::to_owned)
            .collect()
    }
}

pub(crate) fn module(place: &Place) -> Module<On<SqliteTx>> {
    Module::builder("shop", 1)
        .transactional(Book)
        .idempotent(Mail(place.clone()))
        .ambiguous(Pay(place.clone()))
        .idempotent(Wait(place.clone()))
        .build()
        .unwrap()
}

pub(crate) fn table() -> &'static str {
    "CREATE TABLE IF NOT EXISTS booked (run TEXT NOT NULL, step TEXT NOT NULL)"
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A kill counts as a failure of the run, and there are many.
fn patient() -> RetryPolicy {
    RetryPolicy { attempts: 100, ..RetryPolicy::default() }
}

/// Nothing in the table keeps a second row of the same step out.
struct Book;

impl Transactional<SqliteTx> for Book {
    const NAME: &'static str = "book";
    type Input = Nothing;
    type Output = String;

    async fn run(
        &self,
        cx: &mut TransactionalCx<'_, SqliteTx>,
        _: Nothing,
    ) -> ActionResult<String> {
        let (run, step) = (cx.run_id().to_string(), cx.step_key().to_string());
        let insert = "INSERT INTO booked (run, step) VALUES (?, ?)";
        sqlx::query(insert).bind(run).bind(step).execute(cx.tx()).await?;
        Ok("booked".to_owned())
    }

    async fn plan(&self, _: &StepCx, _: &Nothing) -> PlanResult<String> {
        Ok(Planned::new("Book"))
    }

    fn retry(&self) -> RetryPolicy {
        patient()
    }
}

struct Mail(Place);

impl Idempotent for Mail {
    const NAME: &'static str = "mail";
    type Input = Nothing;
    type Output = String;

    async fn run(&self, cx: &IdempotentCx, _: Nothing) -> ActionResult<String> {
        self.0.write("mails", &format!("{} {}", cx.run_id(), cx.effect_key()))?;
        Ok("sent".to_owned())
    }

    async fn plan(&self, _: &StepCx, _: &Nothing) -> PlanResult<String> {
        Ok(Planned::new("Write"))
    }

    fn retry(&self) -> RetryPolicy {
        patient()
    }
}

/// Each call is carried out, also a second one under the same key.
struct Pay(Place);

impl Ambiguous for Pay {
    const NAME: &'static str = "pay";
    const SETTLE_AFTER: Duration = Duration::from_secs(1);
    type Input = Nothing;
    type Output = String;

    async fn run(&self, cx: &AmbiguousCx, _: Nothing) -> AmbiguousResult<String> {
        self.0.write("payments", cx.effect_key().as_str())?;
        Ok("paid".to_owned())
    }

    async fn reconcile(&self, cx: &AmbiguousCx, _: Nothing) -> ReconcileResult<String> {
        let is_paid = self.0.lines("payments").iter().any(|key| key == cx.effect_key().as_str());
        Ok(if is_paid { Reconciled::Succeeded("paid".to_owned()) } else { Reconciled::NotFound })
    }

    async fn plan(&self, _: &StepCx, _: &Nothing) -> PlanResult<String> {
        Ok(Planned::new("Pay"))
    }

    fn retry(&self) -> RetryPolicy {
        patient()
    }
}

/// Takes as long as its first caller's file says; does not listen to its token.
struct Wait(Place);

impl Idempotent for Wait {
    const NAME: &'static str = "wait";
    type Input = Nothing;
    type Output = u32;

    async fn run(&self, cx: &IdempotentCx, _: Nothing) -> ActionResult<u32> {
        let me = std::process::id();
        self.0.write("calls", &format!("{me} {}", cx.effect_key()))?;
        let is_first = self.0.lines("calls").len() == 1;
        while is_first && !self.0.file("go-on").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.0.write("returns", &me.to_string())?;
        Ok(me)
    }

    async fn plan(&self, _: &StepCx, _: &Nothing) -> PlanResult<u32> {
        Ok(Planned::new("Wait"))
    }
}
