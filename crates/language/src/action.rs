//! One trait per effect class. Required hooks have no default, forbidden hooks do not exist.

use std::future::Future;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use surefoot_kernel_core::Event;
use surefoot_kernel_core::plan::RetryPolicy;

use crate::answer::{Access, ActionResult, AmbiguousResult, Cost, PlanResult, ReconcileResult};
use crate::binding::{AnyStore, Binding};
use crate::context::{AmbiguousCx, IdempotentCx, PureCx, StepCx, TransactionalCx};

/// How long `NotFound` of a reconcile proves nothing, unless the action says otherwise.
pub const SETTLE_AFTER: Duration = Duration::from_secs(600);

/// What a step's config must be. Implemented for everything that derives the two traits.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the input of an action",
    label = "an action's `Input` must derive `serde::Deserialize` and `schemars::JsonSchema`",
    note = "add `#[derive(Deserialize, JsonSchema)]` to `{Self}`; it must own its data (`String`, not `&str`)"
)]
pub trait ActionInput: DeserializeOwned + JsonSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> ActionInput for T {}

/// What a step's output must be. Implemented for everything that derives the two traits.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the output of an action",
    label = "an action's `Output` must derive `serde::Serialize` and `schemars::JsonSchema`",
    note = "add `#[derive(Serialize, JsonSchema)]` to `{Self}`"
)]
pub trait ActionOutput: Serialize + JsonSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema + Send + 'static> ActionOutput for T {}

/// The output depends on the input and nothing else. Not async: what cannot await cannot call out.
///
/// ```
/// use surefoot_language::{ActionResult, Module, Pure, PureCx};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Low { missing: i64 }
///
/// struct BoxesFor;
/// impl Pure for BoxesFor {
///     const NAME: &'static str = "boxesFor";
///     type Input = Low;
///     type Output = i64;
///     fn run(&self, _: &PureCx, low: Low) -> ActionResult<i64> {
///         Ok((low.missing + 11) / 12)
///     }
/// }
/// # fn main() -> Result<(), surefoot_language::ModuleError> {
/// let inventory = Module::builder("inventory", 1).pure(BoxesFor).build()?;
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a pure action",
    label = "`.pure(..)` needs `impl Pure for {Self}`",
    note = "if it reads a database, a clock or a network it is not pure: implement `Idempotent`, and register it with `.idempotent(..)`"
)]
pub trait Pure: Send + Sync + 'static {
    /// What authors write as the step's key.
    const NAME: &'static str;
    /// What it does, for authors.
    const ABOUT: &'static str = "";
    /// Whether `run` computes for so long that it needs a thread of its own.
    const HEAVY: bool = false;
    /// The step's config.
    type Input: ActionInput;
    /// What the step yields.
    type Output: ActionOutput;

    /// Computes the output. May run again until its outcome is recorded.
    ///
    /// # Errors
    /// Every way to stop without an output.
    fn run(&self, cx: &PureCx, input: Self::Input) -> ActionResult<Self::Output>;

    /// When a failed attempt is tried again.
    fn retry(&self) -> RetryPolicy {
        RetryPolicy::default()
    }
}

/// All work goes through `cx.tx()`: it commits with the outcome, or not at all.
///
/// ```
/// use surefoot_language::{ActionResult, Planned, PlanResult, StepCx, Transactional, TransactionalCx};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Order { boxes: i64 }
///
/// struct Shelf { boxes: i64 } // stands for a connection inside a transaction, such as `SqliteTx`
///
/// struct Book;
/// impl Transactional<Shelf> for Book {
///     const NAME: &'static str = "book";
///     type Input = Order;
///     type Output = i64;
///     async fn run(&self, cx: &mut TransactionalCx<'_, Shelf>, order: Order) -> ActionResult<i64> {
///         cx.tx().boxes += order.boxes;
///         Ok(cx.tx().boxes)
///     }
///     async fn plan(&self, _: &StepCx, order: &Order) -> PlanResult<i64> {
///         Ok(Planned::new(format!("Book {} boxes", order.boxes)))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a transactional action for `{Tx}`",
    label = "`.transactional(..)` needs `impl Transactional<{Tx}> for {Self}`"
)]
pub trait Transactional<Tx: Send + 'static>: Send + Sync + 'static {
    /// What authors write as the step's key.
    const NAME: &'static str;
    /// What it does, for authors.
    const ABOUT: &'static str = "";
    /// The step's config.
    type Input: ActionInput;
    /// What the step yields.
    type Output: ActionOutput;

