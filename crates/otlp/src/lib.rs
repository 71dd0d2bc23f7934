//! Sends the traces of an application, its kernel and its workers to an OpenTelemetry collector: OTLP over HTTP, in
//! protobuf.
//!
//! ```no_run
//! use surefoot_otlp::Exporter;
//! use tracing_subscriber::layer::SubscriberExt as _;
//! use tracing_subscriber::util::SubscriberInitExt as _;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let exporter = Exporter::start("http://127.0.0.1:4318", "shop")?;
//! tracing_subscriber::registry().with(exporter.layer()).try_init()?;
//! // Emit events, run workers; at the end, send what is left.
//! exporter.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! An event that is emitted inside of a span takes its trace along. Its runs go on in that trace, on whatever worker
//! and however much later: one trace tells from the request to the last step.

mod client;

use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tokio::runtime::Handle;
use tracing::Subscriber;
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::registry::LookupSpan;

use client::Client;

/// How long one batch may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long the last batch may take.
const LAST: Duration = Duration::from_secs(15);

/// Why traces are not sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// The address is not one that this exporter can send to.
    #[error(
        "traces cannot be sent to `{endpoint}`: give the root of a collector as http://HOST:PORT; one that wants TLS is \
         reached through a collector or an agent on this machine"
    )]
    Endpoint {
        /// As it was given.
        endpoint: String,
    },
    /// It was started outside of a tokio runtime, on which it sends.
    #[error(
        "traces are sent on a tokio runtime, and there is none here: start the exporter inside of one"
    )]
    NoRuntime,
    /// The exporter cannot be built.
    #[error("the exporter of traces cannot be built")]
    Build(#[source] opentelemetry_otlp::ExporterBuildError),
    /// What was left could not be sent in time.
    #[error("the last traces were not sent")]
    Last(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Sends spans in batches, from a thread of its own. A collector that is away costs spans and nothing else: at most
/// 2,048 of them are kept.
#[derive(Debug)]
#[must_use = "an exporter sends what its layer is given"]
pub struct Exporter {
    provider: SdkTracerProvider,
}

impl Exporter {
    /// Sends to the collector at this address, such as `http://127.0.0.1:4318`, in the name of a service.
    ///
    /// `OTEL_TRACES_SAMPLER`, `OTEL_BSP_*` and `OTEL_RESOURCE_ATTRIBUTES` count as OpenTelemetry has them.
    ///
    /// # Errors
    /// [`OtlpError`]: no such address, or no tokio runtime.
    pub fn start(endpoint: &str, service: &str) -> Result<Self, OtlpError> {
        let root = endpoint.trim_end_matches('/');
        if root.strip_prefix("http://").is_none_or(str::is_empty) {
            return Err(OtlpError::Endpoint { endpoint: endpoint.to_owned() });
        }
        let runtime = Handle::try_current().map_err(|_| OtlpError::NoRuntime)?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client::new(runtime, TIMEOUT))
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{root}/v1/traces"))
            .with_timeout(TIMEOUT)
            .build()
            .map_err(OtlpError::Build)?;
        let resource = Resource::builder().with_service_name(service.to_owned()).build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource)
            .build();
        Ok(Self { provider })
    }

    /// What turns spans of `tracing` into those that are sent. Put it into the application's subscriber.
    #[must_use]
    pub fn layer<S>(&self) -> OpenTelemetryLayer<S, SdkTracer>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        // Where in our sources a span begins is nobody's question.
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("surefoot"))
            .with_location(false)
            .with_threads(false)
    }

    /// Sends what is left, and nothing after that.
    ///
    /// Not cancel safe: it goes on in the background when the future is dropped.
    ///
    /// # Errors
    /// [`OtlpError::Last`]: the collector did not take it within 15 s.
    pub async fn stop(self) -> Result<(), OtlpError> {
        // It blocks its thread until all is sent, which happens on this runtime.
        let stopping =
            tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(LAST));
        let stopped = stopping.await.map_err(|error| OtlpError::Last(Box::new(error)))?;
        stopped.map_err(|error| OtlpError::Last(Box::new(error)))
    }
}
