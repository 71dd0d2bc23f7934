//! A server that only says what it is.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Speaks just enough to be connected to, and answers that nobody is there.
pub(crate) struct Fake {
    pub(crate) url: String,
    /// Subjects that were published to.
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    pub(crate) async fn of_version(version: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("nats://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, version, seen.clone()));
            }
        });
        Self { url, asked }
    }
}

async fn serve(stream: TcpStream, version: &'static str, asked: Arc<Mutex<Vec<String>>>) {
    let (reads, mut writes) = stream.into_split();
    let info = format!(
        r#"INFO {{"server_id":"F","version":"{version}","max_payload":1048576,"proto":1,"headers":true}}"#
    );
    writes.write_all(format!("{info}\r\n").as_bytes()).await.unwrap();
    let (mut lines, mut subscription) = (BufReader::new(reads).lines(), String::new());
    while let Ok(Some(line)) = lines.next_line().await {
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match words.as_slice() {
            ["PING"] => "PONG\r\n".to_owned(),
            ["SUB", _, id] => {
                subscription = (*id).to_owned();
                continue;
            }
            ["PUB", subject, reply, _] => {
                asked.lock().unwrap().push((*subject).to_owned());
                format!("HMSG {reply} {subscription} 16 16\r\nNATS/1.0 503\r\n\r\n\r\n")
            }
            _ => continue,
        };
        writes.write_all(answer.as_bytes()).await.unwrap();
    }
}
