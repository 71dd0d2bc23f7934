//! The application of a simulation: actions of all four classes, and a provider that is lossy and late.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Deserialize;
use surefoot_kernel_core::{EffectClass, EffectKey, TxStore};
use surefoot_language::{
    ActionResult, Ambiguous, AmbiguousCx, AmbiguousResult, AmbiguousStop, Idempotent, IdempotentCx,
    Module, ModuleError, On, PlanResult, Planned, Pure, PureCx, ReconcileResult, Reconciled,
    ResultExt, StepCx, Transactional, TransactionalCx,
};

use super::sky::Sky;
use crate::FaultyStore;
use crate::matrix::{Did, Entry, Provider, TxOf};
use crate::suite::StoreFactory;

/// The workflows, each with its key; the first one is that of an order.
pub(super) const WORKFLOWS: [(&str, &str); 2] = [
    (
        "order",
        "
inputs:
  order: { type: text, required: true }
steps:
  - weigh: { boxes: 2 }
    saveAs: load
  - book: { order: '${{ inputs.order }}' }
  - pay: { cents: 250 }
    timeout: 20s
    catch:
      - mail: { to: '${{ error.code }}' }
        timeout: 20s
  - waitFor: { kind: approval, key: '${{ inputs.order }}', timeout: 2m }
  - runWorkflows:
      workflow: parcel
      each: '${{ load }}'
      as: box
      inputs: { box: '${{ box }}' }
  - forEach: '${{ load }}'
    as: box
    do:
      - mail: { to: '${{ inputs.order }}' }
        timeout: 20s
  - note: { order: '${{ inputs.order }}' }
",
    ),
    (
        "parcel",
        "
inputs:
  box: { type: number, required: true }
steps:
  - pay: { cents: '${{ inputs.box }}' }
    timeout: 20s
",
    ),
];
/// The step that books.
pub(super) const BOOK: &str = "steps.1";
/// The step that notes.
pub(super) const NOTE: &str = "steps.6";
/// The code of a payment that the provider declines.
pub(super) const DECLINED: &str = "CARD_DECLINED";

/// How long the provider's `NotFound` proves nothing: longer than a lease, a slow call and a late request.
pub(super) const SETTLE_AFTER: Duration = Duration::from_secs(150);
/// No request is on its way for longer.
const LATE_MS: u64 = 30_000;

/// What the actions of one process work with.
pub(super) struct Desk<F: StoreFactory> {
    pub(super) sky: Arc<Sky<F>>,
    pub(super) provider: Provider,
    pub(super) process: usize,
    pub(super) store: FaultyStore<F::Store>,
    /// Numbers all requests and writes of all processes.
    pub(super) count: Arc<AtomicU64>,
}

impl<F: StoreFactory> Clone for Desk<F> {
    fn clone(&self) -> Self {
        Self {
            sky: self.sky.clone(),
            provider: self.provider.clone(),
            process: self.process,
            store: self.store.clone(),
            count: self.count.clone(),
        }
    }
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    Unreachable,
    Lost,
    AnswerLost,
    Late(u64),
    Hangs,
}

/// What a request came to, where there is an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answered {
    Done,
    Declined,
}

/// Why a request has no answer.
enum NoAnswer {
    NothingSent,
    NobodyKnows,
}

impl<F: StoreFactory> Desk<F> {
    pub(super) fn module(&self) -> Result<Module<On<TxOf<F>>>, ModuleError> {
        Module::builder("shop", 1)
            .pure(Weigh)
            .transactional(Book(self.clone()))
            .idempotent(Mail(self.clone()))
            .idempotent(Note(self.clone()))
            .ambiguous(Pay(self.clone()))
            .build()
    }

    fn log(&self, class: EffectClass, cx: &StepCx, key: Option<&EffectKey>, did: Did) {
        let process = u32::try_from(self.process).unwrap_or(u32::MAX);
        let (run, step, key) = (Some(cx.run_id()), cx.step_key().clone(), key.cloned());
        self.provider.add(Entry { process, class, run, step, key, did });
    }

