//! Who looks, from where, and at what.

use axum::RequestPartsExt as _;
use axum::extract::{FromRequestParts, OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use serde::de::DeserializeOwned;
use surefoot_kernel_core::{App, Scope, Timestamp};
use surefoot_operator::{ErrorKind, Operator, OperatorError};

use super::address::{Address, Asked};
use super::answer;
use super::frame::{Failure, Frame, Notice};
use crate::access::Caller;
use crate::problem::Problem;
use crate::shared::Shared;
use crate::trouble::Cause;
use crate::{Access, Role};

/// A browser that asks for a page.
pub(crate) struct Visitor {
    /// The path that the console is mounted at; empty at the root.
    pub(crate) base: String,
    pub(crate) caller: Caller,
    /// Whether there is something to sign out of.
    pub(crate) has_signed_in: bool,
    pub(crate) asked: Asked,
    pub(crate) now: Timestamp,
}

impl Visitor {
    pub(crate) fn operator(&self) -> &Operator {
        &self.caller.operator
    }

    pub(crate) fn may_act(&self) -> bool {
        self.caller.identity.role() == Role::Operator
    }

    /// An address in the console.
    pub(crate) fn to(&self, path: &str) -> Address {
        Address::new(&self.base, path)
    }

    /// The page that says why there is no other.
    pub(crate) fn failed(&self, error: &OperatorError) -> Response {
        let status = status_of(error.kind());
        let title = match error.kind() {
            ErrorKind::NotFound => "Not there",
            ErrorKind::Unavailable | ErrorKind::InDoubt => "The store does not answer",
            ErrorKind::Unreadable => "This cannot be read",
            ErrorKind::ChangedSince
            | ErrorKind::Conflict
            | ErrorKind::Usage
            | ErrorKind::TooLarge
            | ErrorKind::Invalid
            | ErrorKind::Refused => "That was not done",
        };
        Cause::of(error).beside(self.said(status, title, &error.to_string()))
    }

    pub(crate) fn said(&self, status: StatusCode, title: &str, text: &str) -> Response {
        let frame = Frame::of(self, title, "");
        let home = self.to("/").done();
        answer::page(status, &Failure { frame, notice: Notice::bad(text), home })
    }
}

/// The status of an answer to an error.
pub(crate) const fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::ChangedSince | ErrorKind::Conflict | ErrorKind::Refused => StatusCode::CONFLICT,
        ErrorKind::InDoubt | ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Usage => StatusCode::BAD_REQUEST,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::Unreadable => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl FromRequestParts<Shared> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Response> {
        let base = base_of(parts).await;
        let query = parts.uri.query().unwrap_or_default().to_owned();
        let here = match parts.uri.query() {
            Some(query) => format!("{}?{query}", parts.uri.path()),
            None => parts.uri.path().to_owned(),
        };
        let has_signed_in = matches!(shared.access(), Access::Tokens(_));
        match Caller::from_request_parts(parts, shared).await {
            Ok(caller) => {
                let (asked, now) = (Asked::of(&query), shared.clock().wall());
                Ok(Self { base, caller, has_signed_in, asked, now })
            }
            Err(problem) if has_signed_in && problem.status() == StatusCode::UNAUTHORIZED => {
                let next = if parts.method == axum::http::Method::GET { here.as_str() } else { "" };
                let sign_in = Address::new(&base, "/sign-in").with("next", next);
                Err(answer::go_to(&sign_in.done()))
            }
            Err(problem) => Err(stranger(&problem)),
        }
    }
}

/// Nothing of the console is shown to somebody whom nobody knows.
fn stranger(problem: &Problem) -> Response {
    (problem.status(), format!("{}: {}\n", problem.title(), problem.detail())).into_response()
}

/// What stands before the path: where the application mounted the router.
pub(crate) async fn base_of(parts: &mut Parts) -> String {
    let original = parts.extract::<OriginalUri>().await;
    let original = original.map(|uri| uri.0.path().to_owned()).unwrap_or_default();
    let inner = parts.uri.path();
    // The root of a mounted router is asked for without a slash at its end.
    let base = if inner == "/" { Some(original.as_str()) } else { original.strip_suffix(inner) };
    base.unwrap_or_default().trim_end_matches('/').to_owned()
}

/// What a path names. One that is no text names nothing, and leads to the default page like any other that does not.
pub(crate) struct Named<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Shared> for Named<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Response> {
        if let Ok(Path(of)) = Path::<T>::from_request_parts(parts, shared).await {
            return Ok(Self(of));
        }
        let visitor = Visitor::from_request_parts(parts, shared).await?;
        Err(default_view(State(shared.clone()), visitor).await)
    }
}

/// An address that leads to no page shows the default one.
pub(crate) async fn default_view(State(_): State<Shared>, visitor: Visitor) -> Response {
    answer::go_to(&visitor.to("/").with("unknown", "page").done())
}

/// Which part of the store a page is about.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) apps: Vec<App>,
    pub(crate) app: App,
    pub(crate) scope: Option<Scope>,
}

impl Place {
    /// As the address says; the first app where it names none, or one that is not there. `None` for an empty store.
    pub(crate) async fn of(visitor: &mut Visitor) -> Result<Option<Self>, OperatorError> {
        let apps = visitor.operator().apps().await?;
        let is_known = |name: &str| apps.iter().find(|app| app.as_str() == name).cloned();
        let named = visitor.asked.read("app", is_known);
        let scope = visitor.asked.parse::<Scope>("scope");
        let Some(app) = named.or_else(|| apps.first().cloned()) else { return Ok(None) };
        Ok(Some(Self { apps, app, scope }))
    }
}
