//! The only place that chooses a coordination server.

use std::sync::Arc;

use clap::Args;
use surefoot_sync_core::{Inventory, Namespace};
use surefoot_sync_nats::Nats;

use crate::error::CliError;
use crate::store::without_passwords;

/// The coordination server.
#[derive(Debug, Clone, Args)]
pub(crate) struct Broker {
    /// The NATS server: `nats://HOST:4222`, several separated by commas.
    #[arg(
        long,
        global = true,
        env = "SUREFOOT_NATS",
        value_name = "URL",
        default_value = "nats://127.0.0.1:4222"
    )]
    pub(crate) nats: String,
    /// The namespace of the application's resources on it.
    #[arg(long, global = true, env = "SUREFOOT_NAMESPACE", value_name = "NAME")]
    pub(crate) namespace: Option<Namespace>,
    /// The same server for its system account, which knows how often it writes to its disk.
    #[arg(long, global = true, env = "SUREFOOT_NATS_SYSTEM", value_name = "URL")]
    pub(crate) nats_system: Option<String>,
}

impl Broker {
    /// Where it was looked, for whoever finds nothing.
    pub(crate) fn place(&self) -> String {
        let url = without_passwords(&self.nats);
        match &self.namespace {
            Some(namespace) => format!("in the namespace `{namespace}` on `{url}`"),
            None => format!("on `{url}`"),
        }
    }
}

/// Connects to the server that is named.
pub(crate) async fn open(broker: &Broker) -> Result<Arc<dyn Inventory>, CliError> {
    let missing = "this needs the namespace of the application's resources: name it with \
                   `--namespace`";
    let namespace = broker.namespace.clone().ok_or_else(|| CliError::Usage(missing.to_owned()))?;
    let failed = |url: &str| {
        let url = without_passwords(url);
        move |source| CliError::Broker { url, source: Box::new(source) }
    };
    let nats = Nats::connect(&broker.nats, namespace).await.map_err(failed(&broker.nats))?;
    match &broker.nats_system {
        Some(url) => Ok(Arc::new(nats.system_account(url).await.map_err(failed(url))?)),
        None => Ok(Arc::new(nats)),
    }
}
