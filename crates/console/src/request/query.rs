//! Query parameters: each known, at most once, in valid percent-encoding.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// The parameters of a request.
#[derive(Debug, Clone)]
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parse(parts.uri.query().unwrap_or_default()).map(Self).map_err(Problem::bad_request)
    }
}

/// For a route without parameters.
pub(crate) fn refuse_query(query: Option<&str>) -> Result<(), Problem> {
    match query {
        None | Some("") => Ok(()),
        Some(_) => Err(Problem::bad_request("this takes no query parameters")),
    }
}

fn parse<T: DeserializeOwned>(query: &str) -> Result<T, String> {
    check_encoding(query).map_err(|why| format!("query: {why}"))?;
    let deserializer =
        serde_urlencoded::Deserializer::new(form_urlencoded::parse(query.as_bytes()));
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let place = error.path().to_string();
        let why = error.into_inner();
        // A name that is not known stands in the message already.
        if place == "." {
            format!("query: {why}")
        } else {
            format!("query parameter `{place}`: {why}")
        }
    })
}

/// The parser below takes anything; what it would mend silently is refused here.
pub(crate) fn check_encoding(query: &str) -> Result<(), String> {
    let mut rest = query;
    while let Some((_, behind)) = rest.split_once('%') {
        let is_hex =
            behind.as_bytes().get(..2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
        if !is_hex {
            return Err("a `%` is not followed by two hexadecimal digits".to_owned());
        }
        rest = behind;
    }
    let text = percent_decode_str(query).decode_utf8();
    text.map(drop).map_err(|_| "it is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Filter {
        children: Option<bool>,
        limit: Option<u32>,
    }

    #[test]
    fn a_word_means_what_it_says() {
        let of = |query: &str| parse::<Filter>(query).unwrap();
        assert_eq!(of(""), Filter { children: None, limit: None });
        assert_eq!(of("children=false"), Filter { children: Some(false), limit: None });
        assert_eq!(of("limit=7&children=true"), Filter { children: Some(true), limit: Some(7) });
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_name() {
        for (query, says) in [
            ("childen=false", "unknown field `childen`"),
            ("children=no", "query parameter `children`"),
            ("children=", "query parameter `children`"),
            ("limit=-1", "query parameter `limit`"),
            ("limit=1&limit=2", "duplicate field `limit`"),
            ("limit=%zz", "two hexadecimal digits"),
            ("limit=%", "two hexadecimal digits"),
            ("limit=%ff", "not UTF-8"),
        ] {
            let said = parse::<Filter>(query).unwrap_err();
            assert!(said.contains(says), "{query}: {said}");
        }
    }
}