    /// Does the work. May be dropped at any await when the lease is lost; the transaction is rolled back then.
    fn run(
        &self,
        cx: &mut TransactionalCx<'_, Tx>,
        input: Self::Input,
    ) -> impl Future<Output = ActionResult<Self::Output>> + Send;

    /// Previews the work, for dry runs. Must change nothing.
    fn plan(
        &self,
        cx: &StepCx,
        input: &Self::Input,
    ) -> impl Future<Output = PlanResult<Self::Output>> + Send;

    /// Whether the run's actor may do this. Asked before each execution of `run`.
    fn authorize(
        &self,
        _cx: &StepCx,
        _input: &Self::Input,
    ) -> impl Future<Output = ActionResult<Access>> + Send {
        async { Ok(Access::Allowed) }
    }

    /// What one call charges to the effect budget.
    fn cost(&self, _input: &Self::Input) -> Cost {
        Cost::none()
    }

    /// When a failed attempt is tried again.
    fn retry(&self) -> RetryPolicy {
        RetryPolicy::default()
    }
}

/// Safe to repeat under `cx.effect_key()`.
///
/// An action that writes to its own tables in its own transaction names its store, `Idempotent<On<SqliteTx>>`, and
/// calls `cx.heartbeat_in(&mut tx)` before it writes. One that does not, names none.
///
/// ```
/// use surefoot_language::{ActionResult, Idempotent, IdempotentCx, Planned, PlanResult, StepCx};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Mail { to: String }
///
/// struct Send;
/// impl Idempotent for Send {
///     const NAME: &'static str = "send";
///     type Input = Mail;
///     type Output = String;
///     async fn run(&self, cx: &IdempotentCx, mail: Mail) -> ActionResult<String> {
///         Ok(format!("{} under {}", mail.to, cx.effect_key()))
///     }
///     async fn plan(&self, _: &StepCx, mail: &Mail) -> PlanResult<String> {
///         Ok(Planned::new(format!("Write to {}", mail.to)))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an idempotent action",
    label = "`.idempotent(..)` needs `impl Idempotent for {Self}`",
    note = "safe to repeat under one key: `Idempotent`; may have happened without an answer: `Ambiguous`; only through the kernel's transaction: `Transactional`"
)]
pub trait Idempotent<B: Binding = AnyStore>: Send + Sync + 'static {
    /// What authors write as the step's key.
    const NAME: &'static str;
    /// What it does, for authors.
    const ABOUT: &'static str = "";
    /// The step's config.
    type Input: ActionInput;
    /// What the step yields.
    type Output: ActionOutput;

    /// Does the work. May run again under the same effect key until its outcome is recorded, and may be dropped at
    /// any await when the lease is lost.
    fn run(
        &self,
        cx: &IdempotentCx<B>,
        input: Self::Input,
    ) -> impl Future<Output = ActionResult<Self::Output>> + Send;

    /// Previews the work, for dry runs. Must change nothing.
    fn plan(
        &self,
        cx: &StepCx,
        input: &Self::Input,
    ) -> impl Future<Output = PlanResult<Self::Output>> + Send;

    /// Whether the run's actor may do this. Asked before each execution of `run`.
    fn authorize(
        &self,
        _cx: &StepCx,
        _input: &Self::Input,
    ) -> impl Future<Output = ActionResult<Access>> + Send {
        async { Ok(Access::Allowed) }
    }

    /// What one call charges to the effect budget.
    fn cost(&self, _input: &Self::Input) -> Cost {
        Cost::none()
    }

    /// When a failed attempt is tried again.
    fn retry(&self) -> RetryPolicy {
        RetryPolicy::default()
    }
}

