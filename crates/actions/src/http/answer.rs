//! What a step has of an answer.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER, SET_COOKIE};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use surefoot_kernel_core::OUTPUT_MAX_BYTES;
use surefoot_kernel_core::payload::Payload;

use super::client::Reply;
use crate::secret::Redactor;

/// Bytes of all headers of an answer that a step has.
pub const ANSWER_HEADERS_MAX_BYTES: usize = 16 * 1024;
/// Bytes of a whole answer as JSON: with room for what a kernel adds, it is an output.
const ANSWER_MAX_BYTES: usize = OUTPUT_MAX_BYTES - 1024;
/// Characters of a body that an error repeats.
const SHOWN_CHARS: usize = 500;
/// The longest wait that a server may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(86_400);

/// The answer of a server. Secrets of the request are taken out of it, should the server repeat them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// By their names in lower case; several of one name joined by `, `. Without cookies.
    pub headers: BTreeMap<String, String>,
    /// Whether some headers were left out: all of them together have more than 16 KiB.
    #[serde(rename = "headersTruncated")]
    pub headers_truncated: bool,
    /// The body, as `encoding` says.
    pub body: Value,
    /// How the body is to be understood.
    pub encoding: Encoding,
    /// Whether the body is only the beginning: the whole would not fit into an output.
    pub truncated: bool,
}

/// How a body is to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Encoding {
    /// There is none; it is null.
    Empty,
    /// The server said that it is JSON, and it is JSON that can be kept exactly.
    Json,
    /// UTF-8.
    Text,
    /// Any other bytes.
    Base64,
}

impl HttpAnswer {
    pub(super) fn of(reply: &Reply, redactor: &Redactor) -> Self {
        let (body, encoding) = body(reply, redactor);
        let (headers, headers_truncated) = headers(&reply.headers, redactor);
        let answer = Self {
            status: reply.status,
            headers,
            headers_truncated,
            body: redactor.value(body),
            encoding,
            truncated: false,
        };
        if answer.size() <= ANSWER_MAX_BYTES { answer } else { answer.cut() }
    }

    fn size(&self) -> usize {
        serde_json::to_string(self).map_or(usize::MAX, |text| text.len())
    }

    /// What was done must not look as if nobody knew: an output that is too large is kept as its beginning.
    fn cut(mut self) -> Self {
        let body = std::mem::take(&mut self.body);
        let text = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        if self.encoding == Encoding::Json {
            self.encoding = Encoding::Text;
        }
        self.truncated = true;
        self.body = Value::String(String::new());
        let mut begin = beginning(&text, ANSWER_MAX_BYTES.saturating_sub(self.size()));
        if self.encoding == Encoding::Base64 {
            // Only whole groups of four can be read.
            begin = begin.get(..begin.len() / 4 * 4).unwrap_or_default();
        }
        self.body = Value::String(begin.to_owned());
        self
    }
}

/// As much of a text as has so many bytes when it is written in JSON.
fn beginning(text: &str, mut room: usize) -> &str {
    for (at, char) in text.char_indices() {
        let written = match char {
            '"' | '\\' | '\u{8}' | '\u{c}' | '\n' | '\r' | '\t' => 2,
            '\0'..='\u{1f}' => 6,
            other => other.len_utf8(),
        };
        match room.checked_sub(written) {
            Some(left) => room = left,
            None => return text.get(..at).unwrap_or_default(),
        }
    }
    text
}

