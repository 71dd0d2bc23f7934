//! A folder with a store, and the binary in it.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use surefoot_kernel_core::{
    Answer, App, ClaimRequest, Command as Call, Failure, Ids as _, Input, Micros, Mode,
    OperatorStore as _, Plans, ReconcileAnswer, RunFilter, RunId, RunStore as _,
};
use surefoot_store_sqlite::SqliteStore;
use surefoot_testkit::Drive;
use surefoot_worker::SystemIds;
use tempfile::TempDir;

pub(crate) const REORDER: &str = r#"inputs:
  item: { type: text, required: true }
triggers:
  stockLow:
    with: { item: "${{ trigger.item }}" }
steps:
  - mail: {}
  - pay: { item: "${{ inputs.item }}" }
    saveAs: receipt
    label: Pay the supplier
"#;

/// What the binary did.
#[derive(Debug)]
pub(crate) struct Did {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) struct Shell {
    folder: TempDir,
}

pub(crate) fn manifest() -> Value {
    let any = json!({ "type": "object" });
    let receipt = json!({
        "type": "object",
        "properties": { "id": { "type": "string" } },
        "required": ["id"],
        "additionalProperties": false,
    });
    let item = json!({
        "type": "object",
        "properties": { "item": { "type": "string" } },
        "required": ["item"],
    });
    json!({
        "id": "inventory",
        "version": 1,
        "triggers": [{ "kind": "stockLow", "event": "inventory.stockLow", "schema": item }],
        "actions": [
            { "name": "mail", "class": "idempotent", "input": any, "output": any },
            { "name": "pay", "class": "ambiguous", "input": any, "output": receipt },
        ],
    })
}

impl Shell {
    /// Without a store.
    pub(crate) fn new() -> Self {
        let shell = Self { folder: tempfile::tempdir().unwrap() };
        shell.write("manifest.json", &manifest().to_string());
        shell.write("reorder.yaml", REORDER);
        shell
    }

    /// With the workflow published for the app `shop` in scope `berlin`.
    pub(crate) fn published() -> Self {
        let shell = Self::new();
        let did = shell.run(
            "publish reorder.yaml --manifest manifest.json --app shop --scope berlin --actor ann",
        );
        assert_eq!(did.code, 0, "{did:?}");
        shell
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        Path::exists(&self.path(name))
    }

