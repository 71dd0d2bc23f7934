//! A server of a payment provider, and of everything that goes wrong with servers. It keeps a log of its own.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use surefoot_actions::http::{HttpClient, HttpClientBuilder, Resolve};
use surefoot_actions::secret::StaticSecrets;
use surefoot_kernel_core::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub(crate) const CERTIFICATE: &[u8] = include_bytes!("certs/localhost.der");
const KEY: &[u8] = include_bytes!("certs/localhost.key.der");
/// What JSON readers elsewhere lose digits of.
pub(crate) const NUMBERS: &str = r#"{"least":-9223372036854775808,"most":18446744073709551615,"id":9007199254740993,"small":0.1,"tiny":5e-324,"large":1.7976931348623157e308,"whole":1.0}"#;
/// What cannot be kept exactly.
pub(crate) const TOO_LARGE: &str = r#"{"id":18446744073709551616}"#;
/// A secret that must turn up nowhere.
pub(crate) const CANARY: &str = "canary-4711-\"x/";

/// One request as it came in.
#[derive(Debug, Clone)]
pub(crate) struct Hit {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// Where a payment stops, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing was read yet.
    Connected,
    /// All was read, and nothing done.
    Read,
    /// It was done, and nobody hears of it.
    Acted,
    /// The first half of the answer was sent.
    HalfAnswered,
    /// All of the answer was sent.
    Answered,
}

#[derive(Default)]
struct Books {
    pause: Mutex<Option<Stage>>,
    paused: tokio::sync::Notify,
    hits: Mutex<Vec<Hit>>,
    /// Keys in the order in which they were acted on; a key may stand here twice.
    paid: Mutex<Vec<String>>,
    open: AtomicU64,
    /// Bytes of bodies that were sent.
    sent: AtomicU64,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    books: Arc<Books>,
    listening: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Which names lead to this machine.
struct Local;

impl Resolve for Local {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        let found: std::io::Result<Vec<IpAddr>> = match host {
            "api.test" | "other.test" => Ok(vec!["127.0.0.1".parse().unwrap()]),
            "inside.test" => {
                Ok(vec!["10.0.0.7".parse().unwrap(), "::ffff:127.0.0.1".parse().unwrap()])
            }
            _ => Err(std::io::Error::other("no such host")),
        };
        Box::pin(std::future::ready(found))
    }
}

/// A client that may ask this machine, and nothing else that is private.
pub(crate) fn builder() -> HttpClientBuilder {
    HttpClient::builder()
        .allow_network("127.0.0.0".parse().unwrap(), 8)
        .resolver(Local)
        .secrets(StaticSecrets::default().with("KEY", CANARY).with("PAYMENT_KEY", CANARY))
}

