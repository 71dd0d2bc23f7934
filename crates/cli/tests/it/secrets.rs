//! A secret of a workflow, looked for in every place where something of a run is kept or shown, on both stores.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use surefoot_actions::ai::{Ai, AiWorker, GenerateText, OpenAi};
use surefoot_actions::event::{EmitEvent, SendSignal};
use surefoot_actions::http::{HttpCall, HttpClient, HttpRequest};
use surefoot_actions::secret::StaticSecrets;
use surefoot_kernel_core::{Event, RunId, RunState, TaskStore, TxStore};
use surefoot_language::{Module, On};
use surefoot_store_postgres::PostgresStore;
use surefoot_store_postgres::sqlx::{self, AssertSqlSafe, Connection as _, PgConnection};
use surefoot_store_sqlite::SqliteStore;
use surefoot_worker::{Kernel, Publication};

use crate::database::Database;
use crate::serving::Serving;
use crate::shell::Shell;

/// It looks different in a URL and in JSON.
const CANARY: &str = "canary-4711-\"x/";
/// What each of its forms has in it.
const MARK: &str = "canary";
/// The same, where bytes are written as digits.
const MARK_HEX: &str = "63616e617279";
const PATIENCE: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_millis(20);

const TOLD: &str = r#"
inputs:
  base: { type: text, required: true }
steps:
  - httpRequest:
      method: POST
      url: "${{ inputs.base }}/echo"
      headers: { Authorization: { secret: KEY, prefix: "Bearer " }, X-Key: { secret: KEY } }
      query: { key: { secret: KEY } }
      json: { pieces: 3 }
      confirm: { url: "${{ inputs.base }}/confirm", headers: { Authorization: { secret: KEY } } }
    saveAs: answer
  - httpCall:
      method: POST
      url: "${{ inputs.base }}/echo"
      headers: { Authorization: { secret: KEY } }
      json: { told: "${{ answer.body.told }}" }
  - generateText: { prompt: "repeat ${{ answer.body.told }}" }
    saveAs: said
  - emitEvent: { type: shop.told, data: { said: "${{ said.text }}", head: "${{ answer.headers['x-echo'] }}" } }
  - signal: { kind: told, key: k-1, data: { told: "${{ answer.body.told }}" } }
"#;

const REFUSED: &str = r#"
inputs:
  base: { type: text, required: true }
steps:
  - httpCall:
      url: "${{ inputs.base }}/refuse"
      headers: { Authorization: { secret: KEY } }
      query: { key: { secret: KEY } }
"#;

const LOST: &str = r#"
inputs:
  base: { type: text, required: true }
steps:
  - httpRequest:
      method: POST
      url: "${{ inputs.base }}/break"
      headers: { Authorization: { secret: KEY } }
      confirm: { url: "${{ inputs.base }}/refuse", query: { key: { secret: KEY } } }
"#;

const ASTRAY: &str = r#"
inputs:
  base: { type: text, required: true }
steps:
  - httpCall:
      url: "${{ inputs.base }}/away"
      query: { key: { secret: KEY } }
"#;

const THINK: &str = "steps:\n  - generateText: { prompt: refuse }\n";

const WORKFLOWS: [(&str, &str, RunState); 5] = [
    ("told", TOLD, RunState::Succeeded),
    ("refused", REFUSED, RunState::Failed),
    ("lost", LOST, RunState::NeedsAttention),
    ("astray", ASTRAY, RunState::Failed),
    ("think", THINK, RunState::Failed),
];

/// A server that repeats every secret that it is told, wherever it can.
fn gossip() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || repeat(stream.unwrap()));
        }
    });
    address
}

fn repeat(mut stream: TcpStream) -> Option<()> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    let (head, body) = loop {
        let read = stream.read(&mut part).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = header(head, "content-length").parse().unwrap_or(0);
        if body.len() >= length {
            break (head.to_owned(), body.to_owned());
        }
    };
    let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let told = format!("{} {}", header(&head, "authorization"), header(&head, "x-key"));
    let all = json!({ "told": told, "target": target, "body": body }).to_string();
    let (status, more, length, body) = match target.split('?').next().unwrap_or_default() {
        "/echo" => (200, format!("x-echo: {told}\r\n"), all.len(), all),
        "/break" => (200, String::new(), all.len() + 10, all),
        "/away" => (302, format!("location: http://10.0.0.7{target}\r\n"), 0, String::new()),
        "/v1/chat/completions" if body.contains("repeat") => {
            let message = json!({ "message": { "content": format!("your key is {told}") } });
            let usage = json!({ "prompt_tokens": 1, "completion_tokens": 1 });
            let said = json!({ "model": "m", "choices": [message], "usage": usage }).to_string();
            (200, String::new(), said.len(), said)
        }
        _ => (403, String::new(), all.len(), all),
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{more}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).ok()
}