/// May have happened even if no answer came. Called once; after that only `reconcile` is.
///
/// ```
/// use surefoot_language::{
///     Ambiguous, AmbiguousCx, AmbiguousResult, AmbiguousResultExt, Planned, PlanResult, Reconciled,
///     ReconcileResult, StepCx,
/// };
/// # struct Bank;
/// # impl Bank {
/// #     async fn connect(&self) -> Result<&Self, std::io::Error> { Ok(self) }
/// #     async fn pay(&self, _: &str, _: i64) -> Result<String, std::io::Error> { Ok("r1".into()) }
/// #     async fn find(&self, _: &str) -> Result<Option<String>, std::io::Error> { Ok(None) }
/// # }
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Order { cents: i64 }
///
/// struct Pay { bank: Bank }
/// impl Ambiguous for Pay {
///     const NAME: &'static str = "pay";
///     type Input = Order;
///     type Output = String;
///     async fn run(&self, cx: &AmbiguousCx, order: Order) -> AmbiguousResult<String> {
///         let bank = self.bank.connect().await.or_nothing_happened("BANK_UNREACHABLE")?;
///         Ok(bank.pay(cx.effect_key().as_str(), order.cents).await?) // an error here: outcome unknown
///     }
///     async fn reconcile(&self, cx: &AmbiguousCx, _: Order) -> ReconcileResult<String> {
///         Ok(match self.bank.find(cx.effect_key().as_str()).await? {
///             Some(receipt) => Reconciled::Succeeded(receipt),
///             None => Reconciled::NotFound, // asked again until `SETTLE_AFTER`
///         })
///     }
///     async fn plan(&self, _: &StepCx, order: &Order) -> PlanResult<String> {
///         Ok(Planned::new(format!("Pay {} cents", order.cents)))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an ambiguous action",
    label = "`.ambiguous(..)` needs `impl Ambiguous for {Self}`, with `run`, `plan` and `reconcile`"
)]
pub trait Ambiguous<B: Binding = AnyStore>: Send + Sync + 'static {
    /// What authors write as the step's key.
    const NAME: &'static str;
    /// What it does, for authors.
    const ABOUT: &'static str = "";
    /// How long after the call an answer of [`Reconciled::NotFound`](crate::Reconciled::NotFound) proves nothing:
    /// longer than any request of a slow worker can still be on its way. Never under two leases.
    const SETTLE_AFTER: Duration = SETTLE_AFTER;
    /// Whether `authorize` or `cost` are written. `false` promises that neither is, and then neither is ever called;
    /// in return the outcome of the step before and the mark of this one are written in one commit, since nothing of
    /// the application's stands between the two.
    const GUARDED: bool = true;
    /// The step's config.
    type Input: ActionInput;
    /// What the step yields.
    type Output: ActionOutput;

    /// Does the work. Called at most once per mark; may be dropped at any await when the lease is lost.
    fn run(
        &self,
        cx: &AmbiguousCx<B>,
        input: Self::Input,
    ) -> impl Future<Output = AmbiguousResult<Self::Output>> + Send;

    /// Asks the provider what became of `cx.effect_key()`. Must not repeat the effect.
    fn reconcile(
        &self,
        cx: &AmbiguousCx<B>,
        input: Self::Input,
    ) -> impl Future<Output = ReconcileResult<Self::Output>> + Send;

    /// Previews the work, for dry runs. Must change nothing.
    fn plan(
        &self,
        cx: &StepCx,
        input: &Self::Input,
    ) -> impl Future<Output = PlanResult<Self::Output>> + Send;

    /// Whether the run's actor may do this. Asked before `run`, not before `reconcile`, and never of an action that is
    /// not [`GUARDED`](Self::GUARDED).
    fn authorize(
        &self,
        _cx: &StepCx,
        _input: &Self::Input,
    ) -> impl Future<Output = ActionResult<Access>> + Send {
        async { Ok(Access::Allowed) }
    }

    /// What one call charges to the effect budget. Nothing, unless the action is [`GUARDED`](Self::GUARDED).
    fn cost(&self, _input: &Self::Input) -> Cost {
        Cost::none()
    }

    /// When an attempt that did nothing is tried again.
    fn retry(&self) -> RetryPolicy {
        RetryPolicy::default()
    }
}

/// An event type of the application, and the trigger that authors write for it.
///
/// ```
/// use surefoot_language::Trigger;
///
/// #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
/// struct StockLow { item: String, missing: i64 }
/// impl Trigger for StockLow {
///     const KIND: &'static str = "stockLow";
///     const EVENT: &'static str = "inventory.stockLow";
/// }
/// let low = StockLow { item: "bolt".to_owned(), missing: 30 }.event().dedupe_key("bolt:2026-11-29");
/// assert_eq!(low.kind(), "inventory.stockLow");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a trigger",
    label = "`.trigger::<{Self}>()` needs `impl Trigger for {Self}`, with `KIND` and `EVENT`"
)]
pub trait Trigger: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The key under `triggers:`.
    const KIND: &'static str;
    /// The namespaced event type.
    const EVENT: &'static str;

    /// This occurrence, ready to be emitted.
    fn event(&self) -> Event {
        Event::new(Self::EVENT, self)
    }
}
