#![expect(unused, reason = "only what rustc says about the mistake matters here")]

use schemars::JsonSchema;
use serde::Deserialize;
use surefoot_language::Module;

#[derive(Deserialize, JsonSchema)]
struct Order {
    item: String,
}

struct Size(usize);

fn main() {
    let _ = Module::builder("inventory", 1)
        .pure_fn("size", |order: Order| Ok(Size(order.item.len())))
        .build();
}
