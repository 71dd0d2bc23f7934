//! Requests of the exporter, which has a thread without a runtime: they are made on the application's.

use std::time::Duration;

use async_trait::async_trait;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client as Hyper;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use tokio::runtime::Handle;

/// No collector has more to say.
const ANSWER_MAX: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Client {
    runtime: Handle,
    hyper: Hyper<HttpConnector, Full<Bytes>>,
    timeout: Duration,
}

impl Client {
    pub(crate) fn new(runtime: Handle, timeout: Duration) -> Self {
        let hyper = Hyper::builder(TokioExecutor::new()).build_http();
        Self { runtime, hyper, timeout }
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let asking = ask(self.hyper.clone(), request.map(Full::new));
        let timeout = self.timeout;
        let asked = self.runtime.spawn(async move { tokio::time::timeout(timeout, asking).await });
        asked.await??
    }
}

async fn ask(
    hyper: Hyper<HttpConnector, Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, HttpError> {
    let (head, body) = hyper.request(request).await?.into_parts();
    let body = Limited::new(body, ANSWER_MAX).collect().await?.to_bytes();
    Ok(Response::from_parts(head, body))
}
