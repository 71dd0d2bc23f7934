//! Dry runs of an application that ships the command line with its module built in.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::Deserialize;
use surefoot_cli::{Cli, Exit};
use surefoot_kernel_core::{Mode, OperatorStore as _, RunFilter, RunState};
use surefoot_language::{
    ActionResult, Idempotent, IdempotentCx, Module, ModuleError, PlanResult, Planned, StepCx,
};
use surefoot_store_sqlite::SqliteStore;
use tempfile::TempDir;

use crate::database::Database;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Greeting {
    to: String,
}

struct Greet;

impl Idempotent for Greet {
    const NAME: &'static str = "greet";
    type Input = Greeting;
    type Output = String;

    async fn run(&self, _: &IdempotentCx, _: Greeting) -> ActionResult<String> {
        panic!("a dry run has no way to an effect")
    }

    async fn plan(&self, _: &StepCx, input: &Greeting) -> PlanResult<String> {
        Ok(Planned::new(format!("Greet {}", input.to)))
    }
}

fn module() -> Result<Module, ModuleError> {
    Module::builder("greeter", 1).idempotent(Greet).build()
}

/// An application with its workflow published.
struct App {
    folder: TempDir,
}

impl App {
    fn published() -> Self {
        let app = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::write(app.path("hello.yaml"), "steps:\n  - greet: { to: ann }\n").unwrap();
        let file = app.path("hello.yaml");
        assert_eq!(app.run(app.cli(), &["publish", file.to_str().unwrap()]), Exit::Done);
        app
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Without code: it knows the manifest only.
    fn cli(&self) -> Cli {
        Cli::new().manifest(module().unwrap().manifest().clone())
    }

    fn with_module(&self) -> Cli {
        self.cli().module(|_| module())
    }

    fn run(&self, cli: Cli, line: &[&str]) -> Exit {
        self.run_on(&format!("sqlite:{}", self.path("store.db").display()), cli, line)
    }

    fn run_on(&self, store: &str, cli: Cli, line: &[&str]) -> Exit {
        let place = ["--store", store, "--app", "shop", "--scope", "berlin", "--actor", "ann"];
        let words = ["app"].iter().chain(line).chain(&place).map(|word| OsString::from(*word));
        cli.run(words.collect::<Vec<_>>())
    }

    fn dry_runs(&self) -> Vec<RunState> {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let store = SqliteStore::open(self.path("store.db")).await.unwrap();
            let mode = Some(Mode::DryRun);
            let page = store.run_list(RunFilter { mode, limit: 10, ..RunFilter::default() }).await;
            page.unwrap().rows.iter().map(|row| row.run.state()).collect()
        })
    }
}

#[test]
fn a_dry_run_completes_by_itself_where_the_module_is_built_in() {
    let app = App::published();
    assert_eq!(app.run(app.with_module(), &["dry-run", "hello", "--wait", "120"]), Exit::Done);
    assert_eq!(app.dry_runs(), [RunState::Succeeded]);
}

#[test]
fn dry_runs_are_served_to_those_who_have_no_module() {
    let app = App::published();
    assert_eq!(app.run(app.cli(), &["dry-run", "hello", "--wait", "0"]), Exit::Finding);
    assert_eq!(app.dry_runs(), [RunState::Queued]);
    assert_eq!(app.run(app.cli(), &["serve-dry-runs", "--once"]), Exit::Usage);
    assert_eq!(app.run(app.with_module(), &["serve-dry-runs", "--once"]), Exit::Done);
    assert_eq!(app.dry_runs(), [RunState::Succeeded]);
}

#[test]
fn a_module_is_built_in_for_each_kind_of_store() {
    let (app, database) = (App::published(), Database::new());
    let file = app.path("hello.yaml");
    let on_server = |cli, line: &[&str]| app.run_on(database.url(), cli, line);
    assert_eq!(on_server(app.cli(), &["publish", file.to_str().unwrap()]), Exit::Done);
    // The module of another kind of store is of no use here.
    let line = ["serve-dry-runs", "--once"];
    assert_eq!(on_server(app.with_module(), &line), Exit::Usage);
    let both = || app.with_module().module_on_postgres(|_| module());
    assert_eq!(on_server(both(), &line), Exit::Done);
    assert_eq!(on_server(both(), &["dry-run", "hello", "--wait", "120"]), Exit::Done);
    assert_eq!(app.run(both(), &["dry-run", "hello", "--wait", "120"]), Exit::Done);
}
