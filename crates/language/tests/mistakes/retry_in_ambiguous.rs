#![expect(unused, reason = "only what rustc says about the mistake matters here")]

use schemars::JsonSchema;
use serde::Deserialize;
use surefoot_language::{
    Ambiguous, AmbiguousCx, AmbiguousResult, PlanResult, Planned, ReconcileResult, Reconciled,
    ResultExt, StepCx,
};

#[derive(Deserialize, JsonSchema)]
struct Order {
    item: String,
}

struct Pay;
impl Ambiguous for Pay {
    const NAME: &'static str = "pay";
    type Input = Order;
    type Output = ();
    async fn run(&self, _: &AmbiguousCx, _: Order) -> AmbiguousResult<()> {
        std::fs::read("key").or_retry("NO_KEY")?;
        Ok(())
    }
    async fn reconcile(&self, _: &AmbiguousCx, _: Order) -> ReconcileResult<()> {
        Ok(Reconciled::NotFound)
    }
    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<()> {
        Ok(Planned::new(""))
    }
}

fn main() {}
