//! `run`: a workflow of ready-made actions on the embedded store, without an application.

mod keyed;
mod needs;
mod preview;
mod start;
mod started;
mod unfinished;
mod work;

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr as _;

use surefoot_kernel_core::{RunId, WorkflowKey};

use super::{Context, Printed};
use crate::builtin::{self, AiPlace, Settings};
use crate::error::CliError;
use crate::store;

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The workflow; `-` is standard input.
    #[arg(required_unless_present = "resume")]
    file: Option<PathBuf>,
    /// Its inputs: JSON, or a file with JSON.
    #[arg(long, value_name = "JSON or FILE", default_value = "{}")]
    inputs: String,
    /// The workflow's key; by default, the file's name without its ending.
    #[arg(long, value_name = "KEY", value_parser = WorkflowKey::from_str)]
    workflow: Option<WorkflowKey>,
    /// Start it once under this key, such as the number of an order: the same command again goes on with the run that it
    /// started, and starts no other.
    #[arg(long, value_name = "KEY", value_parser = keyed::key)]
    key: Option<String>,
    /// Go on with a run that was interrupted, instead of starting one.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["file", "inputs", "workflow", "key", "dry_run"])]
    resume: Option<RunId>,
    /// Say what it would do, and what that would cost. Nothing is sent, and nothing is stored.
    #[arg(long)]
    dry_run: bool,
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
    if !store::is_embedded(cx.store_url()) {
        return Err(CliError::Usage(
            "`run` takes an embedded store: `--store sqlite:PATH`".to_owned(),
        ));
    }
    let settings = settings_of(&args)?;
    match (args.resume, &args.file) {
        (Some(run), _) => start::resume(cx, &settings, run).await,
        (None, Some(file)) => start::start(cx, &settings, file, &args).await,
        (None, None) => Err(CliError::Usage("name a workflow's file, or `--resume`".to_owned())),
    }
}

fn settings_of(args: &RunArgs) -> Result<Settings, CliError> {
    let ai = match (args.ai_url.clone(), args.ai_model.clone()) {
        (Some(url), Some(model)) => Some(AiPlace { url, model }),
        (None, None) => None,
        (Some(_), None) => {
            return Err(CliError::Usage("`--ai-url` needs `--ai-model` too".to_owned()));
        }
        // A preview asks nobody.
        (None, Some(model)) if args.dry_run => Some(AiPlace { url: String::new(), model }),
        (None, Some(_)) => {
            return Err(CliError::Usage("`--ai-model` needs `--ai-url` too".to_owned()));
        }
    };
    let settings = Settings { networks: args.allow_network.clone(), ai };
    if !args.dry_run {
        builtin::check_place(&settings)?;
    }
    Ok(settings)
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
