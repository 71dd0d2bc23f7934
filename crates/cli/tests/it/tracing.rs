//! Traces of what the command line does.

#[path = "../../../otlp/tests/it/receiver.rs"]
mod receiver;

use serde_json::Value;

use self::receiver::{Receiver, Span};
use crate::shell::{Shell, did};

const SOURCE: &str = "
inputs: { of: { type: text, required: true } }
steps:
  - delay: { for: 1ms }
  - emitEvent: { type: order.sent, data: { of: \"${{ inputs.of }}\" } }
";

const COLLECTOR: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

/// From the emit over the claims to the last step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_one_trace_at_the_collector_that_was_named() {
    let receiver = Receiver::start().await;
    let (url, shell) = (receiver.url.clone(), Shell::new());
    shell.write("order.yaml", SOURCE);
    let ran = tokio::task::spawn_blocking(move || {
        let inputs = r#"{"of": "bolt-774119"}"#;
        shell.with(&["--otlp", &url, "run", "order.yaml", "--inputs", inputs, "--json"])
    });
    let ran = ran.await.unwrap();
    assert_eq!(ran.code, 0, "{ran:?}");
    let spans = receiver.spans();
    let emits = named(&spans, "emit");
    let (first, trace) = (emits[0], &emits[0].trace);
    assert_eq!((&*first.service, &*first.parent), ("surefoot", ""));
    let (claims, stays) = (named(&spans, "claim"), named(&spans, "run"));
    assert!(!stays.is_empty() && claims.len() == stays.len(), "{spans:#?}");
    for span in claims.iter().chain(&stays) {
        assert_eq!((&span.trace, &span.parent), (trace, &first.id), "{spans:#?}");
    }
    let [step] = named(&spans, "step")[..] else { panic!("{spans:#?}") };
    assert_eq!((&step.trace, step.text("action")), (trace, "emitEvent"));
    assert!(stays.iter().any(|stay| stay.id == step.parent));
    assert!(!format!("{spans:?}").contains("bolt-774119"), "a payload: {spans:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_emit_takes_the_trace_of_its_own_span_along() {
    let receiver = Receiver::start().await;
    let (url, shell) = (receiver.url.clone(), Shell::new());
    let emitted = tokio::task::spawn_blocking(move || {
        let emit = ["emit", "order.placed", "--app", "shop", "--scope", "berlin", "--json"];
        did(shell.command(&emit).env(COLLECTOR, url).output().unwrap())
    });
    let view: Value = serde_json::from_str(&emitted.await.unwrap().out).unwrap();
    let spans = receiver.spans();
    let [emit] = named(&spans, "emit")[..] else { panic!("{spans:#?}") };
    assert_eq!(
        (emit.text("kind"), emit.text("event")),
        ("order.placed", view["event"].as_str().unwrap())
    );
}

/// A collector that other programs are meant for holds up nobody; one that was named for this one is wrong usage.
#[test]
fn a_collector_that_cannot_be_used_is_said() {
    let shell = Shell::new();
    let refused = shell.run("--otlp https://collector:4318 runs");
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("traces cannot be sent"), "{}", refused.err);
    let mut emit = shell.command(&["emit", "order.placed", "--app", "shop", "--scope", "berlin"]);
    // It starts nothing, which is a finding.
    let emitted = did(emit.env(COLLECTOR, "https://collector:4318").output().unwrap());
    assert!(emitted.out.contains("event evt_"), "{emitted:?}");
    assert!(emitted.err.contains(COLLECTOR), "{emitted:?}");
}
