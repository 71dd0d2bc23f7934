#![expect(unused, reason = "only what rustc says about the mistake matters here")]

use schemars::JsonSchema;
use serde::Deserialize;
use surefoot_language::{ActionResult, Pure, PureCx};

#[derive(Deserialize, JsonSchema)]
struct Order {
    item: String,
}

async fn on_hand(_: &mut u8, item: String) -> ActionResult<usize> {
    Ok(item.len())
}

struct Look;
impl Pure for Look {
    const NAME: &'static str = "look";
    type Input = Order;
    type Output = usize;
    fn run(&self, cx: &PureCx, order: Order) -> ActionResult<usize> {
        Ok(on_hand(cx.tx(), order.item).await?)
    }
}

fn main() {}
