//! A server of one test, and a client that holds each answer against the description of the API.

use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};
use surefoot_console::{Access, Console, Identity, Limits, Role, Server, Tokens};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::world::World;

pub(crate) const VIEWER: &str = "viewer-0123456789abcdef";
pub(crate) const OPERATOR: &str = "operator-0123456789abcdef";
/// Whatever a test waits for comes long before.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The description, its shapes closed: what is not described is not sent.
static DESCRIBED: LazyLock<Value> = LazyLock::new(|| {
    let mut described = Console::openapi();
    close(&mut described["components"]["schemas"]);
    described
});

fn close(schema: &mut Value) {
    if let Some(it) = schema.as_object_mut() {
        if it.contains_key("properties") && !it.contains_key("additionalProperties") {
            it.insert("additionalProperties".to_owned(), json!(false));
        }
        it.values_mut().for_each(close);
    } else if let Some(each) = schema.as_array_mut() {
        each.iter_mut().for_each(close);
    }
}

/// Runs until it is dropped.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) task: JoinHandle<()>,
}

pub(crate) fn console(world: &World, access: Access) -> Console {
    let (ids, clock) = (world.ids.clone(), world.store.clock().clone());
    Console::new(world.operator.clone(), ids, clock, access)
}

pub(crate) fn with_tokens() -> Access {
    let tokens = Tokens::new()
        .with_lines(Role::Viewer, VIEWER)
        .and_then(|tokens| tokens.with_lines(Role::Operator, &format!("bob {OPERATOR}")));
    Access::Tokens(tokens.unwrap())
}

pub(crate) fn open() -> Access {
    Access::Open(Identity::new("ann", Role::Operator).unwrap())
}

impl Served {
    pub(crate) async fn of(world: &World) -> Self {
        Self::on(console(world, with_tokens()), Limits::default()).await
    }

    pub(crate) async fn on(console: Console, limits: Limits) -> Self {
        let server = Server::bind(console, "127.0.0.1:0".parse().unwrap()).await.unwrap();
        let server = server.limits(limits);
        let address = server.address();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(server.run(async {
            let _ = stopped.await;
        }));
        Self { address, stop: Some(stop), task }
    }

    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }

    pub(crate) fn viewer(&self) -> Client {
        Client { address: self.address, headers: vec![bearer(VIEWER)] }
    }

    pub(crate) fn operator(&self) -> Client {
        Client { address: self.address, headers: vec![bearer(OPERATOR)] }
    }

    pub(crate) fn nobody(&self) -> Client {
        Client { address: self.address, headers: Vec::new() }
    }
}

fn bearer(token: &str) -> (String, String) {
    ("Authorization".to_owned(), format!("Bearer {token}"))
}

#[derive(Debug, Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    headers: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    /// The body of an answer that had to be given.
    #[track_caller]
    pub(crate) fn done(self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.body
    }

    /// The kind of a problem with this status.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16) -> &str {
        assert_eq!(self.status, status, "{}", self.body);
        let kind = self.body["type"].as_str().unwrap_or_default();
        kind.strip_prefix("urn:surefoot:problem:").unwrap_or("no problem details")
    }
}

impl Client {
    pub(crate) fn with(&self, name: &str, value: impl ToString) -> Self {
        let mut with = self.clone();
        with.headers.push((name.to_owned(), value.to_string()));
        with
    }

    pub(crate) fn if_match(&self, revision: &Value) -> Self {
        self.with("If-Match", format!("\"{revision}\""))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, Some(&body.to_string())).await
    }

    /// Sends a request and holds the answer against the description.
    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<&str>) -> Answer {
        let answer = self.anywhere(method, &format!("/api/v1{path}"), body).await;
        check(method, path, &answer);
        answer
    }

    /// Sends a request to any path of the server.
    pub(crate) async fn anywhere(&self, method: &str, path: &str, body: Option<&str>) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        let names: Vec<String> = self.headers.iter().map(|it| it.0.to_ascii_lowercase()).collect();
        let is_given = |name: &str| names.iter().any(|it| it == name);
        if !is_given("host") {
            request += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in &self.headers {
            request += &format!("{name}: {value}\r\n");
        }
        if let Some(body) = body {
            if !is_given("content-type") {
                request += "Content-Type: application/json\r\n";
            }
            if !is_given("content-length") {
                request += &format!("Content-Length: {}\r\n", body.len());
            }
        }
        request += "\r\n";
        request += body.unwrap_or_default();
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // A server that has answered already may have stopped reading.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
        let _ = read.expect("an answer comes");
        answer_of(&String::from_utf8(bytes).unwrap())
    }

    /// A stream of events: each is its name and its data.
    pub(crate) async fn follow(&self, path: &str) -> Events {
        let mut request = format!("GET /api/v1{path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        for (name, value) in &self.headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += "\r\n";
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        Events { stream, text: String::new() }
    }
}

