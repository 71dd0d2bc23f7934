//! One trace, from whoever emits to the last step, as a collector sees it.

#![expect(clippy::unwrap_used, reason = "a test that fails panics")]

mod receiver;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use surefoot_kernel_core::{Event, RunId, RunState, Signal, TraceContext};
use surefoot_language::{AnyStore, Module, Planned};
use surefoot_otlp::{Exporter, OtlpError};
use surefoot_testkit::MemoryStore;
use surefoot_worker::{Kernel, Publication, Running, Scoped};
use tracing::Instrument as _;
use tracing_subscriber::layer::SubscriberExt as _;

use receiver::{Receiver, Span};

const SOURCE: &str = "
inputs: { pieces: { type: integer, required: true } }
steps:
  - double: { pieces: \"${{ inputs.pieces }}\" }
  - mail: { pieces: 1 }
  - waitFor: { kind: approval, key: \"${{ run.id }}\" }
  - mail: { pieces: 2 }
";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pieces {
    pieces: i64,
}

/// An application whose traces a collector gets.
struct Shop {
    kernel: Kernel<MemoryStore>,
    berlin: Scoped<MemoryStore>,
    worker: Running,
    exporter: Exporter,
    receiver: Receiver,
    _guard: tracing::subscriber::DefaultGuard,
}

fn module() -> Module<AnyStore> {
    Module::builder("shop", 1)
        .pure_fn("double", |input: Pieces| Ok(input.pieces + 1))
        .idempotent_fn(
            "mail",
            |pieces: &Pieces| Planned::new(format!("Mail {}", pieces.pieces)),
            async |_, pieces: Pieces| Ok(format!("mailed {}", pieces.pieces)),
        )
        .build()
        .unwrap()
}

impl Shop {
    async fn open() -> Self {
        let receiver = Receiver::start().await;
        let exporter = Exporter::start(&receiver.url, "shop").unwrap();
        let filter = tracing_subscriber::filter::LevelFilter::DEBUG;
        let subscriber = tracing_subscriber::registry().with(filter).with(exporter.layer());
        let guard = tracing::subscriber::set_default(subscriber);
        let kernel = Kernel::new("shop", MemoryStore::new());
        let berlin = kernel.scope("berlin");
        let module = module();
        berlin.publish(module.manifest(), Publication::new("double", SOURCE)).await.unwrap();
        let worker = kernel.worker(module).start().await.unwrap();
        Self { kernel, berlin, worker, exporter, receiver, _guard: guard }
    }

    /// Until the run waits for its approval; then it is given, and the run ends.
    async fn to_end(&self, run: RunId) {
        let waits = async {
            loop {
                let stored = surefoot_kernel_core::LoadRequest { run, after: None };
                let loaded = surefoot_kernel_core::RunStore::run_load(self.kernel.store(), stored);
                if loaded.await.unwrap().is_some_and(|it| it.run.state() == RunState::Waiting) {
                    break;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), waits).await.unwrap();
        self.berlin.signal(Signal::new("approval", run.to_string())).await.unwrap();
        assert_eq!(self.kernel.await_run(run).await.unwrap().state(), RunState::Succeeded);
    }

    /// Every span, by the id of its trace.
    async fn close(self) -> BTreeMap<String, Vec<Span>> {
        self.worker.stop(Duration::from_secs(20)).await;
        self.exporter.stop().await.unwrap();
        let mut traces: BTreeMap<String, Vec<Span>> = BTreeMap::new();
        for span in self.receiver.spans() {
            traces.entry(span.trace.clone()).or_default().push(span);
        }
        traces
    }
}

fn start() -> Event {
    Event::start("double", json!({ "pieces": 77_411_993 }))
}

fn named<'a>(trace: &'a [Span], name: &str) -> Vec<&'a Span> {
    trace.iter().filter(|span| span.name == name).collect()
}

/// Two stays of a run on a worker, below whoever started it, and its four steps below them.
fn check(trace: &[Span], parent: &str, run: RunId) {
    let claims = named(trace, "claim");
    assert_eq!(claims.len(), 2, "{trace:#?}");
    for claim in &claims {
        assert_eq!((&*claim.parent, claim.text("run")), (parent, &*run.to_string()));
    }
    let stays = named(trace, "run");
    assert_eq!(stays.len(), 2, "{trace:#?}");
    for stay in &stays {
        assert_eq!((&*stay.parent, stay.text("run")), (parent, &*run.to_string()));
    }
    let states: Vec<&str> = stays.iter().map(|stay| stay.text("state")).collect();
    assert_eq!(states, ["waiting", "succeeded"]);
    let steps = named(trace, "step");
    let told: Vec<(&str, &str)> =
        steps.iter().map(|step| (step.text("step"), step.text("action"))).collect();
    assert_eq!(told, [("steps.0", "double"), ("steps.1", "mail"), ("steps.3", "mail")]);
    let below = |step: &&Span| stays.iter().position(|stay| stay.id == step.parent);
    assert_eq!(steps.iter().map(below).collect::<Vec<_>>(), [Some(0), Some(0), Some(1)]);
    assert!(!named(trace, "commit").is_empty(), "{trace:#?}");
}

