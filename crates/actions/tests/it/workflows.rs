//! Whole workflows with ready-made actions.

use serde_json::{Value, json};
use surefoot_actions::http::{HttpCall, HttpRequest};
use surefoot_kernel_core::{Event, RunState};
use surefoot_language::Module;
use surefoot_testkit::{Bench, Crash};

use crate::server::{CANARY, NUMBERS, Server, TOO_LARGE, client};

const PAY: &str = r#"
inputs:
  base: { type: text, required: true }
steps:
  - httpRequest:
      method: POST
      url: "${{ inputs.base }}/pay"
      headers: { Authorization: { secret: KEY, prefix: "Bearer " } }
      json: { cents: 100 }
      confirm:
        url: "${{ inputs.base }}/payments/{effectKey}"
        succeeded: "status == 200 && body.state == 'paid'"
    saveAs: payment
  - httpCall:
      method: POST
      url: "${{ inputs.base }}/echo"
      headers: { Authorization: { secret: KEY } }
      json: { receipt: "${{ payment.body.id }}" }
"#;

fn module() -> Module {
    Module::builder("http", 1)
        .ambiguous(HttpRequest::new(client()))
        .idempotent(HttpCall::new(client()))
        .build()
        .unwrap()
}

async fn run(server: &Server, crash: Option<Crash>) -> surefoot_testkit::End {
    let bench = Bench::in_memory(module());
    bench.publish("pay", PAY).await;
    if let Some(crash) = crash {
        bench.crash(crash);
    }
    bench.run_to_end(Event::start("pay", json!({ "base": server.url("") }))).await
}

#[tokio::test]
async fn a_payment_is_made_once_wherever_the_worker_dies() {
    for crash in [
        None,
        Some(Crash::AfterEffectOf("httpRequest")),
        Some(Crash::AfterOutcomeOf("httpRequest")),
        Some(Crash::AfterEffectOf("httpCall")),
    ] {
        let server = Server::start().await;
        let end = run(&server, crash.clone()).await;
        assert_eq!(end.state, RunState::Succeeded, "{crash:?}: {}", end.explain());
        let paid = server.paid();
        assert_eq!(paid.len(), 1, "{crash:?}");
        let receipt = format!("re_{}", &paid[0][..8]);
        let echoed = server.hits();
        let echoed = echoed.iter().filter(|hit| hit.target == "/echo");
        assert!(echoed.clone().all(|hit| hit.body.contains(&receipt)));
        // What may be repeated is repeated under one key.
        let keys: std::collections::BTreeSet<_> =
            echoed.map(|hit| hit.headers.get("idempotency-key").unwrap().clone()).collect();
        assert_eq!(keys.len(), 1);
        assert_eq!(end.charged("httpRequests").to_string(), "2");
        let shown = format!("{end:?}{}", end.explain());
        assert!(!shown.contains(CANARY) && !shown.contains("canary"), "{shown}");
    }
}

/// Nobody can tell a request that was never sent from one that is still on its way: when its time is over, a person is
/// asked. It is not sent again.
#[tokio::test]
async fn a_request_that_was_marked_and_never_seen_is_not_sent_again() {
    let server = Server::start().await;
    let end = run(&server, Some(Crash::AfterMarkOf("httpRequest"))).await;
    assert_eq!(end.state, RunState::NeedsAttention, "{}", end.explain());
    assert_eq!(server.paid().len(), 0);
    assert!(server.hits().iter().all(|hit| hit.target.starts_with("/payments/")));
}

const NUMBERED: &str = r#"
inputs:
  base: { type: text, required: true }
steps:
  - httpRequest: { url: "${{ inputs.base }}/numbers" }
    saveAs: numbers
  - httpCall: { method: POST, url: "${{ inputs.base }}/echo", json: "${{ numbers.body }}" }
  - httpCall: { url: "${{ inputs.base }}/echo", query: { id: "${{ numbers.body.id }}" } }
  - httpCall: { url: "${{ inputs.base }}/too-large" }
"#;

