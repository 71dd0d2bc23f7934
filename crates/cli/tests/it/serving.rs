//! `surefoot serve`: the API says what the command line says, and ends when it is asked to.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use expect_test::expect;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::database::Database;
use crate::shell::Shell;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

pub(crate) struct Serving {
    child: Child,
    place: String,
}

impl Serving {
    pub(crate) fn start(shell: &Shell, arguments: &[&str]) -> Self {
        let all = [&["serve", "--listen", "127.0.0.1:0", "--json"], arguments].concat();
        let mut command = shell.command(&all);
        let log = std::fs::File::create(shell.path("log")).unwrap();
        command.env("SUREFOOT_LOG", "trace").stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        let url = told["url"].as_str().unwrap();
        let place = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        Self { child, place }
    }

    /// What a page or the API answers, head and body, whatever it is.
    pub(crate) fn text(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.place).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.place);
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The status, and the body as JSON.
    fn ask(&self, line: &str, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
        let (status, body) = self.text(line, headers, body);
        (status, serde_json::from_str(&body).unwrap())
    }

    fn text(&self, line: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.place).unwrap();
        let mut request =
            format!("{line} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.place);
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    /// A page of the console, as a person reads it.
    fn page(&self, path: &str) -> String {
        let (status, markup) = self.text(&format!("GET {path}"), &[], "");
        assert_eq!(status, 200, "{markup}");
        let mut pieces = markup.split('<');
        let mut text = pieces.next().unwrap_or_default().to_owned();
        pieces.for_each(|piece| text += piece.split_once('>').map_or("", |(_, rest)| rest));
        let marks =
            [("&#60;", "<"), ("&#62;", ">"), ("&#39;", "'"), ("&#34;", "\""), ("&#38;", "&")];
        marks.iter().fold(text, |text, (mark, char)| text.replace(mark, char)).replace('`', "")
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(&format!("GET /api/v1{path}"), &[], "");
        assert_eq!(status, 200, "{body}");
        body
    }

    pub(crate) fn stop(mut self) -> i32 {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).unwrap();
        self.child.wait().unwrap().code().unwrap()
    }
}