    /// Completes unless the process is dead: whatever of it is still there reaches nobody any more.
    async fn lives(&self) {
        if self.store.plan().is_dead() {
            std::future::pending::<()>().await;
        }
    }

    fn answer(&self, class: EffectClass, key: &EffectKey) -> Answered {
        let is_declined = class == EffectClass::Ambiguous && self.sky.script.declines(key);
        if is_declined { Answered::Declined } else { Answered::Done }
    }

    /// Carries an effect out, unless it is declined; one of an idempotent action only once.
    fn carry_out(&self, class: EffectClass, cx: &StepCx, key: &EffectKey) {
        if self.answer(class, key) == Answered::Declined {
            return;
        }
        if class == EffectClass::Ambiguous || !self.provider.knows(key) {
            self.log(class, cx, Some(key), Did::CarriedOut);
        }
    }

    fn fate(&self) -> (Fate, u64) {
        let nth = self.count.fetch_add(1, Ordering::SeqCst);
        let mut dice = self.sky.dice(&[1_000, nth]);
        let travel = 5 + dice.below(200);
        if self.sky.is_calm() || dice.below(1_000) >= self.sky.script.provider_faults {
            return (Fate::Answered, travel);
        }
        let fate = match dice.below(5) {
            0 => Fate::Unreachable,
            1 => Fate::Lost,
            2 => Fate::AnswerLost,
            3 => Fate::Late(dice.below(LATE_MS)),
            _ => Fate::Hangs,
        };
        (fate, travel)
    }

    async fn request(
        &self,
        class: EffectClass,
        cx: &StepCx,
        key: &EffectKey,
    ) -> Result<Answered, NoAnswer> {
        self.lives().await;
        self.log(class, cx, Some(key), Did::Called);
        self.sky.thaw(self.process).await;
        self.lives().await;
        let (fate, travel) = self.fate();
        if fate == Fate::Unreachable {
            return Err(NoAnswer::NothingSent);
        }
        tokio::time::sleep(Duration::from_millis(travel)).await;
        match fate {
            Fate::Lost | Fate::Unreachable => {}
            Fate::Answered | Fate::AnswerLost | Fate::Hangs => {
                self.carry_out(class, cx, key);
            }
            Fate::Late(ms) => {
                let (desk, cx, key) = (self.clone(), cx.clone(), key.clone());
                // What is under way arrives, whoever dies meanwhile.
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    desk.carry_out(class, &cx, &key);
                });
            }
        }
        if fate == Fate::Hangs {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_millis(travel)).await;
        self.sky.thaw(self.process).await;
        if fate == Fate::Answered {
            Ok(self.answer(class, key))
        } else {
            Err(NoAnswer::NobodyKnows)
        }
    }
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Boxes {
    boxes: i64,
}

struct Weigh;

impl Pure for Weigh {
    const NAME: &'static str = "weigh";
    type Input = Boxes;
    type Output = Vec<i64>;

    fn run(&self, _: &PureCx, input: Boxes) -> ActionResult<Vec<i64>> {
        Ok((1..=input.boxes.clamp(0, 10)).collect())
    }
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Order {
    order: String,
}

/// Writes a row that no other call writes, on the kernel's transaction.
struct Book<F: StoreFactory>(Desk<F>);

impl<F: StoreFactory> Transactional<TxOf<F>> for Book<F> {
    const NAME: &'static str = "book";
    type Input = Order;
    type Output = String;

    async fn run(
        &self,
        cx: &mut TransactionalCx<'_, TxOf<F>>,
        input: Order,
    ) -> ActionResult<String> {
        let nth = self.0.count.fetch_add(1, Ordering::SeqCst);
        let row = format!("{} {} {nth}", cx.run_id(), cx.step_key());
        self.0.log(EffectClass::Transactional, cx, None, Did::Wrote(row.clone()));
        F::write_row(cx.tx(), &row, &input.order).await?;
        Ok(input.order)
    }

    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<String> {
        Ok(Planned::new("Book"))
    }
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Letter {
    to: String,
}

struct Mail<F: StoreFactory>(Desk<F>);

impl<F: StoreFactory> Idempotent for Mail<F> {
    const NAME: &'static str = "mail";
    type Input = Letter;
    type Output = String;

