//! The scenario that comes with the kit: actions of all four classes, a branch, a loop, a wait.

use std::marker::PhantomData;

use serde::{Deserialize, Serialize};
use surefoot_kernel_core::{Amounts, Dependency, Failure, Micros, Signal, TxStore};
use surefoot_language::{
    ActionResult, Ambiguous, AmbiguousCx, AmbiguousResult, Cost, Idempotent, IdempotentCx, Module,
    On, PlanResult, Planned, Pure, PureCx, ReconcileResult, Reconciled, StepCx, Transactional,
    TransactionalCx,
};

use super::attended::Ask;
use super::people::nothing_happened;
use super::{Did, LEASE, Process, Reply, Scenario, TxOf, Verb};
use crate::suite::StoreFactory;

const SOURCE: &str = "
steps:
  - weigh: { step: steps.0, boxes: 2 }
    saveAs: load
  - book: { boxes: '${{ size(load.boxes) }}' }
  - if: '${{ load.weight > 40 }}'
    then:
      - mail: { to: hub }
      - waitFor: { kind: approval, key: bolt }
        saveAs: approval
      - book: { boxes: '${{ approval.data.boxes }}' }
  - forEach: '${{ load.boxes }}'
    as: box
    do:
      - pay: { cents: '${{ box }}' }
        saveAs: receipt
      - mail: { to: '${{ receipt }}' }
  - note: { boxes: '${{ size(load.boxes) }}' }
  - weigh: { step: steps.5, boxes: 1 }
";

/// Actions of all four classes, one of them with a transaction of its own behind the fence, a branch, a loop, a wait.
/// All but that one charge the run's budget.
#[derive(Debug)]
pub struct EveryClass<F>(PhantomData<fn() -> F>);

