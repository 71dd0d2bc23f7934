//! A supplier with an HTTP API, and a model behind one.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::json;

/// What a supplier was asked.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) key: String,
    pub(crate) secret: String,
    pub(crate) body: String,
}

/// A supplier with an HTTP API.
pub(crate) struct Supplier {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Supplier {
    pub(crate) fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let books = asked.clone();
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), &books);
            }
        });
        Self { address, asked }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, books: &Mutex<Vec<Asked>>) {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        let read = stream.read(&mut part).unwrap();
        bytes.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let header = |name: &str| {
            let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name));
            line.map(|line| line[name.len()..].trim().to_owned()).unwrap_or_default()
        };
        let length = header("content-length:").parse().unwrap_or(0);
        if body.len() < length {
            continue;
        }
        let mut first = head.split(' ');
        let (method, path) = (first.next().unwrap().to_owned(), first.next().unwrap().to_owned());
        let answer = match path.as_str() {
            "/orders" => json!({ "id": "o-1", "for": header("authorization:") }),
            _ => json!({ "cents": 25 }),
        };
        let (key, secret) = (header("idempotency-key:"), header("authorization:"));
        let body = body.to_owned();
        books.lock().unwrap().push(Asked { method, path, key, secret, body });
        let answer = answer.to_string();
        let length = answer.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all((head + &answer).as_bytes()).unwrap();
        return;
    }
}
