//! A server that speaks the API of OpenAI, well and badly.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use surefoot_actions::ai::OpenAi;
use surefoot_actions::http::HttpClientBuilder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

struct Books {
    open: AtomicU64,
    asked: Mutex<BTreeMap<String, u32>>,
    keys: Mutex<Vec<String>>,
    late: watch::Sender<bool>,
}

pub(crate) struct Model {
    address: SocketAddr,
    books: Arc<Books>,
    listening: JoinHandle<()>,
}

impl Drop for Model {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Model {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let books = Arc::new(Books {
            open: AtomicU64::new(0),
            asked: Mutex::default(),
            keys: Mutex::default(),
            late: watch::channel(false).0,
        });
        let shared = books.clone();
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let books = shared.clone();
                books.open.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    serve(&books, stream).await;
                    books.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, books, listening }
    }

    pub(crate) fn provider(&self, client: HttpClientBuilder) -> OpenAi {
        let base = format!("http://{}/v1/", self.address);
        OpenAi::new(client.build().unwrap(), base).key("KEY")
    }

    pub(crate) fn open(&self) -> u64 {
        self.books.open.load(Ordering::SeqCst)
    }

    pub(crate) fn asked(&self) -> u32 {
        self.books.asked.lock().unwrap().values().sum()
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.books.keys.lock().unwrap().clone()
    }

    pub(crate) fn answer_what_was_late(&self) {
        self.books.late.send_replace(true);
    }
}

async fn serve(books: &Books, mut stream: TcpStream) {
    let Some((headers, body)) = read(&mut stream).await else { return };
    let key = headers.get("idempotency-key").cloned().unwrap();
    let bearer = headers.get("authorization").cloned().unwrap();
    books.keys.lock().unwrap().push(bearer.clone());
    let nth = {
        let mut asked = books.asked.lock().unwrap();
        let nth = asked.entry(key).or_default();
        *nth += 1;
        *nth
    };
    let prompt = body["messages"][0]["content"].as_str().unwrap().to_owned();
    match (prompt.as_str(), nth) {
        ("fails once", 1) => say(&mut stream, &plain(503, "busy")).await,
        ("refused", _) => say(&mut stream, &plain(401, &format!("bad key {bearer}"))).await,
        ("whole", _) => {
            let usage = json!({ "prompt_tokens": 1, "completion_tokens": 1 });
            let message = json!({ "message": { "content": "as a whole" } });
            let answer = json!({ "model": "m", "choices": [message], "usage": usage });
            say(&mut stream, &plain(200, &answer.to_string())).await;
        }
        ("cut off", _) => {
            say(&mut stream, HEAD).await;
            let choice = json!({ "delta": { "content": "Dear" }, "finish_reason": "length" });
            say(&mut stream, &event(&json!({ "choices": [choice] }))).await;
            say(&mut stream, "data: [DONE]\r\r").await;
        }
        ("breaks off", _) => {
            say(&mut stream, HEAD).await;
            say(&mut stream, &event(&words("half a sen"))).await;
        }
        ("hangs", _) => {
            say(&mut stream, HEAD).await;
            hang(&mut stream).await;
        }
        ("late", _) => {
            let mut late = books.late.subscribe();
            tokio::select! {
                _ = late.wait_for(|late| *late) => {}
                () = hang(&mut stream) => {}
            }
            answer(&mut stream, "too late").await;
        }
        ("echo", _) => answer(&mut stream, &format!("your key is {bearer}")).await,
        _ => answer(&mut stream, "fine").await,
    }
}

const HEAD: &str = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn plain(status: u16, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn words(text: &str) -> Value {
    json!({ "model": "m", "choices": [{ "delta": { "content": text } }] })
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

async fn say(stream: &mut TcpStream, text: &str) {
    // Whoever went away does not listen.
    let _ = stream.write_all(text.as_bytes()).await;
}

async fn answer(stream: &mut TcpStream, text: &str) {
    say(stream, HEAD).await;
    for part in text.split_inclusive(' ') {
        say(stream, &event(&words(part))).await;
    }
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 2, "completion_tokens": 3 } });
    say(stream, &event(&usage)).await;
    say(stream, "data: [DONE]\n\n").await;
}

async fn hang(stream: &mut TcpStream) {
    let mut rest = [0; 64];
    while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
}

async fn read(stream: &mut TcpStream) -> Option<(BTreeMap<String, String>, Value)> {
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
    let headers: BTreeMap<String, String> = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length")?.parse::<usize>().ok()?;
    while bytes.len() < end + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some((headers, serde_json::from_slice(&bytes[end..]).ok()?))
}
