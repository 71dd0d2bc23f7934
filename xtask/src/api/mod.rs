//! `cargo xtask api`: the description of the HTTP API is valid, and requests made from it find nothing.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use surefoot_test_servers::Folder;

use crate::failure::Failure;
use crate::process;
use crate::services::fetch;
use crate::workspace::Workspace;

const HELP: &str = "\
Holds a served API against its OpenAPI description: the description is valid, and thousands of requests made from it, right
and wrong, are answered as it says. Uses schemathesis and openapi-spec-validator from Python's package index.

Usage: cargo xtask api [--examples N]

      --examples N   so many random requests for each operation (default: 50)
  -h, --help         this text";

const EXAMPLES: u32 = 50;
/// What is installed, by version.
const PACKAGES: &[&str] = &["schemathesis==4.32.5", "openapi-spec-validator==0.9.0"];
const CONFIG: &str = include_str!("schemathesis.toml");
/// Of a server that lives as long as the check, on this machine.
const TOKEN: &str = "of-the-check-0123456789abcdef";
const VALIDATE: &str = "\
import json, sys
from openapi_spec_validator import validate
document = json.load(open(sys.argv[1]))
validate(document)
print('valid:', len(document['paths']), 'paths')";

/// Runs the check.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let Some(examples) = examples(arguments)? else {
        println!("{HELP}");
        return Ok(());
    };
    let workspace = Workspace::load()?;
    let target = workspace.target();
    let tools = install(target)?;
    let mut build = process::cargo();
    build.current_dir(&workspace.root).args(["build", "--locked", "-p", "surefoot-cli"]);
    process::run("building surefoot", &mut build)?;
    let program = target.join("debug/surefoot");
    let folder = Folder::new(&target.join("tools"), "api")
        .map_err(|error| Failure::new(error.to_string()))?;
    let show = folder.path().join("show");
    let mut demo = Command::new(&program);
    demo.args(["demo", "--events", "20", "--dir"]).arg(&show).stdout(Stdio::null());
    process::run("a demo, for runs in every state", &mut demo)?;
    let store = format!("sqlite:{}", show.join("inventory.db").display());
    let ask = |words: &[&str]| asked(&program, &store, words);
    let runs = ask(&["runs", "--state", "needs_attention", "--limit", "1"])?;
    let scope = text(&ask(&["workflows"])?, "/workflows/0/scope")?;
    let versions = ask(&["versions", "reorder", "--scope", &scope])?;
    let config = CONFIG
        .replace("RUN\"", &format!("{}\"", text(&runs, "/runs/0/id")?))
        .replace("VERSION\"", &format!("{}\"", text(&versions, "/versions/0/id")?));
    let (settings, described) =
        (folder.path().join("schemathesis.toml"), folder.path().join("api.json"));
    write(&settings, &config)?;
    let tokens = folder.path().join("tokens");
    write(&tokens, &format!("check {TOKEN}\n"))?;
    let serving = Serving::start(&program, &store, &tokens)?;
    let fetched = process::capture(Command::new("python3").args([
        "-c",
        "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())",
        &serving.document(),
    ]))?;
    write(&described, &fetched)?;
    let mut validate = python(&tools);
    validate.args(["-c", VALIDATE]).arg(&described);
    process::run("is the description valid?", &mut validate)?;
    process::run("requests made from it", &mut schemathesis(&tools, &settings, &serving, examples))
}

fn examples(arguments: &[String]) -> Result<Option<u32>, Failure> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => Ok(Some(EXAMPLES)),
        ["-h" | "--help"] => Ok(None),
        ["--examples", number] => number
            .parse()
            .map(Some)
            .map_err(|_| Failure::new(format!("`{number}` is no number of examples"))),
        _ => Err(Failure::new(format!("`{}` is not understood\n\n{HELP}", words.join(" ")))),
    }
}

/// The folder with the packages, fetched first if it is not there.
fn install(target: &Path) -> Result<PathBuf, Failure> {
    let tools = target.join("tools");
    std::fs::create_dir_all(&tools).map_err(|error| fetch::failed("make", &tools, &error))?;
    let name = PACKAGES.join("+").replace("==", "-");
    fetch::once(&tools, &name, |folder| {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]);
        pip.arg(folder).args(PACKAGES);
        process::run("fetching the checkers with pip", &mut pip).map_err(|failure| {
            Failure::new(format!("{failure} (it takes Python 3 with pip, and a package index)"))
        })
    })
}

fn python(tools: &Path) -> Command {
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", tools);
    python
}

fn schemathesis(tools: &Path, settings: &Path, serving: &Serving, examples: u32) -> Command {
    let mut run = python(tools);
    run.current_dir(serving.folder())
        .args(["-m", "schemathesis.cli", "--config-file"])
        .arg(settings);
    run.args(["run", &serving.document(), "--checks", "all", "--continue-on-failure"]);
    run.args(["--phases", "examples,coverage,fuzzing", "--generation-deterministic"]);
    // Streams do not end.
    run.args(["--exclude-path-regex", "/live$"]);
    run.args(["--header", &format!("Authorization: Bearer {TOKEN}")]);
    run.args(["--max-examples", &examples.to_string()]);
    run
}

/// What the command line prints as JSON.
fn asked(program: &Path, store: &str, words: &[&str]) -> Result<Value, Failure> {
    let mut command = Command::new(program);
    command.args(words).args(["--store", store, "--json"]);
    parsed(&process::capture(&mut command)?)
}

fn parsed(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::new(format!("no JSON: {error}: {text}")))
}

fn text(value: &Value, pointer: &str) -> Result<String, Failure> {
    let found = value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    found.ok_or_else(|| Failure::new(format!("there is nothing at `{pointer}` of {value}")))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| fetch::failed("write", path, &error))
}

/// A server, killed when it is dropped.
struct Serving {
    child: Child,
    url: String,
    folder: PathBuf,
}

impl Serving {
    fn start(program: &Path, store: &str, tokens: &Path) -> Result<Self, Failure> {
        let mut command = Command::new(program);
        command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--store", store]);
        command.arg("--operator-token-file").arg(tokens).stdout(Stdio::piped());
        let failed = |error| Failure::new(format!("`surefoot serve` does not start: {error}"));
        let mut child = command.spawn().map_err(failed)?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line).map_err(failed)?;
        }
        let folder = tokens.parent().unwrap_or(tokens).to_owned();
        let mut serving = Self { child, url: String::new(), folder };
        serving.url = text(&parsed(&line)?, "/url")?;
        Ok(serving)
    }

    fn document(&self) -> String {
        format!("{}api/v1/openapi.json", self.url)
    }

    fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_examples_is_a_number() {
        let of =
            |words: &[&str]| examples(&words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&[]), Ok(Some(EXAMPLES)));
        assert_eq!(of(&["--examples", "7"]), Ok(Some(7)));
        assert_eq!(of(&["--help"]), Ok(None));
        assert!(of(&["--examples", "many"]).is_err());
        assert!(of(&["--example"]).is_err());
    }

    #[test]
    fn the_settings_hold_what_is_put_in() {
        let config: toml::Table = toml::from_str(CONFIG).unwrap();
        let run = config["parameters"]["path.run"].as_str();
        assert_eq!(run, Some("RUN"));
    }
}
