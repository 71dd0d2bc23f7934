//! One action of every class, with bodies that a test brings along. Every call is logged.

use std::future::Future;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use surefoot_kernel_core::BoxFuture;
use surefoot_language::*;
use surefoot_testkit::MemoryTx;

/// Any object.
pub(crate) type Config = Map<String, Value>;

/// What was called, in order: `mail.run steps.0 #1`.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// How many lines begin like this.
    pub(crate) fn count(&self, prefix: &str) -> usize {
        self.lines().iter().filter(|line| line.starts_with(prefix)).count()
    }

    fn call(&self, hook: &str, cx: &StepCx) {
        self.add(format!("{hook} {} #{}", cx.step_key(), cx.attempt()));
    }
}

type Compute = dyn Fn(Value) -> ActionResult<Value> + Send + Sync;
type Book = dyn for<'a, 't> Fn(
        &'a mut TransactionalCx<'t, MemoryTx>,
        Value,
    ) -> BoxFuture<'a, ActionResult<Value>>
    + Send
    + Sync;
type Mail = dyn Fn(IdempotentCx<On<MemoryTx>>, Value) -> BoxFuture<'static, ActionResult<Value>>
    + Send
    + Sync;
type Pay = dyn Fn(AmbiguousCx, Value) -> BoxFuture<'static, AmbiguousResult<Value>> + Send + Sync;
type Find = dyn Fn(AmbiguousCx, Value) -> BoxFuture<'static, ReconcileResult<Value>> + Send + Sync;
type Preview = dyn Fn(&'static str, &Value) -> PlanResult<Value> + Send + Sync;
type May = dyn Fn(&'static str, StepCx) -> BoxFuture<'static, ActionResult<Access>> + Send + Sync;

/// The bodies; by default each succeeds with its config.
#[derive(Clone)]
pub(crate) struct Actions {
    pub(crate) log: Log,
    pub(crate) retry: surefoot_kernel_core::plan::RetryPolicy,
    compute: Arc<Compute>,
    book: Arc<Book>,
    mail: Arc<Mail>,
    pay: Arc<Pay>,
    find: Arc<Find>,
    may: Arc<May>,
    cost: Arc<dyn Fn() -> Cost + Send + Sync>,
    plan: Arc<Preview>,
}

impl Default for Actions {
    fn default() -> Self {
        Self {
            log: Log::default(),
            retry: Default::default(),
            compute: Arc::new(Ok),
            book: Arc::new(|_, config| Box::pin(async { Ok(config) })),
            mail: Arc::new(|_, config| Box::pin(async { Ok(config) })),
            pay: Arc::new(|_, config| Box::pin(async { Ok(config) })),
            find: Arc::new(|_, _| Box::pin(async { Ok(Reconciled::NotFound) })),
            may: Arc::new(|_, _| Box::pin(async { Ok(Access::Allowed) })),
            cost: Arc::new(Cost::none),
            plan: Arc::new(|_, _| panic!("execution never previews")),
        }
    }
}

impl Actions {
    pub(crate) fn compute(
        mut self,
        f: impl Fn(Value) -> ActionResult<Value> + Send + Sync + 'static,
    ) -> Self {
        self.compute = Arc::new(f);
        self
    }

    pub(crate) fn book(
        mut self,
        f: impl for<'a, 't> Fn(
            &'a mut TransactionalCx<'t, MemoryTx>,
            Value,
        ) -> BoxFuture<'a, ActionResult<Value>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.book = Arc::new(f);
        self
    }

    pub(crate) fn mail<F>(
        mut self,
        f: impl Fn(IdempotentCx<On<MemoryTx>>, Value) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ActionResult<Value>> + Send + 'static,
    {
        self.mail = Arc::new(move |cx, config| Box::pin(f(cx, config)));
        self
    }

    pub(crate) fn pay<F>(
        mut self,
        f: impl Fn(AmbiguousCx, Value) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = AmbiguousResult<Value>> + Send + 'static,
    {
        self.pay = Arc::new(move |cx, config| Box::pin(f(cx, config)));
        self
    }

    pub(crate) fn find<F>(
        mut self,
        f: impl Fn(AmbiguousCx, Value) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ReconcileResult<Value>> + Send + 'static,
    {
        self.find = Arc::new(move |cx, config| Box::pin(f(cx, config)));
        self
    }

    pub(crate) fn may<F>(
        mut self,
        f: impl Fn(&'static str, StepCx) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ActionResult<Access>> + Send + 'static,
    {
        self.may = Arc::new(move |action, cx| Box::pin(f(action, cx)));
        self
    }

    /// What each call of a non-pure action costs.
    pub(crate) fn cost(mut self, f: impl Fn() -> Cost + Send + Sync + 'static) -> Self {
        self.cost = Arc::new(f);
        self
    }

    /// How non-pure actions preview.
    pub(crate) fn plan(
        mut self,
        f: impl Fn(&'static str, &Value) -> PlanResult<Value> + Send + Sync + 'static,
    ) -> Self {
        self.plan = Arc::new(f);
        self
    }

    pub(crate) fn module(&self) -> Module<On<MemoryTx>> {
        self.module_version(1)
    }

    pub(crate) fn module_version(&self, version: u32) -> Module<On<MemoryTx>> {
        Module::builder("inventory", version)
            .pure(ComputeAction(self.clone()))
            .pure(GrindAction(self.clone()))
            .transactional(BookAction(self.clone()))
            .idempotent(MailAction(self.clone()))
            .ambiguous(PayAction(self.clone()))
            .ambiguous(WireAction(self.clone()))
            .build()
            .unwrap()
    }

    async fn authorize(&self, action: &'static str, cx: &StepCx) -> ActionResult<Access> {
        self.log.call(&format!("{action}.authorize"), cx);
        (self.may)(action, cx.clone()).await
    }
}

fn value(config: Config) -> Value {
    Value::Object(config)
}

struct ComputeAction(Actions);
impl Pure for ComputeAction {
    const NAME: &'static str = "compute";
    type Input = Config;
    type Output = Value;
    fn run(&self, _: &PureCx, config: Config) -> ActionResult<Value> {
        self.0.log.add(format!("compute.run {}", Value::Object(config.clone())));
        (self.0.compute)(value(config))
    }
    fn retry(&self) -> surefoot_kernel_core::plan::RetryPolicy {
        self.0.retry.clone()
    }
}

/// Needs a thread of its own.
struct GrindAction(Actions);
impl Pure for GrindAction {
    const NAME: &'static str = "grind";
    const HEAVY: bool = true;
    type Input = Config;
    type Output = Value;
    fn run(&self, _: &PureCx, config: Config) -> ActionResult<Value> {
        self.0.log.add("grind.run");
        (self.0.compute)(value(config))
    }
}

struct BookAction(Actions);
impl Transactional<MemoryTx> for BookAction {
    const NAME: &'static str = "book";
    type Input = Config;
    type Output = Value;
    async fn run(
        &self,
        cx: &mut TransactionalCx<'_, MemoryTx>,
        config: Config,
    ) -> ActionResult<Value> {
        self.0.log.call("book.run", cx);
        (self.0.book)(cx, value(config)).await
    }
    async fn plan(&self, cx: &StepCx, config: &Config) -> PlanResult<Value> {
        self.0.log.call("book.plan", cx);
        (self.0.plan)("book", &value(config.clone()))
    }
    async fn authorize(&self, cx: &StepCx, _: &Config) -> ActionResult<Access> {
        self.0.authorize("book", cx).await
    }
    fn cost(&self, _: &Config) -> Cost {
        self.0.log.add("book.cost");
        (self.0.cost)()
    }
    fn retry(&self) -> surefoot_kernel_core::plan::RetryPolicy {
        self.0.retry.clone()
    }
}

struct MailAction(Actions);
impl Idempotent<On<MemoryTx>> for MailAction {
    const NAME: &'static str = "mail";
    type Input = Config;
    type Output = Value;
    async fn run(&self, cx: &IdempotentCx<On<MemoryTx>>, config: Config) -> ActionResult<Value> {
        self.0.log.call("mail.run", cx);
        self.0.log.add(format!("key {}", cx.effect_key()));
        (self.0.mail)(cx.clone(), value(config)).await
    }
    async fn plan(&self, cx: &StepCx, config: &Config) -> PlanResult<Value> {
        self.0.log.call("mail.plan", cx);
        (self.0.plan)("mail", &value(config.clone()))
    }
    async fn authorize(&self, cx: &StepCx, _: &Config) -> ActionResult<Access> {
        self.0.authorize("mail", cx).await
    }
    fn cost(&self, _: &Config) -> Cost {
        self.0.log.add("mail.cost");
        (self.0.cost)()
    }
    fn retry(&self) -> surefoot_kernel_core::plan::RetryPolicy {
        self.0.retry.clone()
    }
}

struct PayAction(Actions);
impl Ambiguous for PayAction {
    const NAME: &'static str = "pay";
    type Input = Config;
    type Output = Value;
    async fn run(&self, cx: &AmbiguousCx, config: Config) -> AmbiguousResult<Value> {
        self.0.log.call("pay.run", cx);
        self.0.log.add(format!("key {}", cx.effect_key()));
        (self.0.pay)(cx.clone(), value(config)).await
    }
    async fn reconcile(&self, cx: &AmbiguousCx, config: Config) -> ReconcileResult<Value> {
        self.0.log.call("pay.reconcile", cx);
        self.0.log.add(format!("key {}", cx.effect_key()));
        (self.0.find)(cx.clone(), value(config)).await
    }
    async fn plan(&self, cx: &StepCx, config: &Config) -> PlanResult<Value> {
        self.0.log.call("pay.plan", cx);
        (self.0.plan)("pay", &value(config.clone()))
    }
    async fn authorize(&self, cx: &StepCx, _: &Config) -> ActionResult<Access> {
        self.0.authorize("pay", cx).await
    }
    fn cost(&self, _: &Config) -> Cost {
        self.0.log.add("pay.cost");
        (self.0.cost)()
    }
    fn retry(&self) -> surefoot_kernel_core::plan::RetryPolicy {
        self.0.retry.clone()
    }
}

/// Any object without `unreadable`, which only its type knows, and with three members at most, which only its schema knows.
#[derive(schemars::JsonSchema)]
#[schemars(transparent, extend("maxProperties" = 3))]
pub(crate) struct Readable(Config);

impl<'de> serde::Deserialize<'de> for Readable {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let config = Config::deserialize(from)?;
        match config.contains_key("unreadable") {
            true => Err(serde::de::Error::custom("it cannot be read")),
            false => Ok(Self(config)),
        }
    }
}

/// Pays, and nobody is asked before it does.
struct WireAction(Actions);
impl Ambiguous for WireAction {
    const NAME: &'static str = "wire";
    const GUARDED: bool = false;
    type Input = Readable;
    type Output = Value;
    async fn run(&self, cx: &AmbiguousCx, Readable(config): Readable) -> AmbiguousResult<Value> {
        self.0.log.call("wire.run", cx);
        (self.0.pay)(cx.clone(), value(config)).await
    }
    async fn reconcile(
        &self,
        cx: &AmbiguousCx,
        Readable(config): Readable,
    ) -> ReconcileResult<Value> {
        self.0.log.call("wire.reconcile", cx);
        (self.0.find)(cx.clone(), value(config)).await
    }
    async fn plan(&self, cx: &StepCx, Readable(config): &Readable) -> PlanResult<Value> {
        self.0.log.call("wire.plan", cx);
        (self.0.plan)("wire", &value(config.clone()))
    }
}

/// A config with one number.
pub(crate) fn n(number: i64) -> Value {
    json!({ "n": number })
}
