//! The HTTP API, version 1.

use axum::Router;

use crate::problem::Problem;
use crate::shared::Shared;

/// Everything under `/api/v1`.
pub(crate) fn router() -> Router<Shared> {
    Router::new().fallback(no_such_route)
}

async fn no_such_route() -> Problem {
    Problem::not_found(
        "there is no such resource: `/api/v1/openapi.json` lists those that there are",
    )
}
