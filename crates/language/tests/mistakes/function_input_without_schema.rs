#![expect(unused, reason = "only what rustc says about the mistake matters here")]

use schemars::JsonSchema;
use serde::Deserialize;
use surefoot_language::Module;

#[derive(Deserialize)]
struct Bare {
    item: String,
}

fn main() {
    let _ =
        Module::builder("inventory", 1).pure_fn("size", |bare: Bare| Ok(bare.item.len())).build();
}