    async fn run(&self, cx: &IdempotentCx, input: Letter) -> ActionResult<String> {
        let sent = self.0.request(EffectClass::Idempotent, cx, cx.effect_key()).await;
        sent.map_err(|_| "the provider did not answer").or_retry("MAIL_BUSY")?;
        Ok(input.to)
    }

    async fn plan(&self, _: &StepCx, _: &Letter) -> PlanResult<String> {
        Ok(Planned::new("Write"))
    }
}

/// Writes to a table of the application's own, behind the fence.
struct Note<F: StoreFactory>(Desk<F>);

impl<F: StoreFactory> Idempotent<On<TxOf<F>>> for Note<F> {
    const NAME: &'static str = "note";
    type Input = Order;
    type Output = String;

    async fn run(&self, cx: &IdempotentCx<On<TxOf<F>>>, input: Order) -> ActionResult<String> {
        let store = &self.0.store;
        let mut tx = store.begin().await.or_retry("NOTE_BUSY")?;
        cx.heartbeat_in(&mut tx).await.or_retry("NOTE_BUSY")?;
        F::write_row(&mut tx, cx.effect_key().as_str(), "noted").await?;
        store.commit(tx).await.or_retry("NOTE_BUSY")?;
        Ok(input.order)
    }

    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<String> {
        Ok(Planned::new("Note"))
    }
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Bill {
    cents: i64,
}

struct Pay<F: StoreFactory>(Desk<F>);

impl<F: StoreFactory> Ambiguous for Pay<F> {
    const NAME: &'static str = "pay";
    const SETTLE_AFTER: Duration = SETTLE_AFTER;
    type Input = Bill;
    type Output = i64;

    async fn run(&self, cx: &AmbiguousCx, input: Bill) -> AmbiguousResult<i64> {
        match self.0.request(EffectClass::Ambiguous, cx, cx.effect_key()).await {
            Ok(Answered::Done) => Ok(input.cents),
            Ok(Answered::Declined) => Err(AmbiguousStop::refused(DECLINED, "the bank declines")),
            Err(NoAnswer::NothingSent) => {
                Err(AmbiguousStop::nothing_happened_retry("BANK_AWAY", "the bank is away"))
            }
            Err(NoAnswer::NobodyKnows) => {
                Err(AmbiguousStop::may_have_happened("the bank did not answer"))
            }
        }
    }

    async fn reconcile(&self, cx: &AmbiguousCx, input: Bill) -> ReconcileResult<i64> {
        let key = cx.effect_key();
        self.0.lives().await;
        self.0.sky.thaw(self.0.process).await;
        self.0.lives().await;
        let (fate, travel) = self.0.fate();
        tokio::time::sleep(Duration::from_millis(travel)).await;
        self.0.log(EffectClass::Ambiguous, cx, Some(key), Did::Asked);
        let knows = self.0.provider.knows(key);
        let done = self.0.provider.done(key);
        if fate != Fate::Answered {
            Err("the bank did not answer a question")?;
        }
        // A bank knows what it declined once it was asked for it.
        let is_declined = self.0.sky.script.declines(key) && done.contains(&Did::Called);
        Ok(match (knows, is_declined) {
            (true, _) => Reconciled::Succeeded(input.cents),
            (false, true) => Reconciled::failed(DECLINED, "the bank declined"),
            (false, false) => Reconciled::NotFound,
        })
    }

    async fn plan(&self, _: &StepCx, _: &Bill) -> PlanResult<i64> {
        Ok(Planned::new("Pay"))
    }
}
