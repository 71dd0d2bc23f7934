//! What `run` offers to workflows: the ready-made actions, without any application.

use std::net::IpAddr;

use surefoot_actions::ai::{Ai, AiWorker, Classify, ClassifyMany, Extract, GenerateText, OpenAi};
use surefoot_actions::check_config;
use surefoot_actions::event::{EmitEvent, SendSignal};
use surefoot_actions::http::{HttpCall, HttpClient, HttpRequest};
use surefoot_actions::secret::{EnvSecrets, Secrets as _};
use surefoot_kernel_core::expr::Template;
use surefoot_kernel_core::plan::Plan;
use surefoot_kernel_core::{App, RunId};
use surefoot_language::{
    ActionDecl, Bindings, ConfigRemark, Findings, Manifest, Module, ModuleBuilder, On, bind,
    compile_judged,
};
use surefoot_store_sqlite::{SqliteStore, SqliteTx};

use crate::error::CliError;

/// The id of the built-in module.
pub(crate) const MODULE: &str = "surefoot";
/// The secret that holds the key of the model's provider: `SUREFOOT_SECRET_AI_KEY`.
const AI_KEY: &str = "AI_KEY";
/// The model of a check or a preview that was given none.
const ANY_MODEL: &str = "the model of --ai-model";

/// How a process carries the actions out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    /// Networks that requests may also go to.
    pub(crate) networks: Vec<(IpAddr, u8)>,
    /// None: it can ask no model.
    pub(crate) ai: Option<AiPlace>,
}

/// Where models are asked.
#[derive(Debug, Clone)]
pub(crate) struct AiPlace {
    /// The base URL of the provider.
    pub(crate) url: String,
    /// Which model.
    pub(crate) model: String,
}

/// The actions, and who does their tasks.
pub(crate) struct BuiltInModule {
    pub(crate) module: Module<On<SqliteTx>>,
    /// None without a provider.
    pub(crate) ai: Option<AiWorker>,
}

/// What authors may write.
pub(crate) async fn manifest() -> Result<Manifest, CliError> {
    let scratch = SqliteStore::in_memory().await.map_err(CliError::Scratch)?;
    Ok(whole(&scratch, &Settings::default())?.manifest().clone())
}

/// Has the configs of ready-made actions judged as their steps would, also those that an application's module has: they
/// are told by name and schema.
pub(crate) fn judging(own: &Manifest) -> impl Fn(&ActionDecl, &Template) -> Vec<ConfigRemark> {
    |action, config| match own.action(&action.name) {
        Some(known) if known.input == action.input => check_config(&action.name, config),
        Some(_) | None => Vec::new(),
    }
}

/// A plan, with what there is to say of its source all the same; or what is wrong with it.
pub(crate) async fn compile_and_bind(
    source: &str,
    manifest: &Manifest,
    bindings: &Bindings,
) -> Result<Result<(Plan, Findings), Findings>, CliError> {
    let own = self::manifest().await?;
    let compiled = compile_judged(source, manifest, &judging(&own));
    let Some(ir) = compiled.ir else { return Ok(Err(compiled.findings)) };
    Ok(bind(&ir, manifest, bindings).map(|plan| (plan, compiled.findings)))
}

/// With every action, whether or not this process could carry it out: for checks and previews.
pub(crate) fn whole(
    store: &SqliteStore,
    settings: &Settings,
) -> Result<Module<On<SqliteTx>>, CliError> {
    let model = settings.ai.as_ref().map_or(ANY_MODEL, |place| place.model.as_str());
    let ai = Ai::new(store.clone(), model);
    built(with_ai(without_ai(store, &client(settings)?), &ai))
}

/// What this process carries out for the runs of one tree: an action that it could only wait for is left out, so that its
/// worker does not take a run that needs it. Nor are tasks of this tree done by any other process.
pub(crate) fn for_tree(
    store: &SqliteStore,
    app: &App,
    settings: &Settings,
    root: RunId,
) -> Result<BuiltInModule, CliError> {
    let client = client(settings)?;
    let module = without_ai(store, &client);
    let Some(place) = &settings.ai else {
        return Ok(BuiltInModule { module: built(module)?, ai: None });
    };
    let lane = root.to_string();
    let ai = Ai::new(store.clone(), &place.model).lane(&lane);
    let mut provider = OpenAi::new(client, &place.url);
    if has_secret_variable(AI_KEY) {
        provider = provider.key(AI_KEY);
    }
    let worker = AiWorker::new(app.clone(), store.clone(), provider).lane(&lane);
    Ok(BuiltInModule { module: built(with_ai(module, &ai))?, ai: Some(worker) })
}

/// Refuses a place where no model could ever be asked.
pub(crate) fn check_place(settings: &Settings) -> Result<(), CliError> {
    let Some(place) = &settings.ai else { return Ok(()) };
    let provider = OpenAi::new(client(settings)?, &place.url);
    provider.check().map_err(|why| {
        CliError::Usage(format!(
            "`--ai-url {}`: {why}; write it as in `https://HOST/v1`, and allow a network that is not of the public internet with \
             `--allow-network`",
            place.url
        ))
    })
}

/// Whether this process has a secret. One that cannot be read just now is there all the same.
pub(crate) async fn has_secret(name: &str) -> bool {
    EnvSecrets.secret(name).await.map_or(true, |secret| secret.is_some())
}

fn has_secret_variable(name: &str) -> bool {
    let variable = format!("SUREFOOT_SECRET_{name}");
    std::env::var_os(&variable).is_some() || std::env::var_os(format!("{variable}_FILE")).is_some()
}

fn client(settings: &Settings) -> Result<HttpClient, CliError> {
    let mut client = HttpClient::builder();
    for (address, bits) in &settings.networks {
        client = client.allow_network(*address, *bits);
    }
    client.build().map_err(|error| CliError::Module(error.into()))
}

fn without_ai(store: &SqliteStore, client: &HttpClient) -> ModuleBuilder<On<SqliteTx>> {
    Module::builder(MODULE, 1)
        .ambiguous(HttpRequest::new(client.clone()))
        .idempotent(HttpCall::new(client.clone()))
        .transactional(EmitEvent::new(store.clone()))
        .transactional(SendSignal::new(store.clone()))
}

fn with_ai(module: ModuleBuilder<On<SqliteTx>>, ai: &Ai) -> ModuleBuilder<On<SqliteTx>> {
    module
        .idempotent(GenerateText::new(ai.clone()))
        .idempotent(Classify::new(ai.clone()))
        .idempotent(ClassifyMany::new(ai.clone()))
        .idempotent(Extract::new(ai.clone()))
}

fn built(module: ModuleBuilder<On<SqliteTx>>) -> Result<Module<On<SqliteTx>>, CliError> {
    module.build().map_err(|error| CliError::Module(error.into()))
}
