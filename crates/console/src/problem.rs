//! Errors of the HTTP API, as problem details (RFC 9457).

use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};
use surefoot_kernel_core::{Code, PublishError};
use surefoot_operator::{ErrorKind, OperatorError};

use crate::trouble::Cause;

/// What a problem's type begins with; behind it stands its kind.
pub(crate) const TYPE_PREFIX: &str = "urn:surefoot:problem:";

/// Why a request was not carried out. Unless it says so, nothing was changed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Problem(Box<What>);

#[derive(Debug, Clone, PartialEq)]
struct What {
    status: StatusCode,
    /// Stable: what a program goes by.
    kind: &'static str,
    /// What happened, where, and what to do.
    detail: String,
    /// The kernel's code, where there is one.
    code: Option<Code>,
    more: Map<String, Value>,
    header: Option<(HeaderName, HeaderValue)>,
    /// For the log; the detail where there is no other.
    cause: Option<Cause>,
}

/// As it is written.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(rename = "type")]
    kind: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a Code>,
    #[serde(flatten)]
    more: &'a Map<String, Value>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, kind: &'static str, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        let (code, more, header, cause) = (None, Map::new(), None, None);
        Self(Box::new(What { status, kind, detail, code, more, header, cause }))
    }

    /// What cannot be read: malformed, unknown, out of range.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", detail)
    }

    pub(crate) fn unauthorized(detail: impl Into<String>) -> Self {
        let bearer = HeaderValue::from_static("Bearer realm=\"surefoot\"");
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
            .header(header::WWW_AUTHENTICATE, bearer)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", detail)
    }

    pub(crate) fn misdirected(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::MISDIRECTED_REQUEST, "misdirected", detail)
    }

    /// With one more member.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.more.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.header = Some((name, value));
        self
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.0.status
    }

    /// What happened, where, and what to do.
    pub(crate) fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The status in words.
    pub(crate) fn title(&self) -> &'static str {
        self.0.status.canonical_reason().unwrap_or("Error")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = self.title();
        let What { status, kind, detail, code, more, header, cause } = *self.0;
        let written = Written {
            kind: format!("{TYPE_PREFIX}{kind}"),
            title,
            status: status.as_u16(),
            detail: &detail,
            code: code.as_ref(),
            more: &more,
        };
        let body = serde_json::to_string(&written).unwrap_or_default();
        let json = HeaderValue::from_static("application/problem+json");
        let mut response = (status, body).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, value);
        }
        cause.unwrap_or_else(|| Cause::said(&detail)).beside(response)
    }
}

impl From<OperatorError> for Problem {
    fn from(error: OperatorError) -> Self {
        let (status, kind) = written(error.kind());
        let mut problem = Self::new(status, kind, told(&error));
        problem.0.code = error.code();
        problem.0.cause = Some(Cause::of(&error));
        if let OperatorError::Conflict { revision, state, .. } = error {
            return problem.with("revision", revision).with("state", state.as_str());
        }
        if let OperatorError::Publish(PublishError::Compile { findings, .. }) = error {
            return problem.with("findings", findings);
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            return problem.header(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        problem
    }
}

/// The error's own words, but for those that speak of the command line.
fn told(error: &OperatorError) -> String {
    if matches!(error, OperatorError::NoApp) {
        return "the store holds no app yet: name one as `app`".to_owned();
    }
    if let OperatorError::ManyApps { apps } = error {
        let names: Vec<&str> = apps.iter().map(|app| app.as_str()).collect();
        return format!("the store holds several apps ({}): name one as `app`", names.join(", "));
    }
    error.to_string()
}

const fn written(kind: ErrorKind) -> (StatusCode, &'static str) {
    match kind {
        ErrorKind::NotFound => (StatusCode::NOT_FOUND, "not-found"),
        ErrorKind::ChangedSince => (StatusCode::PRECONDITION_FAILED, "changed-since"),
        ErrorKind::Conflict => (StatusCode::CONFLICT, "conflict"),
        ErrorKind::InDoubt => (StatusCode::SERVICE_UNAVAILABLE, "in-doubt"),
        ErrorKind::Usage => (StatusCode::BAD_REQUEST, "bad-request"),
        ErrorKind::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too-large"),
        ErrorKind::Invalid => (StatusCode::UNPROCESSABLE_ENTITY, "unprocessable"),
        ErrorKind::Refused => (StatusCode::CONFLICT, "refused"),
        ErrorKind::Unreadable => (StatusCode::INTERNAL_SERVER_ERROR, "unreadable"),
        ErrorKind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    }
}
