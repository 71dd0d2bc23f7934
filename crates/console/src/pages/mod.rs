//! The web console.

use axum::Router;

use crate::shared::Shared;

/// Every page, beside the API.
pub(crate) fn router() -> Router<Shared> {
    Router::new()
}