pub(crate) fn client() -> HttpClient {
    builder().build().unwrap()
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::listen(None).await
    }

    pub(crate) async fn with_tls() -> Self {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key)
            .unwrap();
        Self::listen(Some(tokio_rustls::TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn listen(tls: Option<tokio_rustls::TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let books = Arc::new(Books::default());
        let shared = books.clone();
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (books, tls) = (shared.clone(), tls.clone());
                books.open.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    match tls {
                        Some(_) if books.pauses(Stage::Connected) => std::future::pending().await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(&books, stream, None).await;
                            }
                        }
                        None => {
                            let raw = stream.into_std().unwrap();
                            let twin = raw.try_clone().unwrap();
                            let stream = TcpStream::from_std(raw).unwrap();
                            serve(&books, stream, Some(twin)).await;
                        }
                    }
                    books.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, books, listening }
    }

    /// The next payment that comes to this stage goes no further.
    pub(crate) fn pause_at(&self, stage: Stage) {
        *self.books.pause.lock().unwrap() = Some(stage);
    }

    /// Until one has stopped.
    pub(crate) async fn paused(&self) {
        self.books.paused.notified().await;
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn named(&self, scheme: &str, host: &str, path: &str) -> String {
        format!("{scheme}://{host}:{}{path}", self.address.port())
    }

    pub(crate) fn hits(&self) -> Vec<Hit> {
        self.books.hits.lock().unwrap().clone()
    }

    /// How often money was moved.
    pub(crate) fn paid(&self) -> Vec<String> {
        self.books.paid.lock().unwrap().clone()
    }

    pub(crate) fn sent_bytes(&self) -> u64 {
        self.books.sent.load(Ordering::SeqCst)
    }

    /// Until all that was sent here has been read and dealt with.
    pub(crate) async fn quiet(&self) {
        // Connections are accepted in their order: what came before this one is counted when it is answered.
        let mut ping = TcpStream::connect(self.address).await.unwrap();
        ping.write_all(b"GET /ping HTTP/1.1\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        ping.read_to_end(&mut answer).await.unwrap();
        drop(ping);
        while self.books.open.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

async fn serve(
    books: &Books,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    raw: Option<std::net::TcpStream>,
) {
    if books.pauses(Stage::Connected) {
        // What comes stays unread, until the test is over.
        return std::future::pending().await;
    }
    let Some(hit) = read(&mut stream).await else { return };
    let path = hit.target.split('?').next().unwrap_or_default().to_owned();
    if path != "/ping" {
        books.hits.lock().unwrap().push(hit.clone());
    }
    let key = hit.headers.get("idempotency-key").cloned().unwrap_or_default();
    let mut talk = Talk { books, stream: &mut stream };
    match path.as_str() {
        "/pay" | "/payments" => {
            if books.pauses(Stage::Read) {
                return talk.hang().await;
            }
            books.paid.lock().unwrap().push(key.clone());
            if books.pauses(Stage::Acted) {
                return talk.hang().await;
            }
            if books.is_next(Stage::HalfAnswered) {
                talk.say(b"HTTP/1.1 200 X\r\ncontent-length: 10\r\n\r\n").await;
                books.pauses(Stage::HalfAnswered);
                return talk.hang().await;
            }
            talk.json(200, &receipt(&key)).await;
            books.pauses(Stage::Answered);
        }
        "/pay-once" => {
            let known = books.paid.lock().unwrap().contains(&key);
            if !known {
                books.paid.lock().unwrap().push(key.clone());
            }
            talk.json(200, &receipt(&key)).await;
        }
        // Acts, and nobody hears of it.
        "/pay-and-hang" => {
            books.paid.lock().unwrap().push(key);
            talk.hang().await;
        }
        "/echo" | "/customers/7" => talk.echo(&hit).await,
        "/numbers" => talk.json(200, NUMBERS).await,
        "/too-large" => talk.json(200, TOO_LARGE).await,
        "/ping" => talk.json(200, "{}").await,
        _ if path.starts_with("/payments/") => {
            let asked = path.trim_start_matches("/payments/").trim_start_matches("by-key/");
            let known = books.paid.lock().unwrap().iter().any(|it| it == asked);
            let (status, body) = if known { (200, receipt(asked)) } else { (404, "{}".to_owned()) };
            talk.json(status, &body).await;
        }
        _ => talk.misbehave(&path, &hit, raw).await,
    }
}

impl Books {
    fn is_next(&self, stage: Stage) -> bool {
        *self.pause.lock().unwrap() == Some(stage)
    }

    /// Whether it stops here: only once.
    fn pauses(&self, stage: Stage) -> bool {
        let stops = self.is_next(stage);
        if stops {
            self.pause.lock().unwrap().take();
            self.paused.notify_one();
        }
        stops
    }
}

fn receipt(key: &str) -> String {
    format!(r#"{{"id":"re_{}","state":"paid"}}"#, key.get(..8).unwrap_or_default())
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Hit> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |it| it.parse::<usize>().unwrap());
    while bytes.len() < end + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8_lossy(&bytes[end..]).into_owned();
    Some(Hit { method, target, headers, body })
}

struct Talk<'a, S> {
    books: &'a Books,
    stream: &'a mut S,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Talk<'_, S> {
    async fn say(&mut self, text: &[u8]) -> bool {
        let said = self.stream.write_all(text).await.is_ok() && self.stream.flush().await.is_ok();
        if said {
            self.books.sent.fetch_add(text.len() as u64, Ordering::SeqCst);
        }
        said
    }

    async fn json(&mut self, status: u16, body: &str) {
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        self.say(format!("{head}{body}").as_bytes()).await;
        let _ = self.stream.shutdown().await;
    }

    /// Says all that it was told.
    async fn echo(&mut self, hit: &Hit) {
        let told = serde_json::json!({
            "target": hit.target, "headers": hit.headers, "body": hit.body,
        });
        self.json(200, &told.to_string()).await;
    }

    /// Until the other side has had enough.
    async fn hang(&mut self) {
        let mut rest = [0; 64];
        while self.stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
    }

    async fn redirect(&mut self, place: &str) {
        let head = format!(
            "HTTP/1.1 302 X\r\nlocation: {place}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        self.say(head.as_bytes()).await;
    }

    async fn misbehave(&mut self, path: &str, hit: &Hit, raw: Option<std::net::TcpStream>) {
        match path {
            "/silent" => self.hang().await,
            "/answers-then-hangs" => {
                self.say(b"HTTP/1.1 200 X\r\ncontent-length: 10\r\n\r\nabc").await;
                self.hang().await;
            }
            "/resets" => reset(raw),
            "/resets-after-part" => {
                self.say(b"HTTP/1.1 200 X\r\ncontent-length: 10\r\n\r\nabc").await;
                reset(raw);
            }
            "/resets-after-body" => {
                self.say(b"HTTP/1.1 200 X\r\ncontent-length: 4\r\n\r\nsaid").await;
                reset(raw);
            }
            "/closes" => {}
            "/drips" => {
                self.say(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n").await;
                while self.say(b"1\r\nx\r\n").await {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            "/drips-head" => {
                self.say(b"HTTP/1.1 200 X\r\nx-slow: ").await;
                while self.say(b"x").await {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            "/huge" => {
                self.say(b"HTTP/1.1 200 X\r\ncontent-length: 10000000000\r\n\r\n").await;
                while self.say(&[b'x'; 16 * 1024]).await {}
            }
            "/huge-head" => {
                self.say(b"HTTP/1.1 200 X\r\n").await;
                while self.say(&[b'x'; 16 * 1024]).await {}
            }
            "/short" => {
                self.say(b"HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\nabc").await;
                let _ = self.stream.shutdown().await;
            }
            "/lies" => {
                self.say(b"HTTP/1.1 200 X\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef")
                    .await;
            }
            "/garbage" => {
                self.say(b"\x16\x03\x01 this is no HTTP\r\n\r\n").await;
            }
            "/no-text" => {
                self.say(b"HTTP/1.1 200 X\r\ncontent-type: text/plain\r\ncontent-length: 2\r\nconnection: close\r\n\r\n\xff\xfe").await;
            }
            "/loop" => self.redirect("/loop").await,
            "/to-private" => self.redirect("http://10.0.0.7/").await,
            "/to-metadata" => self.redirect("http://169.254.169.254/latest").await,
            "/to-echo" => self.redirect("/echo").await,
            "/to-other" => {
                let host = hit.headers.get("host").unwrap().replace("api.test", "other.test");
                self.redirect(&format!("http://{host}/echo")).await;
            }
            _ => {
                let status = path.trim_start_matches("/status/").parse().unwrap_or(404);
                let head = format!(
                    "HTTP/1.1 {status} X\r\nretry-after: 7\r\ncontent-length: 4\r\nconnection: close\r\n\r\nsaid"
                );
                self.say(head.as_bytes()).await;
            }
        }
    }
}

/// The other side's next read or write fails: no polite end.
fn reset(raw: Option<std::net::TcpStream>) {
    if let Some(raw) = raw {
        let stream = TcpStream::from_std(raw).unwrap();
        stream.set_zero_linger().unwrap();
    }
}
