#![expect(unused, reason = "only what rustc says about the mistake matters here")]

use schemars::JsonSchema;
use serde::Deserialize;
use surefoot_language::{ActionResult, Pure, PureCx};

#[derive(Deserialize)]
struct Bare {
    item: String,
}

struct Size;
impl Pure for Size {
    const NAME: &'static str = "size";
    type Input = Bare;
    type Output = usize;
    fn run(&self, _: &PureCx, bare: Bare) -> ActionResult<usize> {
        Ok(bare.item.len())
    }
}

fn main() {}
