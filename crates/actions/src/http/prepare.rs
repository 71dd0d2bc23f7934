//! From what an author wrote to what is sent: checked first, secrets filled in last.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use surefoot_kernel_core::EffectKey;
use url::Url;

use super::body::Body;
use super::client::HttpClient;
use super::input::{
    Argument, Confirm, HttpInput, Method, SecretRef, TIMEOUT_DEFAULT, TIMEOUT_MAX, Text,
};
use super::policy::{Forbidden, Policy};
use super::written::{Named, PLACEHOLDER, named, named_by_confirm};
use crate::secret::{REDACTED, Redactor, SecretError};

/// Headers of one request.
pub const HEADERS_MAX: usize = 50;
/// Bytes of a request's body.
pub const REQUEST_MAX_BYTES: usize = 1024 * 1024;

/// What these say is the client's own business.
const RESERVED: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "idempotency-key",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A request that may be sent, without its secrets.
#[derive(Debug, Clone)]
pub(super) struct Checked {
    pub(super) method: Method,
    pub(super) url: Url,
    headers: Vec<(HeaderName, Text)>,
    query: Vec<(String, Argument)>,
    body: Option<Body>,
    follows: bool,
    pub(super) timeout: Duration,
}

/// A request as it is sent, and what must not be recorded of it.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Whether it goes where a redirect leads.
    pub(crate) follows: bool,
    pub(crate) timeout: Duration,
    pub(crate) redactor: Redactor,
}

/// Why a request cannot be made ready. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unready {
    #[error("there is no secret `{0}`")]
    NoSecret(String),
    #[error("the secret `{0}` cannot stand in a header")]
    OddSecret(String),
    #[error(transparent)]
    Secrets(#[from] SecretError),
}

fn malformed(why: impl Into<String>) -> Forbidden {
    Forbidden::Malformed(why.into())
}

/// Checks everything that can be checked without asking anybody.
pub(super) fn check(policy: &Policy, input: &HttpInput) -> Result<Checked, Forbidden> {
    check_names(&named(input))?;
    if let Some(twice) = input.statuses.contradiction() {
        return Err(malformed(twice));
    }
    let body = match (&input.json, &input.text) {
        (Some(_), Some(_)) => return Err(malformed("a request has `json` or `text`, not both")),
        (Some(json), None) => Some(Body::Json(json.clone())),
        (None, Some(text)) => Some(Body::Text(text.clone())),
        (None, None) => None,
    };
    if body.is_some() && input.method.is_reading() {
        return Err(malformed(format!("a {} request has no body", input.method.name())));
    }
    if body.as_ref().is_some_and(|body| body.size() > REQUEST_MAX_BYTES) {
        return Err(malformed(format!("the body has more than {REQUEST_MAX_BYTES} bytes")));
    }
    Ok(Checked {
        method: input.method,
        url: policy.check(&input.url)?,
        headers: headers(&input.headers)?,
        query: input.query.clone().into_iter().collect(),
        body,
        follows: input.method.is_reading(),
        timeout: timeout(input.timeout.as_deref())?,
    })
}

/// The same for the request that tells what became of another one.
pub(super) fn check_confirm(
    policy: &Policy,
    confirm: &Confirm,
    key: &EffectKey,
) -> Result<Checked, Forbidden> {
    check_names(&named_by_confirm(confirm))?;
    let filled = |text: &str| text.replace(PLACEHOLDER, key.as_str());
    let query = confirm.query.iter().map(|(name, argument)| {
        let argument = match argument {
            Argument::Plain(text) => Argument::Plain(filled(text)),
            Argument::Flag(_) | Argument::Number(_) | Argument::Secret(_) => argument.clone(),
        };
        (name.clone(), argument)
    });
    Ok(Checked {
        method: Method::Get,
        url: policy.check(&filled(&confirm.url))?,
        headers: headers(&confirm.headers)?,
        query: query.collect(),
        body: None,
        // What a page answers to which the server sends whoever is not signed in says nothing of the request.
        follows: false,
        timeout: TIMEOUT_DEFAULT,
    })
}

fn check_names(named: &[Named]) -> Result<(), Forbidden> {
    match named.iter().find(|named| named.secret.trim().is_empty()) {
        None => Ok(()),
        Some(Named { pointer, .. }) => {
            Err(malformed(format!("the secret at `{pointer}` has a blank name")))
        }
    }
}

fn timeout(given: Option<&str>) -> Result<Duration, Forbidden> {
    let Some(text) = given else { return Ok(TIMEOUT_DEFAULT) };
    let seconds = text.strip_suffix('s').and_then(|seconds| seconds.parse::<u64>().ok());
    let span = seconds.map(Duration::from_secs);
    span.filter(|span| (Duration::from_secs(1)..=TIMEOUT_MAX).contains(span))
        .ok_or_else(|| malformed("`timeout` is from `1s` to `60s`"))
}

