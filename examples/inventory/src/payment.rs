//! Charging a card: the ambiguous action.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use surefoot::prelude::*;

use crate::bank::{Answer, Bank, Found};

/// What `chargeCard` is given.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct CardCharge {
    /// How much.
    pub cents: i64,
    /// Of what, as in `EUR`.
    pub currency: String,
    /// Which card.
    pub card: String,
}

/// What `chargeCard` yields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Payment {
    /// The provider's own name of the charge.
    pub id: String,
    /// How much was charged.
    pub cents: i64,
}

/// Charges a card through a provider that is reached over a network and has no idea of our transactions.
///
/// The kernel writes down that it is about to call `run` before it does, and it never calls it again while it is open
/// what became of that call: it asks `reconcile` instead.
#[derive(Debug, Clone, Copy)]
pub struct ChargeCard {
    /// The provider.
    pub bank: Bank,
}

impl Ambiguous for ChargeCard {
    const NAME: &'static str = "chargeCard";
    const ABOUT: &'static str = "Charges a card.";
    type Input = CardCharge;
    type Output = Payment;

    async fn run(&self, cx: &AmbiguousCx, charge: CardCharge) -> AmbiguousResult<Payment> {
        // Until a line is open nothing can have happened, and we may say so: the step is tried again later.
        let line = self.bank.connect().await.or_nothing_happened("BANK_UNREACHABLE")?;
        // From here on only a clear answer is an answer. The `?` hands everything else to `reconcile`.
        match line.charge(cx.effect_key(), cx.run_id(), &charge).await? {
            Answer::Charged(receipt) => Ok(Payment { id: receipt.id, cents: receipt.cents }),
            Answer::Declined(why) => Err(AmbiguousStop::refused("CARD_DECLINED", why)),
        }
    }

    async fn reconcile(&self, cx: &AmbiguousCx, _: CardCharge) -> ReconcileResult<Payment> {
        Ok(match self.bank.find(cx.effect_key()).await? {
            Found::Answer(Answer::Charged(receipt)) => {
                Reconciled::Succeeded(Payment { id: receipt.id, cents: receipt.cents })
            }
            Found::Answer(Answer::Declined(why)) => Reconciled::failed("CARD_DECLINED", why),
            // Not the same as "it did not happen": the request may still be on its way.
            Found::Nothing => Reconciled::NotFound,
            Found::CannotTell(why) => Reconciled::unknown(why),
        })
    }

    async fn plan(&self, _: &StepCx, charge: &CardCharge) -> PlanResult<Payment> {
        let CardCharge { cents, currency, card } = charge;
        let summary = format!("Charge {}.{:02} {currency} to {card}", cents / 100, cents % 100);
        Ok(Planned::new(summary))
    }

    fn cost(&self, _: &CardCharge) -> Cost {
        Cost::of("payments", 1)
    }
}
