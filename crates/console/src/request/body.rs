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
use tokio::sync::{Semaphore, SemaphorePermit};

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

/// Room for the bodies that are being read: those that are large share it, however many clients send some. Who waits for
/// room waits no longer than for any other answer, and who sends too slowly gives it back by then.
#[derive(Debug)]
pub(crate) struct Rooms(Semaphore);

/// A smaller body takes no room: those of all connections together are not much.
const SMALL_BYTES: u64 = 64 * 1024;
/// Bytes of all large bodies together: three events of full size.
const ROOM_BYTES: u64 = 128 * 1024 * 1024;

impl Default for Rooms {
    fn default() -> Self {
        Self(Semaphore::new(units(ROOM_BYTES) as usize))
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(SMALL_BYTES)).unwrap_or(u32::MAX)
}

impl Rooms {
    /// For a body of the length that was told, or of the most that is taken.
    async fn take(
        &self,
        told: Option<u64>,
        limit: usize,
    ) -> Result<Option<SemaphorePermit<'_>>, Problem> {
        let bytes = told.unwrap_or(limit as u64);
        if bytes <= SMALL_BYTES {
            return Ok(None);
        }
        // Nobody closes it.
        let room = self.0.acquire_many(units(bytes)).await;
        room.map(Some).map_err(|_| Problem::bad_request("no more bodies are read"))
    }
}

/// A body.
#[derive(Debug, Clone)]
pub(crate) struct Body<T>(pub(crate) T);

impl<T: Input> FromRequest<Shared> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, shared: &Shared) -> Result<Self, Problem> {
        check_type(request.headers())?;
        let told = told_length(request.headers());
        if told.is_some_and(|told| told > T::MAX_BYTES as u64) {
            return Err(too_large(T::MAX_BYTES));
        }
        let _room = shared.rooms().take(told, T::MAX_BYTES).await?;
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

fn told_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
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
    use std::time::Duration;

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

    #[tokio::test]
    async fn large_bodies_share_the_room_and_small_ones_need_none() {
        let (rooms, whole) = (Rooms::default(), 33 * 1024 * 1024);
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(rooms.take(None, whole).await.unwrap().unwrap());
        }
        let more = async || tokio::time::timeout(Duration::ZERO, rooms.take(None, whole)).await;
        assert!(more().await.is_err(), "a fourth waits");
        assert!(rooms.take(Some(1_000), whole).await.unwrap().is_none(), "a small one does not");
        held.pop();
        assert!(more().await.is_ok());
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
