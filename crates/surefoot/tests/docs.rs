//! Every workflow of the page for authors ends as the page says.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use surefoot::prelude::*;
use surefoot::testkit::Bench;

const PAGE: &str = include_str!("../../../docs/authoring.md");

#[derive(Deserialize, JsonSchema)]
struct Order {
    pieces: i64,
}

#[derive(Serialize, JsonSchema)]
struct Price {
    cents: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Mail {
    to: String,
    subject: String,
}

#[derive(Deserialize, JsonSchema)]
struct Charge {
    cents: i64,
}

/// What stands below a workflow.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    given: Value,
    signal: Option<(String, String, Value)>,
    result: Value,
}

fn module() -> Module<AnyStore> {
    Module::builder("shop", 1)
        .pure_fn("priceOrder", |order: Order| Ok(Price { cents: order.pieces * 250 }))
        .idempotent_fn(
            "sendEmail",
            |mail: &Mail| Planned::new(format!("Write to {}", mail.to)),
            async |_, mail: Mail| Ok(mail.subject),
        )
        .idempotent_fn(
            "chargeCard",
            |charge: &Charge| Planned::new(format!("Charge {} cents", charge.cents)),
            async |_, charge: Charge| match charge.cents {
                ..=100_000 => Ok(charge.cents),
                _ => Err(Stop::fail("CARD_DECLINED", "too much")),
            },
        )
        .build()
        .unwrap()
}

/// The workflows of a page, each with the cases that stand before the next one.
fn workflows(page: &str) -> Vec<(&str, Vec<Case>)> {
    page.split("```yaml\n")
        .skip(1)
        .map(|rest| {
            let (source, rest) = rest.split_once("```").unwrap();
            let cases = rest.split("```json\n").skip(1);
            let cases = cases.map(|it| serde_json::from_str(it.split_once("```").unwrap().0));
            (source, cases.collect::<Result<_, _>>().unwrap())
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn every_workflow_of_the_page_for_authors_ends_as_it_says() {
    let workflows = workflows(PAGE);
    assert_eq!(workflows.len(), PAGE.matches("```yaml").count());
    for (source, cases) in workflows {
        assert!(!cases.is_empty(), "nothing says how this ends:\n{source}");
        for case in cases {
            let bench = Bench::in_memory(module());
            bench.publish("example", source).await;
            if let Some((kind, key, data)) = &case.signal {
                bench.signal_when_waiting(kind, key, data);
            }
            let end = bench.run_to_end(Event::start("example", case.given.clone())).await;
            let Phase::Succeeded { result, .. } = &end.run.phase else {
                panic!("{source}\n{}", end.explain());
            };
            assert_eq!(*result, case.result, "{source}\n{}", end.explain());
        }
    }
}
