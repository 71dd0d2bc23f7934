//! The client: one connection per request, so that "connected" and "sent" are two things that can be told apart.
//!
//! A pooling client hides whether a request was sent, and may send it again by itself. This one never does: what it
//! says of a failure is what the verdicts of the actions are made of.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderMap, LOCATION};
use hyper::{Request, Response};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::connect::{NoLine, Resolve, SystemResolver, connect};
use super::input::TIMEOUT_MAX;
use super::policy::{Forbidden, Network, Policy};
use super::prepare::Outgoing;
use crate::secret::{EnvSecrets, Secrets};

/// Bytes of an answer's body.
pub const RESPONSE_MAX_BYTES: usize = 1024 * 1024;
/// Bytes of an answer's head.
const HEAD_MAX_BYTES: usize = 64 * 1024;
/// Redirects that a `GET` or `HEAD` follows.
pub const REDIRECTS_MAX: usize = 5;

/// Asks servers, within what the module allows. Cheap to clone.
#[derive(Clone)]
pub struct HttpClient(Arc<Inner>);

struct Inner {
    policy: Policy,
    resolver: Box<dyn Resolve>,
    secrets: Box<dyn Secrets>,
    tls: Arc<ClientConfig>,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client cannot be made: {0}")]
pub struct HttpSetupError(String);

/// Puts a client together.
#[must_use = "a builder does nothing until `build`"]
pub struct HttpClientBuilder {
    policy: Policy,
    resolver: Box<dyn Resolve>,
    secrets: Box<dyn Secrets>,
    roots: Vec<Vec<u8>>,
}

impl HttpClient {
    /// One that asks any public host, with the secrets of the environment and the system's certificates.
    pub fn builder() -> HttpClientBuilder {
        HttpClientBuilder {
            policy: Policy::default(),
            resolver: Box::new(SystemResolver),
            secrets: Box::new(EnvSecrets),
            roots: Vec::new(),
        }
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.0.policy
    }

    pub(super) fn resolver(&self) -> &dyn Resolve {
        &*self.0.resolver
    }

    pub(crate) fn secrets(&self) -> &dyn Secrets {
        &*self.0.secrets
    }

    pub(super) fn tls(&self) -> &Arc<ClientConfig> {
        &self.0.tls
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("policy", &self.0.policy).finish_non_exhaustive()
    }
}

impl HttpClientBuilder {
    /// Only this host, and others that are allowed so: `api.example.com`, or `*.example.com` for all that is below.
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.policy.hosts.push(host.into());
        self
    }

    /// Also the addresses of a network that is not of the public internet, by its first `bits` bits: `10.1.0.0` and 16.
    /// For services beside this one; best together with [`allow_host`](Self::allow_host), since authors choose the URL.
    pub fn allow_network(mut self, address: IpAddr, bits: u8) -> Self {
        self.policy.networks.push(Network { address, bits });
        self
    }

    /// Nothing without encryption.
    pub fn https_only(mut self) -> Self {
        self.policy.https_only = true;
        self
    }

    /// Where secrets come from.
    pub fn secrets(mut self, secrets: impl Secrets + 'static) -> Self {
        self.secrets = Box::new(secrets);
        self
    }

    /// Where addresses come from. They are checked all the same.
    pub fn resolver(mut self, resolver: impl Resolve + 'static) -> Self {
        self.resolver = Box::new(resolver);
        self
    }

    /// One more certificate that is trusted besides the system's, in DER.
    pub fn trust(mut self, certificate: impl Into<Vec<u8>>) -> Self {
        self.roots.push(certificate.into());
        self
    }

    /// Reads the certificates.
    ///
    /// # Errors
    /// [`HttpSetupError`]: a certificate of [`trust`](Self::trust) cannot be read.
    pub fn build(self) -> Result<HttpClient, HttpSetupError> {
        let mut roots = RootCertStore::empty();
        // What the system has that is no certificate is the system's matter.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        for root in self.roots {
            let added = roots.add(CertificateDer::from(root));
            added.map_err(|error| HttpSetupError(format!("a trusted certificate: {error}")))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| HttpSetupError(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let (policy, resolver, secrets) = (self.policy, self.resolver, self.secrets);
        Ok(HttpClient(Arc::new(Inner { policy, resolver, secrets, tls: Arc::new(tls) })))
    }
}

impl fmt::Debug for HttpClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClientBuilder").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// An answer with its whole body.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Lost {
    /// Nothing was sent, and sending it again would be refused again.
    Forbidden(String),
    /// Nothing was sent.
    Unreachable(String),
    /// The server sent the request elsewhere, where it is not followed to.
    Astray(String),
    /// It was sent. This much came back.
    Unanswered { what: String, status: Option<u16> },
}

