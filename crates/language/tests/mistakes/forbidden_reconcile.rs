#![expect(unused, reason = "only what rustc says about the mistake matters here")]

use schemars::JsonSchema;
use serde::Deserialize;
use surefoot_language::{
    ActionResult, AmbiguousCx, Idempotent, IdempotentCx, PlanResult, Planned, ReconcileResult,
    Reconciled, StepCx,
};

#[derive(Deserialize, JsonSchema)]
struct Order {
    item: String,
}

struct Mail;
impl Idempotent for Mail {
    const NAME: &'static str = "mail";
    type Input = Order;
    type Output = ();
    async fn run(&self, _: &IdempotentCx, _: Order) -> ActionResult<()> {
        Ok(())
    }
    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<()> {
        Ok(Planned::new(""))
    }
    async fn reconcile(&self, _: &AmbiguousCx, _: Order) -> ReconcileResult<()> {
        Ok(Reconciled::NotFound)
    }
}

fn main() {}