    /// The binary in the folder, with nothing of this process's own settings.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_surefoot"));
        command.current_dir(self.folder.path()).args(arguments).stdin(Stdio::null());
        for name in ["STORE", "APP", "SCOPE", "ACTOR", "LOG"] {
            command.env_remove(format!("SUREFOOT_{name}"));
        }
        command.env_remove("OTEL_EXPORTER_OTLP_ENDPOINT").env("USER", "tester");
        command
    }

    /// Words are separated by blanks.
    pub(crate) fn run(&self, line: &str) -> Did {
        self.with(&line.split_whitespace().collect::<Vec<_>>())
    }

    pub(crate) fn with(&self, arguments: &[&str]) -> Did {
        did(self.command(arguments).output().unwrap())
    }

    pub(crate) fn json(&self, line: &str) -> Value {
        let did = self.run(&format!("{line} --json"));
        serde_json::from_str(&did.out).unwrap_or_else(|error| panic!("{error}: {did:?}"))
    }

    /// Emits the event that starts the workflow.
    pub(crate) fn emitted(&self) -> RunId {
        let did = self.with(&[
            "emit",
            "inventory.stockLow",
            "--scope",
            "berlin",
            "--data",
            r#"{"item": "bolt"}"#,
            "--key",
            "bolt",
            "--json",
        ]);
        let emitted: Value = serde_json::from_str(&did.out).unwrap();
        emitted["runs"][0].as_str().unwrap().parse().unwrap()
    }

    /// Does in this process what a worker would do.
    pub(crate) fn work<T>(&self, work: impl AsyncFnOnce(&SqliteStore) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = SqliteStore::open(self.path("surefoot.db")).await.unwrap();
            work(&store).await
        })
    }

    /// The run's mail fails for good.
    pub(crate) fn failed(&self) -> RunId {
        let run = self.emitted();
        self.fails_with(run, Failure::new("NO_ADDRESS", "the supplier has no address"));
        run
    }

    /// The mail of a run that is due fails for good.
    pub(crate) fn fails_with(&self, run: RunId, failure: Failure) {
        self.work(async |store| {
            let (mut drive, _) = claimed(store, run).await;
            let answer = Answer::Failed { failure, retryable: false, retry_after: None };
            drive.answer(store, &"steps.0".into(), answer).await.unwrap();
        });
    }

    /// Nobody can tell what became of the run's payment.
    pub(crate) fn unknown(&self) -> RunId {
        let run = self.emitted();
        self.unexplained(run);
        run
    }

    /// The run has created its children, and waits for them.
    pub(crate) fn parked(&self, run: RunId) {
        self.work(async |store| {
            let (mut drive, command) = claimed(store, run).await;
            let Some(Call::Spawn(spawn)) = command else { panic!("{command:?}") };
            drive.spawn(store, spawn).await.unwrap();
        });
    }

    /// Nobody can tell what became of the payment of a run that is due.
    pub(crate) fn unexplained(&self, run: RunId) {
        self.work(async |store| {
            let (mut drive, _) = claimed(store, run).await;
            let mailed = Answer::Succeeded { output: json!({}) };
            drive.answer(store, &"steps.0".into(), mailed).await.unwrap();
            drive.to_call(store).await.unwrap();
            let step = || "steps.1".into();
            // The provider is asked in the same breath: a worker would come back after a second.
            let answer = ReconcileAnswer::Unknown { why: "no such service".to_owned() };
            drive.take(store, Input::Reconciled { step: step(), answer }).await.unwrap();
        });
    }

    pub(crate) fn revision(&self, run: RunId) -> u64 {
        self.json(&format!("show {run}"))["revision"].as_u64().unwrap()
    }

    pub(crate) fn state(&self, run: RunId) -> String {
        self.json(&format!("show {run}"))["state"].as_str().unwrap().to_owned()
    }

    /// The verbs of the audit, newest first, as `verb by actor: reason`.
    pub(crate) fn audit(&self) -> Vec<String> {
        self.work(async |store| {
            let rows = store.audit_list(&App::from("shop"), None, 100).await.unwrap();
            rows.iter()
                .map(|row| format!("{} by {}: {}", row.verb, row.actor, row.reason))
                .collect()
        })
    }

    /// Everything that a change of a run would change.
    pub(crate) fn fingerprint(&self) -> Vec<String> {
        let runs = self.work(async |store| {
            let filter = RunFilter { limit: 100, ..RunFilter::default() };
            let rows = store.run_list(filter).await.unwrap().rows;
            rows.iter().map(|row| format!("{:?}", row.run)).collect::<Vec<_>>()
        });
        runs.into_iter().chain(self.audit()).collect()
    }
}

/// The run in the hands of a worker, and what it is to call first.
async fn claimed(store: &SqliteStore, run: RunId) -> (Drive, Option<Call>) {
    let plan = store.run_detail(run).await.unwrap().unwrap().run.origin.footprint.clone();
    let request = ClaimRequest {
        app: App::from("shop"),
        mode: Mode::Execute,
        footprints: vec![plan],
        tree: None,
        limit: 1,
        session: SystemIds.session(),
        nonce: 1,
        lease: Micros::from_secs(120),
        plans: Plans::default(),
    };
    assert_eq!(store.run_claim(request).await.unwrap().len(), 1);
    let mut drive = Drive::load(store, run).await.unwrap();
    let command = drive.to_call(store).await.unwrap();
    (drive, command)
}

pub(crate) fn did(output: Output) -> Did {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap_or(-1);
    Did { code, out: text(output.stdout), err: text(output.stderr) }
}

/// Ids, times and keys differ in every run of a test: each becomes the same word, as wide as it was.
pub(crate) fn normal(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (shown, length) = id(rest)
            .or_else(|| key(rest))
            .or_else(|| time(rest))
            .unwrap_or_else(|| (first.to_string(), first.len_utf8()));
        out.push_str(&shown);
        rest = &rest[length..];
    }
    out
}

fn id(text: &str) -> Option<(String, usize)> {
    let prefix = ["run_", "evt_", "ver_", "wrk_"].into_iter().find(|it| text.starts_with(it))?;
    let digits = text.get(4..36)?;
    let is_id = digits.chars().all(|c| c.is_ascii_hexdigit());
    is_id.then(|| (format!("{prefix}{}", "0".repeat(32)), 36))
}

fn key(text: &str) -> Option<(String, usize)> {
    let digits = text.get(..64)?;
    let is_key = digits.chars().all(|c| c.is_ascii_hexdigit());
    is_key.then(|| ("f".repeat(64), 64))
}

fn time(text: &str) -> Option<(String, usize)> {
    let form = |length: usize| {
        let text = text.get(..length)?;
        let is_time = text.parse::<surefoot_kernel_core::Timestamp>().is_ok();
        is_time.then(|| {
            let shown = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c });
            (shown.collect::<String>(), length)
        })
    };
    form(27).or_else(|| form(20))
}