impl<F> EveryClass<F> {
    /// The scenario.
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<F> Default for EveryClass<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: StoreFactory> Scenario<F> for EveryClass<F> {
    type Binding = On<TxOf<F>>;

    fn module(&self, process: &Process<F>) -> Module<On<TxOf<F>>> {
        module(process)
    }

    fn workflows(&self) -> &[(&str, &str)] {
        &[("scenario", SOURCE)]
    }

    fn budget(&self) -> Amounts {
        Amounts::default()
    }

    fn reply(&self, on: &Dependency) -> Option<Reply> {
        let data = serde_json::json!({ "boxes": 7 });
        let signal = || Reply::Signal(Signal::new(on.kind(), on.key()).data(data));
        (on.kind() == "approval").then(signal)
    }

    fn attend(&self, error: &Failure, _: &[Did]) -> Option<Verb> {
        nothing_happened(error)
    }
}

/// The actions.
#[expect(clippy::panic, reason = "a scenario whose module is wrong cannot be tested")]
pub(super) fn module<F: StoreFactory>(process: &Process<F>) -> Module<On<TxOf<F>>> {
    let built = Module::builder("matrix", 1)
        .pure(Weigh(process.clone()))
        .transactional(Book(process.clone()))
        .idempotent(Mail(process.clone()))
        .idempotent(Note(process.clone()))
        .ambiguous(Pay(process.clone()))
        .ambiguous(Ask(process.clone()))
        .build();
    built.unwrap_or_else(|wrong| panic!("{wrong}"))
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Boxes {
    boxes: i64,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Weighing {
    step: String,
    boxes: i64,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Load {
    weight: i64,
    boxes: Vec<i64>,
}

struct Weigh<F: StoreFactory>(Process<F>);

impl<F: StoreFactory> Pure for Weigh<F> {
    const NAME: &'static str = "weigh";
    type Input = Weighing;
    type Output = Load;

    fn run(&self, _: &PureCx, input: Weighing) -> ActionResult<Load> {
        self.0.called_pure(&input.step);
        let boxes: Vec<i64> = (1..=input.boxes.clamp(0, 10)).collect();
        Ok(Load { weight: input.boxes.saturating_mul(21), boxes })
    }
}

/// Writes a row on the kernel's transaction.
struct Book<F: StoreFactory>(Process<F>);

impl<F: StoreFactory> Transactional<TxOf<F>> for Book<F> {
    const NAME: &'static str = "book";
    type Input = Boxes;
    type Output = i64;

    async fn run(&self, cx: &mut TransactionalCx<'_, TxOf<F>>, input: Boxes) -> ActionResult<i64> {
        let row = self.0.called_transactional(cx);
        F::write_row(cx.tx(), &row, "booked").await?;
        Ok(input.boxes)
    }

    async fn plan(&self, _: &StepCx, input: &Boxes) -> PlanResult<i64> {
        Ok(Planned::new(format!("Book {} boxes", input.boxes)))
    }

    fn cost(&self, _: &Boxes) -> Cost {
        Cost::of("effects", 1)
    }
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Letter {
    to: String,
}

/// Takes its time, and says so to the kernel.
struct Mail<F: StoreFactory>(Process<F>);

impl<F: StoreFactory> Idempotent for Mail<F> {
    const NAME: &'static str = "mail";
    type Input = Letter;
    type Output = String;

    async fn run(&self, cx: &IdempotentCx, input: Letter) -> ActionResult<String> {
        self.0.take(Micros::from_secs(1));
        cx.heartbeat().await?;
        self.0.called_idempotent(cx, cx.effect_key());
        Ok(format!("sent to {}", input.to))
    }

    async fn plan(&self, _: &StepCx, input: &Letter) -> PlanResult<String> {
        Ok(Planned::new(format!("Write to {}", input.to)))
    }

    fn cost(&self, _: &Letter) -> Cost {
        Cost::of("effects", 1)
    }
}

/// Writes to the application's table in a transaction of its own, behind the fence.
struct Note<F: StoreFactory>(Process<F>);

impl<F: StoreFactory> Idempotent<On<TxOf<F>>> for Note<F> {
    const NAME: &'static str = "note";
    type Input = Boxes;
    type Output = i64;

    async fn run(&self, cx: &IdempotentCx<On<TxOf<F>>>, input: Boxes) -> ActionResult<i64> {
        self.0.called_idempotent(cx, cx.effect_key());
        let store = self.0.store();
        let mut tx = store.begin().await?;
        cx.heartbeat_in(&mut tx).await?;
        self.0.passed_fence(cx, cx.effect_key());
        F::write_row(&mut tx, cx.effect_key().as_str(), "noted").await?;
        store.commit(tx).await?;
        Ok(input.boxes)
    }

    async fn plan(&self, _: &StepCx, input: &Boxes) -> PlanResult<i64> {
        Ok(Planned::new(format!("Note {} boxes", input.boxes)))
    }
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Bill {
    cents: i64,
}

struct Pay<F: StoreFactory>(Process<F>);

impl<F: StoreFactory> Ambiguous for Pay<F> {
    const NAME: &'static str = "pay";
    const SETTLE_AFTER: std::time::Duration =
        std::time::Duration::from_micros(LEASE.get().unsigned_abs().saturating_mul(2));
    type Input = Bill;
    type Output = String;

    async fn run(&self, cx: &AmbiguousCx, input: Bill) -> AmbiguousResult<String> {
        self.0.called_ambiguous(cx, cx.effect_key());
        Ok(format!("paid {}", input.cents))
    }

    async fn reconcile(&self, cx: &AmbiguousCx, input: Bill) -> ReconcileResult<String> {
        Ok(match self.0.asked(cx, cx.effect_key()) {
            true => Reconciled::Succeeded(format!("paid {}", input.cents)),
            false => Reconciled::NotFound,
        })
    }

    async fn plan(&self, _: &StepCx, input: &Bill) -> PlanResult<String> {
        Ok(Planned::new(format!("Pay {} cents", input.cents)))
    }

    fn cost(&self, _: &Bill) -> Cost {
        Cost::of("effects", 1)
    }
}
