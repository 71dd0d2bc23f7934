#![expect(unused, reason = "only what rustc says about the mistake matters here")]

use schemars::JsonSchema;
use serde::Deserialize;
use surefoot_language::{ActionResult, Pure, PureCx};

#[derive(Deserialize, JsonSchema)]
struct Order {
    item: String,
}

fn load() -> Result<u8, Box<dyn std::error::Error>> {
    Ok(1)
}

struct Size;
impl Pure for Size {
    const NAME: &'static str = "size";
    type Input = Order;
    type Output = u8;
    fn run(&self, _: &PureCx, _: Order) -> ActionResult<u8> {
        Ok(load()?)
    }
}

fn main() {}