fn answer_of(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or_default();
    let body = serde_json::from_str(body).unwrap_or(Value::String(body.to_owned()));
    Answer { status, head: head.to_owned(), body }
}

pub(crate) struct Events {
    stream: TcpStream,
    text: String,
}

impl Events {
    /// The next event; nothing once the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((name, data)) = self.take() {
                return Some((name, data));
            }
            let mut bytes = [0; 64 * 1024];
            let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut bytes)).await;
            match read.expect("an event comes") {
                Ok(0) | Err(_) => return None,
                Ok(read) => self.text += std::str::from_utf8(&bytes[..read]).unwrap(),
            }
        }
    }

    /// The first event that is here as a whole.
    fn take(&mut self) -> Option<(String, Value)> {
        loop {
            let (block, rest) = self.text.split_once("\n\n")?;
            let line = |name: &str| {
                let mut lines = block.lines().filter_map(|line| line.split_once(": "));
                lines.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
            };
            // Before the first event stand the head of the answer and the length of a chunk.
            let (name, data) = (line("event"), line("data"));
            self.text = rest.to_owned();
            if let (Some(name), Some(data)) = (name, data) {
                return Some((name, serde_json::from_str(&data).unwrap()));
            }
        }
    }
}

/// The path as the description has it, its operation, and whether there is such a path at all.
pub(crate) fn described(method: &str, path: &str) -> Option<&'static Value> {
    let path = path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').collect();
    let paths = DESCRIBED["paths"].as_object().unwrap();
    let fits = |template: &str| {
        let wanted: Vec<&str> = template.trim_start_matches("/api/v1").split('/').collect();
        let same = |(wanted, part): (&&str, &&str)| wanted == part || wanted.starts_with('{');
        wanted.len() == parts.len() && wanted.iter().zip(&parts).all(same)
    };
    let mut fitting: Vec<_> = paths.iter().filter(|(template, _)| fits(template)).collect();
    fitting.sort_by_key(|(template, _)| template.matches('{').count());
    let (_, operations) = fitting.first()?;
    operations.get(method.to_ascii_lowercase())
}

/// Holds an answer against the description.
#[track_caller]
fn check(method: &str, path: &str, answer: &Answer) {
    let Some(operation) = described(method, path) else {
        let status = answer.status;
        assert!(
            [200, 400, 401, 403, 404, 405, 408, 421, 431].contains(&status),
            "{method} {path}: {status}"
        );
        return;
    };
    let status = answer.status.to_string();
    let mut response = &operation["responses"][&status];
    assert!(!response.is_null(), "{method} {path}: {status} is not described: {}", answer.body);
    if let Some(reference) = response["$ref"].as_str() {
        response = DESCRIBED.pointer(reference.trim_start_matches('#')).unwrap();
    }
    let kind = answer.header("content-type").unwrap_or_default();
    let schema = &response["content"][kind]["schema"];
    assert!(!schema.is_null(), "{method} {path}: {status} with `{kind}` is not described");
    let whole = json!({ "allOf": [schema], "components": DESCRIBED["components"] });
    let validator = jsonschema::validator_for(&whole).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&answer.body)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{method} {path}: {status}: {errors:?}");
    for (name, _) in response["headers"].as_object().into_iter().flatten() {
        assert!(answer.header(name).is_some(), "{method} {path}: {status} without `{name}`");
    }
}
