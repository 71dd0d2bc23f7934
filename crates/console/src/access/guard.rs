//! What is refused before anybody asks who is there: requests that another site had a browser send.
//!
//! A browser sends cookies, and reaches loopback, also on behalf of pages of other sites. So a request that changes
//! something is refused where the browser says that it comes from elsewhere; and where everybody is let in, the name
//! that was asked for has to be one of loopback, since any name can be made to point here.

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::Access;
use super::caller::is_safe;
use crate::problem::Problem;
use crate::shared::Shared;

/// Refuses what comes from elsewhere, and keeps answers out of caches.
pub(crate) async fn guard(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let refused = refusal(&request, shared.access());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = match refused {
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    };
    // Neither headers nor bodies: they hold tokens and payloads.
    shared.troubles().tell(&method, &path, &response);
    tracing::debug!(%method, path, status = response.status().as_u16(), "answered");
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if !headers.contains_key(header::REFERRER_POLICY) {
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// Which of two would count is a matter of taste, and a proxy may have another one.
const ONCE: &[&str] = &["Host", "Origin", "Sec-Fetch-Site"];

fn refusal(request: &Request, access: &Access) -> Option<Problem> {
    let is_twice = |name: &&&str| request.headers().get_all(**name).iter().nth(1).is_some();
    if let Some(name) = ONCE.iter().find(is_twice) {
        return Some(Problem::bad_request(format!("the header `{name}` has to be there once")));
    }
    let authority = authority_of(request.uri(), request.headers());
    if matches!(access, Access::Open(_)) && !authority.is_some_and(is_loopback) {
        let why =
            "without a token, requests are answered at `localhost`, `127.0.0.1` and `[::1]` only";
        return Some(Problem::misdirected(why));
    }
    let is_foreign =
        !is_safe(request.method()) && comes_from_elsewhere(request.headers(), authority);
    is_foreign.then(|| Problem::forbidden("a page of another site may not change anything here"))
}

/// The name and port that were asked for.
fn authority_of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    uri.authority().map(|authority| authority.as_str()).or(host)
}

fn is_loopback(authority: &str) -> bool {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        Some(_) | None => authority,
    };
    ["localhost", "127.0.0.1", "[::1]"].iter().any(|name| host.eq_ignore_ascii_case(name))
}

/// What a browser says. Other programs send neither header: they have no other site's wishes to carry out.
fn comes_from_elsewhere(headers: &HeaderMap, authority: Option<&str>) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return !["same-origin", "none"].iter().any(|fine| site.as_bytes() == fine.as_bytes());
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return false };
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    match (origin, authority) {
        (Some((_, origin)), Some(authority)) => !origin.eq_ignore_ascii_case(authority),
        (None, _) | (_, None) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(of: &[(&'static str, &'static str)]) -> HeaderMap {
        of.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_browser_says_where_a_request_comes_from() {
        for (sent, is_foreign) in [
            (&[][..], false),
            (&[("sec-fetch-site", "same-origin")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("sec-fetch-site", "same-site")], true),
            (&[("sec-fetch-site", "cross-site"), ("origin", "http://here:1")], true),
            (&[("origin", "http://here:1")], false),
            (&[("origin", "http://here:2")], true),
            (&[("origin", "null")], true),
        ] {
            assert_eq!(
                comes_from_elsewhere(&headers(sent), Some("here:1")),
                is_foreign,
                "{sent:?}"
            );
        }
    }

    #[test]
    fn loopback_has_three_names() {
        for name in ["localhost", "LOCALHOST:80", "127.0.0.1:7878", "[::1]", "[::1]:7878"] {
            assert!(is_loopback(name), "{name}");
        }
        for name in ["evil.example", "localhost.evil.example:80", "127.0.0.1.evil.example", ""] {
            assert!(!is_loopback(name), "{name}");
        }
    }
}
