#![expect(unused, reason = "only what rustc says about the mistake matters here")]

use schemars::JsonSchema;
use serde::Deserialize;
use surefoot_language::{ActionResult, Idempotent, IdempotentCx, PlanResult, Planned, StepCx};

#[derive(Deserialize, JsonSchema)]
struct Order {
    item: String,
}

struct Archive;
impl Idempotent for Archive {
    const NAME: &'static str = "archive";
    type Input = Order;
    type Output = ();
    async fn run(&self, cx: &IdempotentCx, _: Order) -> ActionResult<()> {
        let mut tx = ();
        cx.heartbeat_in(&mut tx).await?;
        Ok(())
    }
    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<()> {
        Ok(Planned::new(""))
    }
}

fn main() {}
