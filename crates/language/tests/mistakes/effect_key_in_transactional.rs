#![expect(unused, reason = "only what rustc says about the mistake matters here")]

use schemars::JsonSchema;
use serde::Deserialize;
use surefoot_language::{
    ActionResult, PlanResult, Planned, StepCx, Transactional, TransactionalCx,
};

#[derive(Deserialize, JsonSchema)]
struct Order {
    item: String,
}

/// Stands for the transactions of one store.
struct SqliteConnection;

struct Book;
impl Transactional<SqliteConnection> for Book {
    const NAME: &'static str = "book";
    type Input = Order;
    type Output = ();
    async fn run(
        &self,
        cx: &mut TransactionalCx<'_, SqliteConnection>,
        _: Order,
    ) -> ActionResult<()> {
        println!("{}", cx.effect_key());
        Ok(())
    }
    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<()> {
        Ok(Planned::new(""))
    }
}

fn main() {}
