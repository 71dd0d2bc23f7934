//! The console's cookie: it holds the token that was typed at sign-in, so that it ends with the token, and nothing about
//! it is kept on this side.

use axum::http::HeaderMap;
use axum::http::header::COOKIE;

/// Its name.
pub(crate) const TOKEN_COOKIE: &str = "surefoot_token";

/// The value of a cookie, if it was sent exactly once.
pub(crate) fn cookie_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs =
        lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value);
    let first = values.next();
    if values.next().is_some() { None } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_counts_if_it_is_there_once() {
        let of = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, text.parse().unwrap());
            cookie_of(&headers, "a").map(str::to_owned)
        };
        assert_eq!(of("b=1; a=2"), Some("2".to_owned()));
        assert_eq!(of("aa=1; b"), None);
        assert_eq!(of("a=1; a=2"), None);
    }
}