/// What an explanation says in words, without quotes around names. How long ago something was is said anew each time.
fn sentences(explained: &Value) -> Vec<String> {
    let texts = |list: &str, member: &str| {
        let rows = explained.pointer(list).and_then(Value::as_array);
        let texts = rows.into_iter().flatten().filter_map(|row| row[member].as_str());
        texts.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut said = vec![explained["headline"].as_str().unwrap().to_owned()];
    said.extend(texts("/why_not_moving", "text"));
    for list in ["happened", "may_have_happened", "not_started"] {
        said.extend(texts(&format!("/effects/{list}"), "why"));
        said.extend(texts(&format!("/effects/{list}"), "effect_key"));
    }
    said.extend(texts("/would_repeat", "what"));
    said.extend(texts("/legal_actions", "why"));
    said.extend(texts("/legal_actions", "command"));
    assert!(said.len() > 8, "{explained}");
    said.into_iter().map(|text| text.replace('`', "")).collect()
}

/// What changes with the time of the reading.
fn bare(mut view: Value) -> Value {
    view.as_object_mut().unwrap().remove("read_at");
    view
}

#[test]
fn the_api_says_what_the_command_line_says() {
    let shell = Shell::published();
    let run = shell.unknown();
    let serving = Serving::start(&shell, &[]);
    for (line, path) in [
        (format!("explain {run}"), format!("/runs/{run}/explain")),
        (format!("show {run}"), format!("/runs/{run}")),
        ("runs".to_owned(), "/runs".to_owned()),
        ("events".to_owned(), "/events".to_owned()),
        ("workflows".to_owned(), "/workflows".to_owned()),
        (
            "versions reorder --scope berlin".to_owned(),
            "/workflows/reorder/versions?scope=berlin".to_owned(),
        ),
        ("audit".to_owned(), "/audit".to_owned()),
        ("signals".to_owned(), "/signals".to_owned()),
    ] {
        assert_eq!(bare(shell.json(&line)), bare(serving.get(&path)), "{line}");
    }
    let page = serving.page(&format!("/runs/{run}"));
    let explained = shell.json(&format!("explain {run}"));
    for said in sentences(&explained) {
        assert!(page.contains(&said), "no `{said}` in:\n{page}");
    }
    // A verb that was taken here is seen there.
    let tag = format!("\"{}\"", shell.revision(run));
    let resolve = format!("POST /api/v1/runs/{run}/steps/steps.1/resolve");
    let verdict = json!({ "reason": "asked", "verdict": { "not_performed": {} } }).to_string();
    let (status, done) = serving.ask(&resolve, &[("If-Match", &tag)], &verdict);
    assert_eq!((status, &done["run"]["state"]), (200, &json!("queued")));
    assert_eq!(shell.audit()[0], "resolve by tester: asked");
    assert_eq!(serving.stop(), 0);
}

#[test]
fn a_token_says_who_asks_and_what_they_may() {
    let shell = Shell::published();
    let run = shell.failed();
    shell.write("operators", &format!("# on call\nbob {TOKEN}\n"));
    let serving = Serving::start(&shell, &["--operator-token-file", "operators"]);
    let (status, body) = serving.ask("GET /api/v1/runs", &[], "");
    assert_eq!((status, &body["type"]), (401, &json!("urn:surefoot:problem:unauthorized")));
    let bearer = format!("Bearer {TOKEN}");
    let tag = format!("\"{}\"", shell.revision(run));
    let headers = [("Authorization", &*bearer), ("If-Match", &tag)];
    let retry = format!("POST /api/v1/runs/{run}/retry");
    let (status, body) = serving.ask(&retry, &headers, r#"{"reason": "mended"}"#);
    assert_eq!(status, 200, "{body}");
    assert_eq!(shell.audit()[0], "retry by bob: mended");
    assert_eq!(serving.stop(), 0);
    let log = std::fs::read_to_string(shell.path("log")).unwrap();
    assert!(!log.is_empty() && !log.contains(TOKEN), "{log}");
}

#[test]
fn it_says_why_it_does_not_listen() {
    let shell = Shell::published();
    let did = shell.run("serve --listen 0.0.0.0:0");
    assert_eq!(did.code, 2);
    expect![[r#"
        error: 0.0.0.0:0 can be reached from other machines, and everybody who does would be let in: give it tokens, or listen on 127.0.0.1
    "#]]
    .assert_eq(&did.err);
    shell.write("tokens", "secret\n");
    let did = shell.run("serve --viewer-token-file tokens");
    assert_eq!(did.code, 2);
    expect![[r#"
        error: `tokens` is not usable: the token in line 1 has fewer than 16 characters and could be guessed
    "#]]
    .assert_eq(&did.err);
    assert_eq!(shell.run("serve --scope berlin").code, 2);
    assert_eq!(Shell::new().run("serve").code, 3);
}

#[test]
fn it_serves_the_shared_store() {
    let (shell, database) = (Shell::new(), Database::new());
    let url = database.url();
    let with = |line: &str| {
        let words = line.split_whitespace().chain(["--store", url, "--json"]);
        let did = shell.with(&words.collect::<Vec<_>>());
        assert_eq!(did.code, 0, "{did:?}");
        serde_json::from_str::<Value>(&did.out).unwrap()
    };
    with("publish reorder.yaml --manifest manifest.json --app shop --scope berlin --actor ann");
    let serving = Serving::start(&shell, &["--store", url]);
    let event =
        json!({ "scope": "berlin", "type": "inventory.stockLow", "data": { "item": "bolt" } });
    let (status, emitted) = serving.ask("POST /api/v1/events", &[], &event.to_string());
    assert_eq!(status, 200, "{emitted}");
    let run = emitted["runs"][0].as_str().unwrap();
    assert_eq!(with("runs"), serving.get("/runs"));
    let cancel = format!("POST /api/v1/runs/{run}/cancel");
    let (_, done) = serving.ask(&cancel, &[("If-Match", "*")], r#"{"reason": "not needed"}"#);
    assert_eq!(done["outcome"], "canceled");
    assert_eq!(with(&format!("show {run}"))["state"], "canceled");
    assert_eq!(serving.stop(), 0);
}
