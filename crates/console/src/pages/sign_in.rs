//! Signing in: a token becomes a cookie, which a script cannot read and no other site can send.

use askama::Template;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::request::Parts;
use axum::response::Response;

use super::address::{Address, Asked};
use super::answer;
use super::assets::{ASSETS, Assets};
use super::visitor::base_of;
use crate::Access;
use crate::access::TOKEN_COOKIE;
use crate::shared::Shared;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignIn {
    assets: &'static Assets,
    base: String,
    next: String,
    is_refused: bool,
}

pub(crate) async fn page(State(shared): State<Shared>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let base = base_of(&mut parts).await;
    if !matches!(shared.access(), Access::Tokens(_)) {
        return answer::go_to(&Address::new(&base, "/").done());
    }
    let next = next_of(&Asked::of(parts.uri.query().unwrap_or_default()));
    answer::page(StatusCode::OK, &SignIn { assets: &ASSETS, base, next, is_refused: false })
}

pub(crate) async fn enter(State(shared): State<Shared>, mut parts: Parts, body: Bytes) -> Response {
    let base = base_of(&mut parts).await;
    // What is no text is no token either.
    let form = Asked::of_form(&body).unwrap_or_default();
    let next = next_of(&form);
    let token = form.text("token").unwrap_or_default().trim();
    let Access::Tokens(tokens) = shared.access() else {
        return answer::go_to(&Address::new(&base, "/").done());
    };
    if tokens.identity_of(token).is_none() {
        let page = SignIn { assets: &ASSETS, base, next, is_refused: true };
        return answer::page(StatusCode::FORBIDDEN, &page);
    }
    let response = answer::go_to(&format!("{base}{next}"));
    // A token has only characters that a cookie may have.
    let only_by_tls = if came_by_tls(&parts.headers) { "; Secure" } else { "" };
    with_cookie(response, &base, token, only_by_tls)
}

/// Whether the form was sent from a page that the browser got over TLS. There is none here: that is the business of a
/// proxy, and the browser is who knows.
fn came_by_tls(headers: &HeaderMap) -> bool {
    headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"))
}

pub(crate) async fn leave(mut parts: Parts) -> Response {
    let base = base_of(&mut parts).await;
    let response = answer::go_to(&Address::new(&base, "/sign-in").done());
    with_cookie(response, &base, "", "; Max-Age=0")
}

fn with_cookie(mut response: Response, base: &str, token: &str, more: &str) -> Response {
    let path = if base.is_empty() { "/" } else { base };
    let cookie = format!("{TOKEN_COOKIE}={token}; Path={path}; HttpOnly; SameSite=Strict{more}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// Where to go then: a page of this console, and of no other site.
fn next_of(asked: &Asked) -> String {
    let next = asked.text("next").unwrap_or("/");
    let is_ours = next.starts_with('/') && !next.starts_with("//") && !next.contains('\\');
    let is_plain = next.bytes().all(|byte| byte.is_ascii_graphic());
    if is_ours && is_plain { next.to_owned() } else { "/".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_goes_on_to_a_page_of_this_console_only() {
        for (next, expected) in [
            ("/runs?state=failed", "/runs?state=failed"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("javascript:alert(1)", "/"),
            ("/a\r\nSet-Cookie: x", "/"),
            ("", "/"),
        ] {
            let form = serde_urlencoded::to_string([("next", next)]).unwrap();
            assert_eq!(next_of(&Asked::of(&form)), expected, "{next}");
        }
    }
}