fn header(head: &str, name: &str) -> String {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut found = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
}

/// All that is logged in this process, at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn begin() -> Self {
        let log = Self::default();
        let writer = log.clone();
        tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .init();
        log
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

/// What was found where. Nothing of it may have the secret.
#[derive(Default)]
struct Places(Vec<(String, String)>);

impl Places {
    #[track_caller]
    fn add(&mut self, place: impl Into<String>, text: String) {
        let place = place.into();
        let at = text.find(MARK).or_else(|| text.find(MARK_HEX));
        let around = at.map(|at| text[..at].chars().rev().take(200).collect::<Vec<_>>());
        let around = around.map(|it| it.into_iter().rev().collect::<String>());
        assert!(around.is_none(), "{place} has the secret behind: {around:?}");
        self.0.push((place, text));
    }

    /// Whether a text stands in a place whose name begins like this.
    fn holds(&self, place: &str, word: &str) -> bool {
        self.0.iter().any(|(known, text)| known.starts_with(place) && text.contains(word))
    }
}

/// Plays every workflow on a store, and a dry run.
async fn play<S: TxStore + TaskStore>(
    store: S,
    server: SocketAddr,
    places: &mut Places,
) -> Vec<RunId> {
    let client = HttpClient::builder()
        .allow_network("127.0.0.0".parse().unwrap(), 8)
        .secrets(StaticSecrets::default().with("KEY", CANARY))
        .build()
        .unwrap();
    let module: Module<On<S::Tx>> = Module::builder("told", 1)
        .ambiguous(HttpRequest::new(client.clone()))
        .idempotent(HttpCall::new(client.clone()))
        .idempotent(GenerateText::new(Ai::new(store.clone(), "m")))
        .transactional(EmitEvent::new(store.clone()))
        .transactional(SendSignal::new(store.clone()))
        .build()
        .unwrap();
    let provider = OpenAi::new(client, format!("http://{server}/v1")).key("KEY");
    let thinking = AiWorker::new("shop", store.clone(), provider).scan_every(SOON).start();
    let kernel = Kernel::new("shop", store);
    let scope = kernel.scope("berlin");
    let start = |workflow: &str| {
        let inputs = json!({ "base": format!("http://{server}") });
        Event::start(workflow, if workflow == "think" { json!({}) } else { inputs })
    };
    let mut runs = Vec::new();
    for (workflow, source, _) in WORKFLOWS {
        let publication = Publication::new(workflow, source);
        let published = scope.publish(module.manifest(), publication).await.unwrap();
        let bill = scope.dry_run(&module, published.version, start(workflow)).await.unwrap();
        places.add("a bill of effects", serde_json::to_string(&bill).unwrap());
    }
    let working = kernel.worker(module).scan_every(SOON).start().await.unwrap();
    for (workflow, _, state) in WORKFLOWS {
        let run = scope.emit(start(workflow)).await.unwrap().runs[0];
        let ended = tokio::time::timeout(PATIENCE, kernel.await_run(run)).await;
        let ended = ended.unwrap().unwrap();
        assert_eq!(ended.state(), state, "{workflow}: {ended:?}");
        places.add(format!("the end of `{workflow}`"), format!("{ended:?}"));
        runs.push(run);
    }
    working.stop(Duration::from_secs(5)).await;
    thinking.stop().await;
    runs
}

/// All that the command line says of the runs, for people and as JSON.
fn said(shell: &Shell, store: &str, runs: &[RunId], places: &mut Places) {
    let mut lines: Vec<String> = [
        "runs",
        "effects",
        "events",
        "signals",
        "workflows",
        "audit",
        "health",
        "doctor",
        "versions told --scope berlin",
    ]
    .map(str::to_owned)
    .into();
    for run in runs {
        lines.extend([format!("show {run}"), format!("explain {run}")]);
    }
    for line in lines {
        for json in ["", " --json"] {
            let did = shell.run(&format!("{line} --store {store}{json}"));
            assert!(did.code <= 1, "{line}: {did:?}");
            places.add(format!("`surefoot {line}{json}` on {store}"), did.out + &did.err);
        }
    }
}

