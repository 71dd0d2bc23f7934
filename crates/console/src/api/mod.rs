//! The HTTP API, version 1.

mod dry_runs;
mod events;
mod health;
mod openapi;
mod route;
mod runs;
mod signals;
mod verbs;
mod workflows;

use std::sync::Arc;

use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::routing::{any, get};
use axum::{Json, Router};

use self::route::Route;
use crate::problem::Problem;
use crate::shared::Shared;

/// Where it stands in the router.
pub(crate) const PREFIX: &str = "/api/v1";

/// What a handler comes to.
type Answered<T> = Result<Json<T>, Problem>;

/// Every operation.
fn routes() -> Vec<Route> {
    let parts = [
        runs::routes(),
        verbs::routes(),
        dry_runs::routes(),
        events::routes(),
        signals::routes(),
        workflows::routes(),
        health::routes(),
    ];
    parts.into_iter().flatten().collect()
}

/// Everything under [`PREFIX`].
pub(crate) fn router(shared: &Shared) -> Router<Shared> {
    let document: Arc<str> = openapi::document(&routes()).to_string().into();
    let described = get(move || {
        let document = document.to_string();
        async move { ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], document) }
    });
    let mut router = Router::new().route("/openapi.json", described);
    for route in routes() {
        let (path, handler) = route.guarded(shared);
        router = router.route(path, handler);
    }
    router.fallback(no_such_resource).method_not_allowed_fallback(no_such_method)
}

/// The description of every operation, in OpenAPI 3.1.
pub(crate) fn description() -> serde_json::Value {
    openapi::document(&routes())
}

/// What stands beside [`PREFIX`]: no page is looked for under `/api`, and no other version is there.
pub(crate) fn beside() -> Router<Shared> {
    Router::new().route("/api", any(no_such_resource)).route("/api/{*rest}", any(no_such_resource))
}

async fn no_such_resource() -> Problem {
    let why = "there is no such resource: `/api/v1/openapi.json` lists those that there are";
    Problem::not_found(why)
}

pub(crate) async fn no_such_method(method: Method) -> Problem {
    let why = format!("`{method}` is not taken here: the header `Allow` lists what is");
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", why)
}
