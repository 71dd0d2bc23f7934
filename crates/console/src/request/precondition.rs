//! The revision that a caller looked at: `ETag` of what is shown, `If-Match` of what is asked.

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::header::{ETAG, HeaderValue, IF_MATCH};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::problem::Problem;

/// On which revision something is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfMatch {
    /// Wherever the run stands: `*`.
    Any,
    /// On this one.
    Revision(u64),
}

impl IfMatch {
    /// The revision, where `*` is no answer.
    pub(crate) fn revision(self) -> Result<u64, Problem> {
        match self {
            Self::Revision(revision) => Ok(revision),
            Self::Any => Err(Problem::bad_request(
                "`If-Match: *` is taken by cancel alone: send the revision that you looked at",
            )),
        }
    }

    /// The revision, if it matters.
    pub(crate) const fn if_any(self) -> Option<u64> {
        match self {
            Self::Revision(revision) => Some(revision),
            Self::Any => None,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut sent = parts.headers.get_all(IF_MATCH).iter();
        let Some(first) = sent.next() else {
            let why = "send the revision that you looked at as `If-Match: \"N\"`; it is the `ETag` of the run";
            return Err(Problem::new(StatusCode::PRECONDITION_REQUIRED, "revision-needed", why));
        };
        let read = first.to_str().ok().and_then(read).filter(|_| sent.next().is_none());
        read.ok_or_else(|| {
            Problem::bad_request(
                "the header `If-Match` has to be one revision in quotes, like `\"7\"`",
            )
        })
    }
}

fn read(text: &str) -> Option<IfMatch> {
    let text = text.trim();
    if text == "*" {
        return Some(IfMatch::Any);
    }
    let digits = text.strip_prefix('"')?.strip_suffix('"')?;
    let revision = digits.parse::<u64>().ok()?;
    (revision.to_string() == digits).then_some(IfMatch::Revision(revision))
}

/// An answer with the run's revision as its `ETag`.
#[derive(Debug)]
pub(crate) struct Revisioned<T>(pub(crate) u64, pub(crate) T);

impl<T: Serialize> IntoResponse for Revisioned<T> {
    fn into_response(self) -> Response {
        let Self(revision, view) = self;
        let mut response = Json(view).into_response();
        if let Ok(tag) = HeaderValue::try_from(format!("\"{revision}\"")) {
            response.headers_mut().insert(ETAG, tag);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_stands_in_quotes() {
        assert_eq!(read("\"7\""), Some(IfMatch::Revision(7)));
        assert_eq!(read(" * "), Some(IfMatch::Any));
        for odd in ["7", "W/\"7\"", "\"07\"", "\"+7\"", "\"7\", \"8\"", "\"\"", "", "\"-1\""] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }
}
