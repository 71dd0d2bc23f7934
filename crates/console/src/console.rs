//! The builder.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Extension, Router};
use surefoot_kernel_core::{Clock, Ids};
use surefoot_operator::Operator;
use tokio::sync::watch;

use crate::live::Live;
use crate::problem::Problem;
use crate::shared::Shared;
use crate::{Access, access, api, metrics, pages};

/// HTTP API and web console on one store.
#[derive(Clone)]
#[must_use = "a console does nothing until its router is served"]
pub struct Console {
    operator: Operator,
    ids: Arc<dyn Ids>,
    clock: Arc<dyn Clock>,
    access: Access,
    ending: Arc<watch::Sender<bool>>,
    answer_within: Duration,
    more: metrics::More,
}

/// A request that is not answered by then is given up.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

impl Console {
    /// On the store of an operator; in whose name it acts is each caller's own. `ids` makes the ids of events, and
    /// `clock` is compared with the store's in health.
    pub fn new(
        operator: Operator,
        ids: impl Ids + 'static,
        clock: impl Clock + 'static,
        access: Access,
    ) -> Self {
        let ending = Arc::new(watch::Sender::new(false));
        let (ids, clock) = (Arc::new(ids), Arc::new(clock));
        let (answer_within, more) = (ANSWER_WITHIN, metrics::More::default());
        Self { operator, ids, clock, access, ending, answer_within, more }
    }

    /// What `/metrics` has besides the gauges of health, in the text format of Prometheus: the counters of the worker of
    /// this process, for one. Families of other names than those of health.
    pub fn metrics(self, text: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { more: metrics::More::of(text), ..self }
    }

    /// How long reading a request and beginning to answer it may take; 30 s by default.
    pub fn answer_within(self, span: Duration) -> Self {
        Self { answer_within: span, ..self }
    }

    /// Whether strangers are kept out.
    #[must_use]
    pub const fn is_guarded(&self) -> bool {
        self.access.is_guarded()
    }

    /// Ends live updates, which otherwise go on for as long as somebody listens: true ends them.
    pub(crate) fn ending(&self) -> Arc<watch::Sender<bool>> {
        Arc::clone(&self.ending)
    }

    /// The description of the API in OpenAPI 3.1: what `/api/v1/openapi.json` answers with.
    #[must_use]
    pub fn openapi() -> serde_json::Value {
        api::description()
    }

    /// The router: the API under `/api/v1`, `/metrics`, and the pages beside them.
    pub fn router(self) -> Router {
        let Self { operator, ids, clock, access, ending, answer_within, more } = self;
        let shared = Shared::new(operator, ids, clock, access, Live::new(ending));
        Router::new()
            .nest(api::PREFIX, api::router(&shared))
            .route("/metrics", get(metrics::page).layer(Extension(more)))
            .merge(api::beside())
            .merge(pages::router())
            .method_not_allowed_fallback(api::no_such_method)
            .layer(from_fn_with_state(answer_within, in_time))
            .layer(from_fn_with_state(shared.clone(), access::guard))
            .with_state(shared)
    }
}

/// A client that sends its body too slowly, and a store that does not answer, hold nothing up.
async fn in_time(State(span): State<Duration>, request: Request, next: Next) -> Response {
    let is_safe = request.method() == Method::GET;
    let answered = tokio::time::timeout(span, next.run(request)).await;
    answered.unwrap_or_else(|_| {
        let doubt = if is_safe { "" } else { "; look again whether it was done" };
        let why = format!("the request took longer than {} ms{doubt}", span.as_millis());
        Problem::new(StatusCode::REQUEST_TIMEOUT, "timeout", why).into_response()
    })
}