#[tokio::test]
async fn a_collector_sees_one_trace_from_emit_to_the_last_step() {
    let shop = Shop::open().await;
    let request = tracing::info_span!("request");
    let emission = shop.berlin.emit(start()).instrument(request).await.unwrap();
    shop.to_end(emission.runs[0]).await;
    let traces = shop.close().await;
    let is_ours = |trace: &&Vec<Span>| !named(trace, "request").is_empty();
    let trace = traces.values().find(is_ours).unwrap();
    let (request, emit) = (named(trace, "request")[0], named(trace, "emit")[0]);
    assert_eq!((&*request.parent, &*request.service), ("", "shop"));
    assert_eq!((&emit.parent, emit.text("app")), (&request.id, "shop"));
    assert_eq!(emit.text("event"), emission.event.to_string());
    check(trace, &emit.id, emission.runs[0]);
    // Nothing of a payload.
    assert!(!format!("{traces:?}").contains("7741199"), "{traces:#?}");
}

#[tokio::test]
async fn a_run_that_is_made_later_is_in_the_trace_of_its_event() {
    let shop = Shop::open().await;
    let request = tracing::info_span!("request");
    let event = start().deferred();
    let emission = shop.berlin.emit(event).instrument(request).await.unwrap();
    assert!(emission.runs.is_empty());
    let found = async {
        loop {
            let filter = surefoot_kernel_core::RunFilter { limit: 10, ..Default::default() };
            let store = shop.kernel.store();
            let page = surefoot_kernel_core::OperatorStore::run_list(store, filter);
            if let Some(row) = page.await.unwrap().rows.first() {
                break row.run.id;
            }
            tokio::task::yield_now().await;
        }
    };
    let run = tokio::time::timeout(Duration::from_secs(60), found).await.unwrap();
    shop.to_end(run).await;
    let traces = shop.close().await;
    let trace = traces.values().find(|trace| !named(trace, "request").is_empty()).unwrap();
    let emit = named(trace, "emit")[0];
    let [dispatch] = named(trace, "dispatch")[..] else { panic!("{trace:#?}") };
    assert_eq!((&dispatch.parent, dispatch.text("event")), (&emit.id, emit.text("event")));
    check(trace, &emit.id, run);
}

#[tokio::test]
async fn an_event_that_names_its_trace_stays_in_it() {
    let shop = Shop::open().await;
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let named_trace = TraceContext::new(format!("00-{trace}-{parent}-01")).unwrap();
    let event = start().trace_context(named_trace);
    let run = shop.berlin.emit(event).await.unwrap().runs[0];
    shop.to_end(run).await;
    let traces = shop.close().await;
    let spans = traces.get(trace).unwrap();
    assert_eq!(named(spans, "emit")[0].parent, parent);
    check(spans, parent, run);
}

#[tokio::test]
async fn a_trace_that_is_not_sampled_is_not_sent() {
    let shop = Shop::open().await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let unsampled = TraceContext::new(format!("00-{trace}-00f067aa0ba902b7-00")).unwrap();
    let run = shop.berlin.emit(start().trace_context(unsampled)).await.unwrap().runs[0];
    shop.to_end(run).await;
    assert!(!shop.close().await.contains_key(trace));
}

#[tokio::test]
async fn a_collector_that_is_away_changes_nothing_but_the_last_word() {
    let away = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let exporter = Exporter::start(&away, "shop").unwrap();
    let subscriber = tracing_subscriber::registry().with(exporter.layer());
    let guard = tracing::subscriber::set_default(subscriber);
    drop(tracing::info_span!("request").entered());
    drop(guard);
    // Whether the last batch counts as an error is the exporter's to say; it comes back in any case.
    let _ = exporter.stop().await;
}

#[tokio::test]
async fn an_address_that_is_none_is_refused() {
    for endpoint in ["", "collector:4317", "https://collector:4318", "http://"] {
        let refused = Exporter::start(endpoint, "shop").unwrap_err();
        assert!(matches!(refused, OtlpError::Endpoint { .. }), "{endpoint}: {refused}");
    }
}

#[test]
fn without_a_runtime_nothing_is_started() {
    let refused = Exporter::start("http://127.0.0.1:4318", "shop").unwrap_err();
    assert!(matches!(refused, OtlpError::NoRuntime), "{refused}");
}