/// Covers field fault 100.
#[tokio::test]
async fn large_numbers_of_an_answer_are_sent_on_as_they_came() {
    let server = Server::start().await;
    let bench = Bench::in_memory(module());
    bench.publish("numbered", NUMBERED).await;
    let start = Event::start("numbered", json!({ "base": server.url("") }));
    let end = bench.run_to_end(start).await;
    assert_eq!(end.state, RunState::Succeeded, "{}", end.explain());
    let answer: Value = end.step("httpRequest").output();
    let numbers: Value = serde_json::from_str(NUMBERS).unwrap();
    assert_eq!((&answer["encoding"], &answer["body"]), (&json!("json"), &numbers));
    let hits = server.hits();
    let (sent, asked) = (&hits[1], &hits[2]);
    for digits in
        ["-9223372036854775808", "18446744073709551615", "9007199254740993", "0.1,", "5e-324"]
    {
        assert!(sent.body.contains(digits), "{digits}: {}", sent.body);
    }
    assert_eq!(serde_json::from_str::<Value>(&sent.body).unwrap(), numbers);
    assert_eq!(asked.target, "/echo?id=9007199254740993");
    // What does not fit is not rounded: it stays a text, and says so.
    let last: Value = end.steps("httpCall")[2].output();
    assert_eq!((&last["encoding"], &last["body"]), (&json!("text"), &json!(TOO_LARGE)));
}

/// One step whose place for a secret is filled by data: of an event, or of another server's answer.
const NAMED_BY_DATA: [&str; 7] = [
    r#"httpCall: { method: POST, url: "${{ inputs.base }}/echo", json: "${{ inputs.data }}" }"#,
    r#"httpCall: { method: POST, url: "${{ inputs.base }}/echo", json: { deep: [{ it: "${{ inputs.data }}" }] } }"#,
    r#"httpCall: { method: POST, url: "${{ inputs.base }}/echo", json: { it: { secret: "${{ inputs.name }}" } } }"#,
    r#"httpCall: { url: "${{ inputs.base }}/echo", headers: { X: "${{ inputs.data }}" } }"#,
    r#"httpCall: { url: "${{ inputs.base }}/echo", query: { q: { secret: "${{ inputs.name }}" } } }"#,
    r#"httpRequest: { method: POST, url: "${{ inputs.base }}/echo", json: { a: 1, it: "${{ inputs.data }}" } }"#,
    r#"httpRequest: { url: "${{ inputs.base }}/echo", confirm: { url: "${{ inputs.base }}", query: { q: "${{ inputs.data }}" } } }"#,
];

#[tokio::test]
async fn data_names_no_secret() {
    let server = Server::start().await;
    let start = json!({ "base": server.url(""), "data": { "secret": "KEY" }, "name": "KEY" });
    for step in NAMED_BY_DATA {
        let bench = Bench::in_memory(module());
        let inputs = "{ base: { type: text, required: true }, data: { type: object }, name: { type: text } }";
        bench.publish("leak", &format!("inputs: {inputs}\nsteps:\n  - {step}\n")).await;
        let end = bench.run_to_end(Event::start("leak", start.clone())).await;
        assert_eq!(end.state, RunState::Failed, "{step}: {}", end.explain());
        assert!(end.explain().to_string().contains("named by data"), "{step}: {}", end.explain());
    }
    assert_eq!(server.hits().len(), 0);
}

#[tokio::test]
async fn data_does_not_say_what_counts_as_done() {
    let server = Server::start().await;
    let bench = Bench::in_memory(module());
    let source = r#"
inputs: { base: { type: text, required: true }, state: { type: text } }
steps:
  - httpRequest:
      method: POST
      url: "${{ inputs.base }}/pay"
      confirm: { url: "${{ inputs.base }}/payments/{effectKey}", succeeded: "body.state == '${{ inputs.state }}'" }
"#;
    bench.publish("judge", source).await;
    let start = json!({ "base": server.url(""), "state": "' || true || '" });
    let end = bench.run_to_end(Event::start("judge", start)).await;
    assert_eq!(end.state, RunState::Failed, "{}", end.explain());
    assert!(end.explain().to_string().contains("confirm.succeeded"), "{}", end.explain());
    assert_eq!(server.hits().len(), 0);
}