fn headers(given: &BTreeMap<String, Text>) -> Result<Vec<(HeaderName, Text)>, Forbidden> {
    if given.len() > HEADERS_MAX {
        return Err(malformed(format!("a request has at most {HEADERS_MAX} headers")));
    }
    let mut seen = BTreeSet::new();
    let read = given.iter().map(|(name, value)| {
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| malformed(format!("`{name}` is no name of a header")))?;
        if RESERVED.contains(&parsed.as_str()) {
            return Err(malformed(format!("the header `{name}` cannot be set")));
        }
        if !seen.insert(parsed.as_str().to_owned()) {
            let why = format!("the header `{name}` stands twice: case makes no difference");
            return Err(malformed(why));
        }
        if let Text::Plain(text) = value
            && HeaderValue::from_str(text).is_err()
        {
            return Err(malformed(format!("the value of the header `{name}` cannot be sent")));
        }
        Ok((parsed, value.clone()))
    });
    read.collect()
}

impl Checked {
    /// Fills in the secrets and the key.
    pub(super) async fn ready(
        self,
        client: &HttpClient,
        key: &EffectKey,
    ) -> Result<Outgoing, Unready> {
        let mut redactor = Redactor::default();
        let mut url = self.url;
        for (name, argument) in &self.query {
            let value = match argument {
                Argument::Secret(reference) => resolved(client, reference, &mut redactor).await?,
                Argument::Plain(_) | Argument::Flag(_) | Argument::Number(_) => shown(argument),
            };
            url.query_pairs_mut().append_pair(name, &value);
        }
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static("surefoot"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*;q=0.5"));
        if let Some(body) = &self.body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(body.kind()));
        }
        for (name, value) in self.headers {
            let value = header(client, &value, &mut redactor).await?;
            headers.insert(name, value);
        }
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        // Hex digits: always a header.
        if let Ok(key) = HeaderValue::from_str(key.as_str()) {
            headers.insert("idempotency-key", key);
        }
        let body = match self.body {
            Some(body) => filled(client, body, &mut redactor).await?,
            None => Bytes::new(),
        };
        let (method, follows, timeout) = (self.method, self.follows, self.timeout);
        Ok(Outgoing { method, url, headers, body, follows, timeout, redactor })
    }

    /// One line for people, without any secret.
    pub(super) fn summary(&self) -> String {
        let mut url = self.url.clone();
        if !self.query.is_empty() {
            let mut pairs = url.query_pairs_mut();
            for (name, argument) in &self.query {
                pairs.append_pair(name, &shown(argument));
            }
        }
        let body = match &self.body {
            Some(body) => format!(" with {} bytes of {}", body.size(), body.kind()),
            None => String::new(),
        };
        format!("{} {url}{body}", self.method.name())
    }
}

async fn filled(
    client: &HttpClient,
    body: Body,
    redactor: &mut Redactor,
) -> Result<Bytes, Unready> {
    let mut secrets = BTreeMap::new();
    for SecretRef { secret, .. } in body.references() {
        let bare = SecretRef { secret, prefix: String::new() };
        let value = resolved(client, &bare, redactor).await?;
        secrets.insert(bare.secret, value);
    }
    Ok(body.filled(&secrets))
}

async fn header(
    client: &HttpClient,
    value: &Text,
    redactor: &mut Redactor,
) -> Result<HeaderValue, Unready> {
    let (text, name) = match value {
        Text::Plain(text) => (text.clone(), ""),
        Text::Secret(reference) => {
            let secret = resolved(client, reference, redactor).await?;
            (secret, reference.secret.as_str())
        }
    };
    let odd = |_| Unready::OddSecret(name.to_owned());
    let mut value = HeaderValue::from_str(&text).map_err(odd)?;
    value.set_sensitive(!name.is_empty());
    Ok(value)
}

async fn resolved(
    client: &HttpClient,
    SecretRef { secret, prefix }: &SecretRef,
    redactor: &mut Redactor,
) -> Result<String, Unready> {
    let found = client.secrets().secret(secret).await?;
    let found = found.ok_or_else(|| Unready::NoSecret(secret.clone()))?;
    redactor.hide(&found);
    Ok(format!("{prefix}{}", found.expose()))
}

fn shown(argument: &Argument) -> String {
    match argument {
        Argument::Plain(text) => text.clone(),
        Argument::Flag(flag) => flag.to_string(),
        Argument::Number(number) => number.to_string(),
        Argument::Secret(_) => REDACTED.to_owned(),
    }
}
