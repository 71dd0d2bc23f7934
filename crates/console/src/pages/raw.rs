//! All of a payload, as plain text: what is too long for a page.

use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use surefoot_kernel_core::RunId;
use surefoot_operator::OperatorError;

use super::answer;
use super::run::pretty;
use super::text::Text;
use super::visitor::{Named, Visitor};

pub(crate) async fn page(
    Named((run, what)): Named<(String, String)>,
    mut visitor: Visitor,
) -> Response {
    let Ok(run) = run.parse::<RunId>() else {
        return answer::go_to(&visitor.to("/runs").with("unknown", "page").done());
    };
    let value = match what.as_str() {
        "journal" => recorded(&mut visitor, run).await,
        "inputs" | "result" | "event" => payload(&visitor, run, &what).await,
        _ => Ok(None),
    };
    match value {
        Ok(Some(value)) => plain(&pretty(&value)),
        Ok(None) => visitor.said(StatusCode::NOT_FOUND, "Not there", "The run has no such data."),
        Err(error) => visitor.failed(&error),
    }
}

async fn payload(
    visitor: &Visitor,
    run: RunId,
    what: &str,
) -> Result<Option<Value>, OperatorError> {
    let seen = visitor.operator().show(run).await?;
    Ok(match what {
        "inputs" => Some(seen.inputs),
        "result" => Some(seen.result),
        _ => seen.event.map(|event| event.payload),
    })
}

/// One row of the journal, by the number that its first fact has.
async fn recorded(visitor: &mut Visitor, run: RunId) -> Result<Option<Value>, OperatorError> {
    let Some(seq) = visitor.asked.parse::<u64>("seq") else { return Ok(None) };
    let seq = seq.to_string();
    let view = visitor.operator().journal(run, Some(&seq), 1).await?;
    let row = view.entries.into_iter().find(|row| row.seq.to_string() == seq);
    Ok(row.and_then(|row| serde_json::to_value(row).ok()))
}

/// Characters that nobody sees are made visible here too; a browser takes it for nothing but text.
fn plain(text: &str) -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    let policy = HeaderValue::from_static("default-src 'none'; sandbox");
    let policy = (HeaderName::from_static("content-security-policy"), policy);
    let shown = Text::whole(text).as_str().to_owned();
    (StatusCode::OK, [(header::CONTENT_TYPE, kind), policy], shown).into_response()
}
