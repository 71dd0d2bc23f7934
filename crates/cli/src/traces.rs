//! What this process says of itself: its log, and its traces.

use std::io;

#[cfg(feature = "otlp")]
use surefoot_otlp::{Exporter, OtlpError};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::args::Global;
use crate::error::CliError;

/// Where OpenTelemetry has its collector, for every program.
#[cfg(feature = "otlp")]
pub(crate) const COLLECTOR_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Traces, if they are sent anywhere.
pub(crate) struct Traces {
    #[cfg(feature = "otlp")]
    exporter: Option<Exporter>,
}

#[cfg(feature = "otlp")]
impl Traces {
    /// To the collector that was named. One that only the environment names may be meant for other programs: where it
    /// cannot be used, that is said, and the command goes on.
    pub(crate) fn of(global: &Global) -> Result<Self, CliError> {
        let service = std::env::var("OTEL_SERVICE_NAME");
        let service = service.unwrap_or_else(|_| "surefoot".to_owned());
        if let Some(url) = &global.otlp {
            let exporter = Exporter::start(url, &service)?;
            return Ok(Self { exporter: Some(exporter) });
        }
        let url = std::env::var(COLLECTOR_VARIABLE).unwrap_or_default();
        if url.is_empty() {
            return Ok(Self { exporter: None });
        }
        let exporter = Exporter::start(&url, &service);
        let exporter = exporter.map_err(|error| said(&format!("{COLLECTOR_VARIABLE}: {error}")));
        Ok(Self { exporter: exporter.ok() })
    }

    /// `SUREFOOT_LOG` says what is logged; by default, warnings, and none of the broker's client: what goes wrong there
    /// comes back as an error. Payloads never are.
    pub(crate) fn log_to_stderr(&self) {
        let spans = self.exporter.as_ref().map(|exporter| {
            let ours = EnvFilter::new("off,surefoot=info,surefoot_worker=info");
            exporter.layer().with_filter(ours)
        });
        // An application may have its own already.
        let _ = tracing_subscriber::registry().with(spans).with(log()).try_init();
    }

    /// Sends what is left.
    pub(crate) async fn end(self) {
        if let Some(exporter) = self.exporter
            && let Err(error) = exporter.stop().await
        {
            said(&error.to_string());
        }
    }
}

#[cfg(not(feature = "otlp"))]
impl Traces {
    #[expect(clippy::unnecessary_wraps, reason = "as with the feature")]
    pub(crate) const fn of(_: &Global) -> Result<Self, CliError> {
        Ok(Self {})
    }

    /// `SUREFOOT_LOG` says what is logged; by default, warnings, and none of the broker's client: what goes wrong there
    /// comes back as an error. Payloads never are.
    pub(crate) fn log_to_stderr(&self) {
        let _ = tracing_subscriber::registry().with(log()).try_init();
    }

    #[expect(clippy::unused_async, reason = "as with the feature")]
    pub(crate) async fn end(self) {}
}

fn log<S>() -> impl tracing_subscriber::Layer<S>
where
    S: tracing::Subscriber + for<'span> tracing_subscriber::registry::LookupSpan<'span>,
{
    let filter = EnvFilter::try_from_env("SUREFOOT_LOG")
        .unwrap_or_else(|_| EnvFilter::new("warn,async_nats=off"));
    tracing_subscriber::fmt::layer().with_writer(io::stderr).with_filter(filter)
}

#[cfg(feature = "otlp")]
fn said(what: &str) {
    crate::page::to_stderr(&format!("warning: {}\n", crate::page::clean(what)));
}

#[cfg(feature = "otlp")]
impl From<OtlpError> for CliError {
    fn from(error: OtlpError) -> Self {
        Self::Usage(error.to_string())
    }
}