/// Sends a request once. A `GET` or `HEAD` follows redirects, each of them checked like the first.
pub(super) async fn exchange(client: &HttpClient, request: &Outgoing) -> Result<Reply, Lost> {
    let deadline = Instant::now() + request.timeout;
    let mut url = request.url.clone();
    let mut headers = request.headers.clone();
    for hop in 0..=REDIRECTS_MAX {
        let reply = match send(client, request, (&url, &headers), deadline).await {
            // A server that answered with a redirect has done nothing itself.
            Err(Lost::Forbidden(why)) if hop > 0 => return Err(Lost::Astray(why)),
            answered => answered?,
        };
        let Some(next) = redirect(request, &url, &reply) else { return Ok(reply) };
        let next = next.map_err(Lost::Astray)?;
        if next.origin() != url.origin() {
            // What was meant for one server is not shown to another.
            headers = HeaderMap::new();
        }
        url = next;
    }
    Err(Lost::Astray(format!("more than {REDIRECTS_MAX} redirects")))
}

/// Where a reading request is to go next, if the answer says so.
fn redirect(request: &Outgoing, url: &Url, reply: &Reply) -> Option<Result<Url, String>> {
    let follows = request.follows && matches!(reply.status, 301 | 302 | 303 | 307 | 308);
    if !follows {
        return None;
    }
    let place = reply.headers.get(LOCATION)?.to_str();
    let place = place.map_err(|_| "a redirect to what is no URL".to_owned());
    let next = place.and_then(|place| {
        url.join(place).map_err(|error| format!("a redirect to what is no URL: {error}"))
    });
    Some(match next {
        Ok(next) if url.scheme() == "https" && next.scheme() != "https" => {
            Err("a redirect from `https` to `http`".to_owned())
        }
        other => other,
    })
}

async fn send(
    client: &HttpClient,
    request: &Outgoing,
    to: (&Url, &HeaderMap),
    deadline: Instant,
) -> Result<Reply, Lost> {
    let (answer, moving) = open(client, request, to, deadline).await?;
    let (head, body) = answer.map(|body| Limited::new(body, RESPONSE_MAX_BYTES)).into_parts();
    let status = head.status.as_u16();
    let unanswered = |what| Lost::Unanswered { what, status: Some(status) };
    let body = timeout_at(deadline, body.collect()).await;
    let body = body.map_err(|_| unanswered("the answer did not end in time".to_owned()))?;
    let body = body.map_err(|error| unanswered(told(&*error)))?;
    drop(moving);
    Ok(Reply { status, headers: head.headers, body: body.to_bytes() })
}

/// Sends a request and waits for the head of its answer. The connection lasts as long as what comes beside it.
pub(crate) async fn open(
    client: &HttpClient,
    request: &Outgoing,
    (url, headers): (&Url, &HeaderMap),
    deadline: Instant,
) -> Result<(Response<Incoming>, Moving), Lost> {
    let late = |_| Lost::Unreachable("no connection in time".to_owned());
    // However long an answer may take, a connection does not.
    let connected_by = deadline.min(Instant::now() + TIMEOUT_MAX);
    let line = timeout_at(connected_by, connect(client, url)).await.map_err(late)?;
    let line = line.map_err(|error| match error {
        NoLine::Forbidden(Forbidden::Malformed(why) | Forbidden::NotAllowed(why)) => {
            Lost::Forbidden(why)
        }
        NoLine::Unreachable(why) => Lost::Unreachable(why),
    })?;
    let mut settings = http1::Builder::new();
    settings.max_buf_size(HEAD_MAX_BYTES);
    let opened = timeout_at(connected_by, settings.handshake(line)).await.map_err(late)?;
    let (mut requests, connection) =
        opened.map_err(|error| Lost::Unreachable(format!("no connection: {error}")))?;
    // Moves the bytes. Its error also comes out of the request.
    let moving = Moving(tokio::spawn(async move {
        let _ = connection.await;
    }));
    let sent = written(request, url, headers).map_err(Lost::Forbidden)?;
    // From here on nobody can say that nothing happened.
    let unanswered = |what: String| Lost::Unanswered { what, status: None };
    let answer = timeout_at(deadline, requests.send_request(sent)).await;
    let answer = answer.map_err(|_| unanswered("no answer in time".to_owned()))?;
    Ok((answer.map_err(|error| unanswered(told(&error)))?, moving))
}

fn written(
    request: &Outgoing,
    url: &Url,
    headers: &HeaderMap,
) -> Result<Request<Full<Bytes>>, String> {
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let host = match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => return Err("the URL names no host".to_owned()),
    };
    let mut sent = Request::builder()
        .method(request.method.name())
        .uri(target)
        .header(HOST, host)
        .body(Full::new(request.body.clone()))
        .map_err(|error| error.to_string())?;
    sent.headers_mut().extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
    Ok(sent)
}

/// An error and what is below it.
pub(crate) fn told(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(error) = below {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        below = error.source();
    }
    text
}

/// The task that moves the bytes of a connection; gone with the request.
pub(crate) struct Moving(JoinHandle<()>);

impl Drop for Moving {
    fn drop(&mut self) {
        self.0.abort();
    }
}
