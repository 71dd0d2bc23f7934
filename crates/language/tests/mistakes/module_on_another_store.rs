#![expect(unused, reason = "only what rustc says about the mistake matters here")]

use schemars::JsonSchema;
use serde::Deserialize;
use surefoot_language::{
    ActionResult, Module, PlanResult, Planned, RunsOn, StepCx, Transactional, TransactionalCx,
};

#[derive(Deserialize, JsonSchema)]
struct Order {
    item: String,
}

/// Stands for the transactions of one store.
struct SqliteConnection;
/// Stands for the transactions of another one.
struct PgConnection;

struct Book;
impl Transactional<SqliteConnection> for Book {
    const NAME: &'static str = "book";
    type Input = Order;
    type Output = ();
    async fn run(
        &self,
        _: &mut TransactionalCx<'_, SqliteConnection>,
        _: Order,
    ) -> ActionResult<()> {
        Ok(())
    }
    async fn plan(&self, _: &StepCx, _: &Order) -> PlanResult<()> {
        Ok(Planned::new(""))
    }
}

/// Stands for `kernel.worker(module)` with a store of Postgres.
fn worker<B: RunsOn<PgConnection>>(_: Module<B>) {}

fn main() {
    let module = Module::builder("inventory", 1).transactional(Book).build().unwrap();
    worker(module);
}
