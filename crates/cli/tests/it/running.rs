//! `run`: a workflow of ready-made actions, without any application.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::shell::{Shell, did};

const ORDER: &str = include_str!("../../../../examples/actions/order.yaml");
const CANARY: &str = "canary-0815";

/// What a supplier was asked.
#[derive(Clone)]
struct Asked {
    method: String,
    path: String,
    key: String,
    secret: String,
}

/// A supplier with an HTTP API.
struct Supplier {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Supplier {
    fn open() -> Self {
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

    fn asked(&self) -> Vec<Asked> {
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
        books.lock().unwrap().push(Asked { method, path, key, secret });
        let answer = answer.to_string();
        let length = answer.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all((head + &answer).as_bytes()).unwrap();
        return;
    }
}

#[test]
fn the_example_runs_without_any_code_and_its_secret_is_shown_nowhere() {
    let (shell, supplier) = (Shell::new(), Supplier::open());
    shell.write("order.yaml", ORDER);
    let inputs = json!({ "supplier": format!("http://{}", supplier.address) }).to_string();
    let line = ["run", "order.yaml", "--inputs", &inputs, "--allow-network", "127.0.0.0/8"];
    let mut command = shell.command(&line);
    command.env("SUREFOOT_SECRET_SUPPLIER_KEY", CANARY).env("SUREFOOT_LOG", "trace");
    let did = did(command.output().unwrap());
    assert_eq!(did.code, 0, "{did:?}");
    assert!(did.out.contains(": succeeded"), "{did:?}");
    let asked = supplier.asked();
    let asked: Vec<(&str, &str)> =
        asked.iter().map(|it| (it.method.as_str(), it.path.as_str())).collect();
    assert_eq!(asked, [("GET", "/prices/bolt"), ("POST", "/orders")]);
    assert!(
        supplier
            .asked()
            .iter()
            .all(|it| it.key.len() == 64 && it.secret == format!("Bearer {CANARY}"))
    );

    let runs = shell.json("runs");
    let run = runs["runs"][0]["id"].as_str().unwrap().to_owned();
    let shown = shell.run(&format!("show {run} --json"));
    let view: Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(view["result_message"], "Ordered 3 boxes of bolt (o-1)");
    let all = [did.out, did.err, shown.out, shell.run(&format!("explain {run}")).out];
    assert!(!all.concat().contains("canary"), "{all:?}");
    for file in ["surefoot.db", "surefoot.db-wal"] {
        let bytes = std::fs::read(shell.path(file)).unwrap_or_default();
        assert!(!bytes.windows(6).any(|part| part == b"canary"), "{file}");
    }
}

#[test]
fn what_cannot_run_creates_nothing() {
    let shell = Shell::new();
    shell.write("bad.yaml", "steps:\n  - httpReqest: { url: x }\n");
    let did = shell.run("run bad.yaml");
    assert_eq!(did.code, 1, "{did:?}");
    assert!(did.out.contains("did you mean `httpRequest`"), "{did:?}");
    assert!(!shell.has("surefoot.db"));
    shell.write("think.yaml", "steps:\n  - generateText: { prompt: x }\n");
    let did = shell.run("run think.yaml");
    assert_eq!(did.code, 2, "{did:?}");
    assert!(did.err.contains("--ai-url"), "{did:?}");
    let did = shell.run("run reorder.yaml --store postgres://nowhere/x");
    assert_eq!(did.code, 2, "{did:?}");
}

#[test]
fn a_run_that_fails_says_why() {
    let shell = Shell::new();
    shell.write("inside.yaml", "steps:\n  - httpCall: { url: 'http://127.0.0.1:1/' }\n");
    let did = shell.run("run inside.yaml");
    assert_eq!(did.code, 1, "{did:?}");
    assert!(did.out.contains("FORBIDDEN"), "{did:?}");
    assert!(did.out.contains("not an address of the public internet"), "{did:?}");
}
