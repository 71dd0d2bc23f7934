//! JSON bodies: of bounded size, strict, and kept exactly.

use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use http_body_util::LengthLimitError;
use schemars::JsonSchema;
use serde::de::{Deserialize as _, DeserializeOwned, Deserializer, Error as _};
use serde_json::{Map, Value};
use surefoot_kernel_core::payload::Payload;

use crate::problem::Problem;
use crate::shared::Shared;

/// What a body may hold.
pub(crate) trait Input: DeserializeOwned + JsonSchema {
    /// A larger body is not read.
    const MAX_BYTES: usize;
}

/// One of several objects, by its name: what stands behind the name is an object too, and no list of its members.
pub(crate) fn one_of<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    let named = Map::<String, Value>::deserialize(deserializer)?;
    if let Some((name, _)) = named.iter().find(|(_, value)| !value.is_object()) {
        return Err(D::Error::custom(format!("`{name}` is no JSON object")));
    }
    T::deserialize(Value::Object(named)).map_err(D::Error::custom)
}

/// A body.
#[derive(Debug, Clone)]
pub(crate) struct Body<T>(pub(crate) T);

impl<T: Input> FromRequest<Shared> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &Shared) -> Result<Self, Problem> {
        check_type(request.headers())?;
        check_length(request.headers(), T::MAX_BYTES)?;
        let bytes = to_bytes(request.into_body(), T::MAX_BYTES).await;
        let bytes = bytes.map_err(|error| not_read(&error, T::MAX_BYTES))?;
        parse(&bytes).map(Self).map_err(Problem::bad_request)
    }
}

fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let odd = |why| Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", why);
    let mut sent = headers.get_all(CONTENT_TYPE).iter();
    let first = sent.next().and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut parts = first.split(';').map(str::trim);
    let is_json = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    if !is_json || sent.next().is_some() {
        return Err(odd("send the body with `Content-Type: application/json`"));
    }
    if parts.any(is_other_charset) {
        return Err(odd("send the body in UTF-8: JSON has no other charset"));
    }
    if headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .any(|it| !it.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        return Err(odd("send the body as it is: no `Content-Encoding` is taken"));
    }
    Ok(())
}

fn is_other_charset(parameter: &str) -> bool {
    parameter.split_once('=').is_some_and(|(name, value)| {
        name.trim().eq_ignore_ascii_case("charset")
            && !value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
    })
}

fn check_length(headers: &HeaderMap, limit: usize) -> Result<(), Problem> {
    let told = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if told.is_some_and(|told: u64| told > limit as u64) { Err(too_large(limit)) } else { Ok(()) }
}

fn too_large(limit: usize) -> Problem {
    let why = format!("the body is larger than the {limit} bytes that are taken here");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", why)
}

fn not_read(error: &axum::Error, limit: usize) -> Problem {
    let mut below: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = below {
        if error.is::<LengthLimitError>() {
            return too_large(limit);
        }
        below = error.source();
    }
    Problem::bad_request("the body ended early")
}

fn parse<T: DeserializeOwned>(bytes: &Bytes) -> Result<T, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "body: it is not UTF-8".to_owned())?;
    let payload = Payload::parse(text).map_err(|error| match error.pointer.as_str() {
        "" => format!("body: {}", error.rule),
        pointer => format!("body, at `{pointer}`: {}", error.rule),
    })?;
    // A list of what the members would be is taken for the object by what reads it.
    if !payload.value().is_object() {
        return Err("body: it is no JSON object".to_owned());
    }
    serde_path_to_error::deserialize(payload.into_value()).map_err(|error| {
        match error.path().to_string().as_str() {
            "." => format!("body: {}", error.inner()),
            place => format!("body, at `{place}`: {}", error.inner()),
        }
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Event {
        #[serde(rename = "type")]
        _kind: String,
        data: Value,
    }

    fn of(text: &'static str) -> Result<Event, String> {
        parse(&Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn numbers_are_kept_exactly() {
        let event = of(r#"{"type": "a", "data": [9007199254740993, 1.5]}"#).unwrap();
        assert_eq!(event.data.to_string(), "[9007199254740993,1.5]");
    }

    #[test]
    fn what_cannot_be_kept_or_is_not_known_is_refused_with_its_place() {
        for (text, says) in [
            ("", "body: "),
            ("{", "body: "),
            ("[]", "no JSON object"),
            (r#"["a", 1]"#, "no JSON object"),
            ("null", "no JSON object"),
            (r#"{"type": "a", "type": "b", "data": 1}"#, "at `/type`"),
            (r#"{"type": "a", "data": 99999999999999999999}"#, "at `/data`"),
            (r#"{"type": 7, "data": 1}"#, "at `type`"),
            (r#"{"type": "a", "data": 1, "kye": 2}"#, "unknown field `kye`"),
        ] {
            let said = of(text).unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
    }
}
