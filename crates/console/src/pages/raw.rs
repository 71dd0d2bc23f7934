//! All of a payload, as plain text: what is too long for a page.

use axum::extract::Path;
use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse as _, Response};
use surefoot_kernel_core::RunId;
use surefoot_operator::JournalRange;

use super::answer;
use super::run::pretty;
use super::text::Text;
use super::visitor::Visitor;

pub(crate) async fn page(
    Path((run, what)): Path<(String, String)>,
    mut visitor: Visitor,
) -> Response {
    let Ok(run) = run.parse::<RunId>() else {
        return answer::go_to(&visitor.to("/runs").with("unknown", "page").done());
    };
    let seq: Option<u64> = visitor.asked.parse("seq");
    let limit = if what == "journal" { u64::MAX } else { 0 };
    let seen = match visitor.operator().inspect(run, JournalRange { skip: 0, limit }).await {
        Ok(seen) => seen,
        Err(error) => return visitor.failed(&error),
    };
    let value = match what.as_str() {
        "inputs" => Some(seen.show.inputs),
        "result" => Some(seen.show.result),
        "event" => seen.show.event.map(|event| event.payload),
        "journal" => {
            let rows = seen.journal.into_iter().find(|row| Some(row.seq) == seq);
            rows.and_then(|row| serde_json::to_value(row).ok())
        }
        _ => None,
    };
    match value {
        Some(value) => plain(&pretty(&value)),
        None => visitor.said(StatusCode::NOT_FOUND, "Not there", "The run has no such data."),
    }
}

/// Characters that nobody sees are made visible here too; a browser takes it for nothing but text.
fn plain(text: &str) -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    let policy = HeaderValue::from_static("default-src 'none'; sandbox");
    let policy = (HeaderName::from_static("content-security-policy"), policy);
    let shown = Text::whole(text).as_str().to_owned();
    (StatusCode::OK, [(header::CONTENT_TYPE, kind), policy], shown).into_response()
}
