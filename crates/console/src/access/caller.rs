//! Extractors: who asks, and whether they may.

use axum::extract::FromRequestParts;
use axum::http::Method;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use surefoot_operator::Operator;

use super::{Access, Identity, Role, TOKEN_COOKIE, cookie_of};
use crate::problem::Problem;
use crate::shared::Shared;

/// Somebody who may look.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) identity: Identity,
    /// The use cases in their name.
    pub(crate) operator: Operator,
}

/// Somebody who may act.
#[derive(Debug, Clone)]
pub(crate) struct Acting(pub(crate) Caller);

impl FromRequestParts<Shared> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        let identity = identity_of(parts, shared.access())?;
        let operator = shared.operator_for(&identity);
        Ok(Self { identity, operator })
    }
}

impl FromRequestParts<Shared> for Acting {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, shared).await?;
        match caller.identity.role() {
            Role::Operator => Ok(Self(caller)),
            Role::Viewer => Err(Problem::forbidden("a viewer may look and changes nothing")),
        }
    }
}

fn identity_of(parts: &Parts, access: &Access) -> Result<Identity, Problem> {
    match access {
        Access::Open(identity) => Ok(identity.clone()),
        Access::Application => {
            let told = parts.extensions.get::<Identity>().cloned();
            told.ok_or_else(|| Problem::unauthorized("the application does not say who asks"))
        }
        Access::Tokens(tokens) => {
            let known = token_of(parts)?.and_then(|token| tokens.identity_of(token));
            known.cloned().ok_or_else(|| {
                Problem::unauthorized("a token is needed: send it as `Authorization: Bearer TOKEN`")
            })
        }
    }
}

/// The header goes before the cookie: whoever sends one means it.
fn token_of(parts: &Parts) -> Result<Option<&str>, Problem> {
    let mut sent = parts.headers.get_all(AUTHORIZATION).iter();
    let Some(header) = sent.next() else {
        return Ok(cookie_of(&parts.headers, TOKEN_COOKIE));
    };
    let odd = || Problem::unauthorized("the header `Authorization` has to be `Bearer TOKEN`, once");
    let (scheme, token) =
        header.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(odd)?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer") && sent.next().is_none();
    if is_bearer { Ok(Some(token.trim())) } else { Err(odd()) }
}

/// Whether a method only looks.
pub(super) fn is_safe(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}
