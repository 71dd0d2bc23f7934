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
    /// Whether a browser said so by itself.
    by_cookie: bool,
}

impl Caller {
    /// Who asks.
    pub(crate) fn of(parts: &Parts, shared: &Shared) -> Result<Self, Problem> {
        let (identity, by_cookie) = identity_of(parts, shared.access())?;
        let operator = shared.operator_for(&identity);
        Ok(Self { identity, operator, by_cookie })
    }

    #[expect(clippy::unnecessary_wraps, reason = "one of several questions of this form")]
    pub(crate) const fn may_look(&self) -> Result<(), Problem> {
        Ok(())
    }

    pub(crate) fn may_act(&self) -> Result<(), Problem> {
        match self.identity.role() {
            Role::Operator => Ok(()),
            Role::Viewer => Err(Problem::forbidden("a viewer may look and changes nothing")),
        }
    }

    /// A cookie is sent whoever wrote the page; the API acts on the word of those who meant it.
    pub(crate) fn may_act_by_api(&self) -> Result<(), Problem> {
        if self.by_cookie {
            let why =
                "a cookie is for the console: send the token as `Authorization: Bearer TOKEN`";
            return Err(Problem::forbidden(why));
        }
        self.may_act()
    }
}

impl FromRequestParts<Shared> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        // The API has found it out already.
        parts.extensions.get::<Self>().cloned().map_or_else(|| Self::of(parts, shared), Ok)
    }
}

fn identity_of(parts: &Parts, access: &Access) -> Result<(Identity, bool), Problem> {
    match access {
        Access::Open(identity) => Ok((identity.clone(), false)),
        Access::Application => {
            let told = parts.extensions.get::<Identity>().cloned();
            let told = told.map(|identity| (identity, false));
            told.ok_or_else(|| Problem::unauthorized("the application does not say who asks"))
        }
        Access::Tokens(tokens) => {
            let sent = token_of(parts)?;
            let known = sent.and_then(|(token, by_cookie)| {
                tokens.identity_of(token).map(|identity| (identity.clone(), by_cookie))
            });
            known.ok_or_else(|| {
                Problem::unauthorized("a token is needed: send it as `Authorization: Bearer TOKEN`")
            })
        }
    }
}

/// The header goes before the cookie: whoever sends one means it.
fn token_of(parts: &Parts) -> Result<Option<(&str, bool)>, Problem> {
    let mut sent = parts.headers.get_all(AUTHORIZATION).iter();
    let Some(header) = sent.next() else {
        return Ok(cookie_of(&parts.headers, TOKEN_COOKIE).map(|token| (token, true)));
    };
    let odd = || Problem::unauthorized("the header `Authorization` has to be `Bearer TOKEN`, once");
    let (scheme, token) =
        header.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(odd)?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer") && sent.next().is_none();
    if is_bearer { Ok(Some((token.trim(), false))) } else { Err(odd()) }
}

/// Whether a method only looks.
pub(super) fn is_safe(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}