/// Every page of the console that can be reached by its links, the API, and its description.
fn browsed(shell: &Shell, store: &str, runs: &[RunId], places: &mut Places) {
    let serving = Serving::start(shell, &["--store", store]);
    let mut open: Vec<String> = ["/", "/api/v1/openapi.json", "/metrics"].map(str::to_owned).into();
    open.extend(
        ["runs", "effects", "events", "signals", "workflows", "audit", "health"]
            .map(|list| format!("/api/v1/{list}")),
    );
    for run in runs {
        open.extend(["", "/explain"].map(|what| format!("/api/v1/runs/{run}{what}")));
    }
    let mut seen: BTreeSet<String> = open.iter().cloned().collect();
    while let Some(path) = open.pop() {
        let text = serving.text(&path);
        for link in text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let link = link.split('#').next().unwrap_or_default().replace("&amp;", "&");
            if link.starts_with('/') && seen.len() < 300 && seen.insert(link.clone()) {
                open.push(link);
            }
        }
        places.add(format!("{path} on {store}"), text);
    }
    assert!(
        runs.iter().all(|run| seen.iter().any(|path| path.starts_with(&format!("/runs/{run}"))))
    );
    assert_eq!(serving.stop(), 0);
    places.add("the log of `surefoot serve`", std::fs::read_to_string(shell.path("log")).unwrap());
}

/// Every row of every table, as text.
async fn dumped(url: &str, places: &mut Places) {
    let mut conn = PgConnection::connect(url).await.unwrap();
    let tables = "SELECT quote_ident(table_schema) || '.' || quote_ident(table_name) FROM information_schema.tables \
                  WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&mut conn).await.unwrap();
    assert!(tables.iter().any(|table| table == "surefoot.task"), "{tables:?}");
    for table in tables {
        let rows = AssertSqlSafe(format!("SELECT t::text FROM {table} AS t"));
        let rows: Vec<String> = sqlx::query_scalar(rows).fetch_all(&mut conn).await.unwrap();
        places.add(format!("the table {table}"), rows.concat());
    }
}

fn filed(shell: &Shell, places: &mut Places) {
    for file in ["surefoot.db", "surefoot.db-wal"] {
        let bytes = std::fs::read(shell.path(file)).unwrap_or_default();
        places.add(file, String::from_utf8_lossy(&bytes).into_owned());
    }
}

#[test]
fn a_secret_is_kept_and_shown_nowhere() {
    let (log, server) = (Log::begin(), gossip());
    let (shell, database) = (Shell::new(), Database::new());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut places = Places::default();
    let file = shell.path("surefoot.db");
    let embedded = runtime.block_on(async {
        let store = SqliteStore::open(Path::new(&file)).await.unwrap();
        play(store, server, &mut places).await
    });
    let shared = runtime.block_on(async {
        let store = PostgresStore::open(database.url()).await.unwrap();
        let runs = play(store, server, &mut places).await;
        dumped(database.url(), &mut places).await;
        runs
    });
    filed(&shell, &mut places);
    for (store, runs) in [("sqlite:surefoot.db", &embedded), (database.url(), &shared)] {
        said(&shell, store, runs, &mut places);
        browsed(&shell, store, runs, &mut places);
    }
    places.add("the log", log.text());
    // What was looked at is what there is: the server's words, with stars where the secret stood.
    for place in [
        "a bill of effects",
        "the end of",
        "the table surefoot.",
        "surefoot.db",
        "`surefoot show",
        "`surefoot explain",
        "`surefoot signals",
        "/runs/",
        "/api/v1/runs/",
    ] {
        assert!(places.holds(place, "***"), "{place} has nothing of what was hidden");
    }
    for word in ["your key is Bearer ***", "HTTP_REFUSED", "HTTP_ASTRAY", "AI_REFUSED", "shop.told"]
    {
        assert!(places.holds("", word), "{word} was looked at nowhere");
    }
    assert!(log.text().contains("surefoot_worker"), "{}", log.text());
}
