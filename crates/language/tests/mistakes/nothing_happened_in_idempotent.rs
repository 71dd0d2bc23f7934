#![expect(unused, reason = "only what rustc says about the mistake matters here")]

use schemars::JsonSchema;
use serde::Deserialize;
use surefoot_language::{
    ActionResult, AmbiguousResultExt, Idempotent, IdempotentCx, PlanResult, Planned, StepCx,
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
        std::fs::read("key").or_nothing_happened("NO_KEY")?;
        Ok(())
    }
    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<()> {
        Ok(Planned::new(""))
    }
}

fn main() {}