fn body(reply: &Reply, redactor: &Redactor) -> (Value, Encoding) {
    if reply.body.is_empty() {
        return (Value::Null, Encoding::Empty);
    }
    let Ok(text) = std::str::from_utf8(&reply.body) else {
        // Once it is Base64, nothing in it is found any more.
        let bytes = redactor.bytes(&reply.body);
        return (Value::String(STANDARD.encode(bytes)), Encoding::Base64);
    };
    match Payload::parse(text) {
        Ok(payload) if is_json(&reply.headers) => (payload.into_value(), Encoding::Json),
        Ok(_) | Err(_) => (Value::String(text.to_owned()), Encoding::Text),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.ends_with("+json")
}

/// Those that there is room for, and whether that leaves any out.
fn headers(headers: &HeaderMap, redactor: &Redactor) -> (BTreeMap<String, String>, bool) {
    let mut kept: BTreeMap<String, String> = BTreeMap::new();
    let (mut room, mut is_truncated) = (ANSWER_HEADERS_MAX_BYTES, false);
    for (name, value) in headers.iter().filter(|(name, _)| **name != SET_COOKIE) {
        let Some(left) = room.checked_sub(name.as_str().len() + value.len()) else {
            is_truncated = true;
            continue;
        };
        room = left;
        let value = redactor.text(&String::from_utf8_lossy(value.as_bytes()));
        kept.entry(name.as_str().to_owned())
            .and_modify(|known| {
                known.push_str(", ");
                known.push_str(&value);
            })
            .or_insert(value);
    }
    (kept, is_truncated)
}

/// One sentence about an answer that is no success.
pub(super) fn described(reply: &Reply, redactor: &Redactor) -> String {
    let text = redactor.text(&String::from_utf8_lossy(&reply.body));
    let text: String = text.chars().take(SHOWN_CHARS).collect();
    let said = if text.is_empty() { String::new() } else { format!(": {text}") };
    format!("the server answered {}{said}", reply.status)
}

/// What an operator may want to see of an answer that says neither yes nor no.
pub(super) fn evidence(reply: &Reply, redactor: &Redactor) -> Value {
    let text = redactor.text(&String::from_utf8_lossy(&reply.body));
    let text: String = text.chars().take(SHOWN_CHARS).collect();
    json!({ "status": reply.status, "body": text })
}

/// When the server wants to be asked again: in seconds, or a time, told by its own clock.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let wanted = text(RETRY_AFTER)?;
    let is_number = !wanted.is_empty() && wanted.bytes().all(|byte| byte.is_ascii_digit());
    let span = match wanted.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        // More seconds than can be counted.
        Err(_) if is_number => Duration::MAX,
        Err(_) => {
            let until = httpdate::parse_http_date(wanted).ok()?;
            let now = httpdate::parse_http_date(text(DATE)?).ok()?;
            until.duration_since(now).ok()?
        }
    };
    Some(span.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use hyper::header::HeaderValue;

    use super::*;
    use crate::secret::Secret;

    fn reply(kind: &str, body: &[u8]) -> Reply {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, kind.parse().unwrap());
        headers.insert("x-echo", "canary-1".parse().unwrap());
        headers.insert(SET_COOKIE, "id=1".parse().unwrap());
        Reply { status: 200, headers, body: Bytes::copy_from_slice(body) }
    }

    #[test]
    fn a_body_is_kept_as_what_it_is() {
        let kept = |kind, body| {
            let answer = HttpAnswer::of(&reply(kind, body), &Redactor::default());
            (answer.body, answer.encoding)
        };
        assert_eq!(
            kept("application/json; charset=utf-8", b"{\"a\":1}"),
            (json!({"a": 1}), Encoding::Json)
        );
        assert_eq!(kept("application/problem+json", b"[]"), (json!([]), Encoding::Json));
        // JSON that could not be kept exactly is kept as the text that it is.
        assert_eq!(kept("application/json", b"{\"a\":1,\"a\":2}").1, Encoding::Text);
        assert_eq!(kept("text/plain", b"7"), (json!("7"), Encoding::Text));
        assert_eq!(kept("text/plain", b"\xff\xfe"), (json!("//4="), Encoding::Base64));
        assert_eq!(kept("text/plain", b""), (Value::Null, Encoding::Empty));
    }

    /// Whatever a server answers, it is an output.
    #[test]
    fn what_does_not_fit_is_kept_as_its_beginning() {
        let most = super::super::RESPONSE_MAX_BYTES;
        let list = format!("[{}1]", "1e15,".repeat((most - 3) / 5));
        for (kind, body, encoding) in [
            ("text/plain", vec![b'a'; most], Encoding::Text),
            ("text/plain", vec![1; most], Encoding::Text),
            ("text/plain", "\u{1f600}\"".repeat(most / 5).into_bytes(), Encoding::Text),
            ("image/png", vec![0xff; most], Encoding::Base64),
            (
                "application/json",
                format!("\"{}\"", "a".repeat(most - 2)).into_bytes(),
                Encoding::Text,
            ),
            ("application/json", list.into_bytes(), Encoding::Text),
        ] {
            assert!(body.len() <= most);
            let answer = HttpAnswer::of(&reply(kind, &body), &Redactor::default());
            assert!(answer.truncated, "{kind}");
            assert_eq!(answer.encoding, encoding, "{kind}");
            let size = answer.size();
            assert!((ANSWER_MAX_BYTES - 16..=ANSWER_MAX_BYTES).contains(&size), "{kind}: {size}");
            if encoding == Encoding::Base64 {
                assert!(STANDARD.decode(answer.body.as_str().unwrap()).is_ok());
            }
        }
        let small = HttpAnswer::of(&reply("text/plain", b"ok"), &Redactor::default());
        assert!(!small.truncated);
    }

    #[test]
    fn secrets_and_cookies_are_not_kept() {
        let mut redactor = Redactor::default();
        redactor.hide(&Secret::new("canary-1"));
        let echoing = reply("application/json", b"{\"canary-1\":\"canary-1\"}");
        let bytes = HttpAnswer::of(&reply("image/png", b"\xffcanary-1"), &redactor).body;
        assert_eq!(bytes, json!(STANDARD.encode(b"\xff***")));
        let answer = HttpAnswer::of(&echoing, &redactor);
        let text = serde_json::to_string(&answer).unwrap();
        assert!(!text.contains("canary") && !text.contains("cookie"), "{text}");
        assert!(!described(&echoing, &redactor).contains("canary"));
        assert!(!evidence(&echoing, &redactor).to_string().contains("canary"));
    }

    #[test]
    fn headers_that_are_left_out_are_told_of() {
        let answered = |bytes: usize| {
            let mut reply = reply("text/plain", b"ok");
            reply.headers.insert("x-long", "a".repeat(bytes).parse().unwrap());
            reply.headers.insert("x-last", HeaderValue::from_bytes(b"gr\xc3\xbcn").unwrap());
            HttpAnswer::of(&reply, &Redactor::default())
        };
        let (most, over) = (ANSWER_HEADERS_MAX_BYTES - 100, ANSWER_HEADERS_MAX_BYTES);
        let (fits, cut) = (answered(most), answered(over));
        assert!(!fits.headers_truncated && fits.headers["x-long"].len() == most);
        assert!(cut.headers_truncated && !cut.headers.contains_key("x-long"));
        assert_eq!(cut.headers["x-last"], "grün");
    }

    #[test]
    fn a_server_says_when_to_come_back() {
        let after = |value: &str| {
            let mut reply = reply("text/plain", b"");
            reply.headers.insert(RETRY_AFTER, value.parse().unwrap());
            reply.headers.insert(DATE, "Sun, 06 Nov 1994 08:49:37 GMT".parse().unwrap());
            retry_after(&reply.headers)
        };
        assert_eq!(after("30"), Some(Duration::from_secs(30)));
        assert_eq!(after("Sun, 06 Nov 1994 08:50:37 GMT"), Some(Duration::from_secs(60)));
        assert_eq!(after("99999999999"), Some(RETRY_AFTER_MAX));
        assert_eq!(after("99999999999999999999999999"), Some(RETRY_AFTER_MAX));
        assert_eq!(after("soon"), None);
        assert_eq!(after(""), None);
        assert_eq!(after("-1"), None);
    }
}
