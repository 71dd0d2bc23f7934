//! A collector that keeps what it gets.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use prost::Message as _;

/// A span as it was received.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    /// Empty for one without.
    pub(crate) parent: String,
    pub(crate) name: String,
    pub(crate) service: String,
    began: u64,
    attributes: Vec<(String, String)>,
}

impl Span {
    #[track_caller]
    pub(crate) fn text(&self, attribute: &str) -> &str {
        let found = self.attributes.iter().find(|(key, _)| key == attribute);
        found.map(|(_, value)| &**value).unwrap_or_default()
    }
}

type Kept = Arc<Mutex<Vec<Span>>>;

pub(crate) struct Receiver {
    pub(crate) url: String,
    kept: Kept,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let kept = Kept::default();
        let router = Router::new().route("/v1/traces", post(receive)).with_state(kept.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, kept }
    }

    /// In the order in which they began.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let mut spans = self.kept.lock().unwrap().clone();
        spans.sort_by_key(|span| span.began);
        spans
    }
}

async fn receive(State(kept): State<Kept>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let Ok(request) = ExportTraceServiceRequest::decode(body) else {
        return StatusCode::BAD_REQUEST;
    };
    if kind != Some("application/x-protobuf") {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE;
    }
    let mut spans = Vec::new();
    for resource in request.resource_spans {
        let about = texts(resource.resource.map(|it| it.attributes).unwrap_or_default());
        let service = about.into_iter().find(|(key, _)| key == "service.name");
        let service = service.map(|(_, name)| name).unwrap_or_default();
        for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            spans.push(Span {
                trace: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                name: span.name,
                service: service.clone(),
                began: span.start_time_unix_nano,
                attributes: texts(span.attributes),
            });
        }
    }
    kept.lock().unwrap().append(&mut spans);
    StatusCode::OK
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn texts(attributes: Vec<KeyValue>) -> Vec<(String, String)> {
    let text = |value: Option<Value>| match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    let pair = |it: KeyValue| (it.key, text(it.value.and_then(|value| value.value)));
    attributes.into_iter().map(pair).collect()
}
