//! What `run` offers to workflows: the ready-made actions, without any application.

use std::net::IpAddr;

use surefoot_actions::ai::{Ai, AiWorker, Classify, ClassifyMany, Extract, GenerateText, OpenAi};
use surefoot_actions::event::{EmitEvent, SendSignal};
use surefoot_actions::http::{HttpCall, HttpClient, HttpRequest};
use surefoot_kernel_core::App;
use surefoot_language::{Module, On};
use surefoot_store_sqlite::{SqliteStore, SqliteTx};

use crate::error::CliError;

/// The id of the built-in module.
pub(crate) const MODULE: &str = "surefoot";
/// The secret that holds the key of the model's provider: `SUREFOOT_SECRET_AI_KEY`.
const AI_KEY: &str = "AI_KEY";

/// Where models are asked.
#[derive(Debug, Clone)]
pub(crate) struct AiPlace {
    /// The base URL of the provider.
    pub(crate) url: Option<String>,
    /// Which model.
    pub(crate) model: Option<String>,
}

/// The actions, and who does their tasks.
pub(crate) struct BuiltInModule {
    pub(crate) module: Module<On<SqliteTx>>,
    /// None without a provider.
    pub(crate) ai: Option<AiWorker>,
}

/// Makes the module on a store.
pub(crate) fn module(
    store: &SqliteStore,
    app: &App,
    networks: &[(IpAddr, u8)],
    place: &AiPlace,
) -> Result<BuiltInModule, CliError> {
    let mut client = HttpClient::builder();
    for (address, bits) in networks {
        client = client.allow_network(*address, *bits);
    }
    let client = client.build().map_err(|error| CliError::Module(error.into()))?;
    let ai = Ai::new(store.clone(), place.model.clone().unwrap_or_default());
    let module = Module::builder(MODULE, 1)
        .ambiguous(HttpRequest::new(client.clone()))
        .idempotent(HttpCall::new(client.clone()))
        .transactional(EmitEvent::new(store.clone()))
        .transactional(SendSignal::new(store.clone()))
        .idempotent(GenerateText::new(ai.clone()))
        .idempotent(Classify::new(ai.clone()))
        .idempotent(ClassifyMany::new(ai.clone()))
        .idempotent(Extract::new(ai))
        .build()
        .map_err(|error| CliError::Module(error.into()))?;
    let worker = |url: &String| {
        let mut provider = OpenAi::new(client.clone(), url);
        if std::env::var_os(format!("SUREFOOT_SECRET_{AI_KEY}")).is_some()
            || std::env::var_os(format!("SUREFOOT_SECRET_{AI_KEY}_FILE")).is_some()
        {
            provider = provider.key(AI_KEY);
        }
        AiWorker::new(app.clone(), store.clone(), provider)
    };
    let ai = place.url.as_ref().filter(|_| place.model.is_some()).map(worker);
    Ok(BuiltInModule { module, ai })
}
