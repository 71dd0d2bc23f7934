//! Answers of pages: markup, and what a browser may do with it.

use askama::Template;
use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};

/// Everything comes from here, nothing stands inside the markup, and no other site may frame it or be sent a form.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
);

/// A page.
pub(crate) fn page(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(markup) => {
            let html = HeaderValue::from_static("text/html; charset=utf-8");
            let policy = (HeaderName::from_static("content-security-policy"), POLICY);
            // Without it a form would say that it comes from nowhere, and be refused like another site's.
            let referrer = (header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
            (status, [(header::CONTENT_TYPE, html), policy, referrer], markup).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "a page could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Sends the browser to another page, with a request that only looks.
pub(crate) fn go_to(address: &str) -> Response {
    match HeaderValue::from_str(address) {
        Ok(address) => (StatusCode::SEE_OTHER, [(header::LOCATION, address)]).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
