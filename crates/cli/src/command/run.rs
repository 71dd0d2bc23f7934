//! `run`: a workflow of ready-made actions on the embedded store, without an application.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::time::Duration;

use serde_json::{Value, json};
use surefoot_kernel_core::plan::Footprint;
use surefoot_kernel_core::{App, Event, PlanStore as _, RunId, Scope, WorkflowKey};
use surefoot_language::compile;
use surefoot_operator::Operator;
use surefoot_store_sqlite::SqliteStore;
use surefoot_worker::{Kernel, Publication};

use super::publish::refused;
use super::watch::follow;
use super::{Context, Printed};
use crate::builtin::{self, AiPlace, BuiltInModule};
use crate::error::CliError;
use crate::input::{json_of, text_of};
use crate::page::to_stderr;
use crate::store::{self, Need};

/// App and scope where none is named.
const LOCAL: &str = "local";
/// How often the store is asked how far the run is.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a run may go on after an interrupt before it is handed over.
const GRACE: Duration = Duration::from_secs(5);

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The workflow; `-` is standard input.
    file: PathBuf,
    /// Its inputs: JSON, or a file with JSON.
    #[arg(long, value_name = "JSON or FILE", default_value = "{}")]
    inputs: String,
    /// The workflow's key; by default, the file's name without its ending.
    #[arg(long, value_name = "KEY", value_parser = WorkflowKey::from_str)]
    workflow: Option<WorkflowKey>,
    /// Let its requests also go to a network that is not of the public internet: `10.0.0.0/8`. Can be given several
    /// times.
    #[arg(long, value_name = "NETWORK", value_parser = network)]
    allow_network: Vec<(IpAddr, u8)>,
    /// Where models are asked: the base URL of a server that speaks OpenAI's API. Its key is the secret `AI_KEY`, from
    /// `SUREFOOT_SECRET_AI_KEY`.
    #[arg(long, value_name = "URL", env = "SUREFOOT_AI_URL")]
    ai_url: Option<String>,
    /// Which model is asked.
    #[arg(long, value_name = "MODEL", env = "SUREFOOT_AI_MODEL")]
    ai_model: Option<String>,
}

pub(crate) async fn run(cx: &Context<'_>, args: RunArgs) -> Result<Printed, CliError> {
    let workflow = key_of(&args)?;
    let source = text_of(&args.file)?;
    let inputs = json_of("`--inputs`", &args.inputs)?;
    if !store::is_embedded(cx.store_url()) {
        return Err(CliError::Usage(
            "`run` takes an embedded store: `--store sqlite:PATH`".to_owned(),
        ));
    }
    let app = cx.named_app().unwrap_or_else(|| App::from(LOCAL));
    let scope = cx.named_scope().unwrap_or_else(|| Scope::from(LOCAL));
    let place = AiPlace { url: args.ai_url, model: args.ai_model };
    // Nothing is opened, let alone created, for a source that cannot be published.
    let scratch = SqliteStore::in_memory().await.map_err(CliError::Scratch)?;
    let offered = builtin::module(&scratch, &app, &args.allow_network, &place)?.module;
    let compiled = compile(&source, Some(offered.manifest()));
    if !compiled.findings.is_ok() {
        return refused(cx, &compiled.findings.to_string(), &compiled.findings.to_json());
    }
    let store = store::embedded(cx.store_url(), Need::Created).await?;
    let built_in = builtin::module(&store, &app, &args.allow_network, &place)?;
    let started = Started { app, scope, workflow, source, inputs };
    started.go(cx, store, built_in).await
}

/// A run that is about to begin.
struct Started {
    app: App,
    scope: Scope,
    workflow: WorkflowKey,
    source: String,
    inputs: Value,
}

impl Started {
    async fn go(
        self,
        cx: &Context<'_>,
        store: SqliteStore,
        BuiltInModule { module, ai }: BuiltInModule,
    ) -> Result<Printed, CliError> {
        let operator = Operator::new(store.clone(), cx.actor());
        let kernel = Kernel::new(self.app.clone(), store);
        let scoped = kernel.scope(self.scope.clone());
        let publication = Publication::new(self.workflow.clone(), self.source);
        let published = scoped.publish(module.manifest(), publication).await?;
        let version = kernel.store().version_load(published.version).await;
        let needs = version.ok().flatten().map(|version| version.footprint);
        if ai.is_none() && needs.as_ref().is_some_and(asks_a_model) {
            return Err(CliError::Usage(
                "this workflow asks a model: name a provider with `--ai-url` and `--ai-model`"
                    .to_owned(),
            ));
        }
        let thinking = ai.map(surefoot_actions::ai::AiWorker::start);
        let working = kernel.worker(module).start().await?;
        let event = Event::start(self.workflow, self.inputs);
        let emitted = scoped.emit(event).await?;
        let printed = match emitted.runs.first() {
            Some(run) => watch(cx, &operator, *run).await,
            None => {
                Err(CliError::Usage("the workflow is switched off: `surefoot enable`".to_owned()))
            }
        };
        working.stop(GRACE).await;
        if let Some(thinking) = thinking {
            thinking.stop().await;
        }
        printed
    }
}

/// Until its end, or until somebody has seen enough: then it goes on with the next `run` on this store.
async fn watch(cx: &Context<'_>, operator: &Operator, run: RunId) -> Result<Printed, CliError> {
    tokio::select! {
        printed = follow(cx, operator, run, LOOK_EVERY) => printed,
        _ = tokio::signal::ctrl_c() => {
            let next = cx.typed(&format!("explain {run}"));
            to_stderr(&format!("interrupted; the run goes on with the next `surefoot run`. See `{next}`\n"));
            cx.print(&json!({ "run": run, "interrupted": true }), |_| {}).map(|it| it.exiting(crate::Exit::Finding))
        }
    }
}

fn asks_a_model(footprint: &Footprint) -> bool {
    let asking = ["generateText", "classify", "classifyMany", "extract"];
    asking.iter().any(|name| footprint.uses.contains_key(&format!("action/{name}")))
}

fn key_of(args: &RunArgs) -> Result<WorkflowKey, CliError> {
    if let Some(key) = &args.workflow {
        return Ok(key.clone());
    }
    let stem = args.file.file_stem().and_then(|stem| stem.to_str()).filter(|stem| *stem != "-");
    stem.unwrap_or("workflow")
        .parse()
        .map_err(|bad| CliError::Usage(format!("{bad}: name it with `--workflow`")))
}

fn network(text: &str) -> Result<(IpAddr, u8), String> {
    let read = || {
        let (address, bits) = text.split_once('/')?;
        let (address, bits): (IpAddr, u8) = (address.parse().ok()?, bits.parse().ok()?);
        let most = if address.is_ipv4() { 32 } else { 128 };
        (bits <= most).then_some((address, bits))
    };
    read().ok_or_else(|| "write an address and its leading bits, as in `10.0.0.0/8`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_an_address_and_its_leading_bits() {
        assert_eq!(network("10.0.0.0/8").unwrap(), ("10.0.0.0".parse().unwrap(), 8));
        assert!(network("fd00::/8").is_ok());
        for odd in ["10.0.0.0", "10.0.0.0/33", "x/8", "10.0.0.0/"] {
            assert!(network(odd).is_err(), "{odd}");
        }
    }
}
