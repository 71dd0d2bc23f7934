//! `doctor`

use surefoot_operator::CheckView;
use surefoot_sync_core::BrokerFact;

use super::{Context, Printed};
use crate::Exit;
use crate::broker::{self, Broker};
use crate::error::CliError;
use crate::page::Tone;

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// With a namespace, the coordination server is looked at as well.
    #[command(flatten)]
    broker: Broker,
}

fn check(fact: BrokerFact) -> CheckView {
    let BrokerFact { name, ok, found, wanted } = fact;
    CheckView { name, ok, found, help: (!ok).then_some(wanted) }
}

/// A server that cannot be asked is a finding among the others: the store was looked at all the same.
async fn facts(broker: &Broker) -> Result<Vec<CheckView>, CliError> {
    let asked = async { Ok(broker::open(broker).await?.facts().await?) };
    match asked.await {
        Ok(facts) => Ok(facts.into_iter().map(check).collect()),
        Err(error) if CliError::exit(&error) == Exit::Usage => Err(error),
        Err(error) => Ok(vec![CheckView {
            name: "coordination server".to_owned(),
            ok: false,
            found: error.chain().join(": "),
            help: Some("what stands on it could not be looked at".to_owned()),
        }]),
    }
}

pub(crate) async fn run(cx: &Context<'_>, args: &DoctorArgs) -> Result<Printed, CliError> {
    cx.refuse_scope("the store is looked at as a whole")?;
    let operator = cx.operator().await?;
    let mut view = operator.doctor_of(cx.named_app(), cx.wall()).await?;
    if args.broker.namespace.is_some() {
        view.checks.extend(facts(&args.broker).await?);
        view.ok = view.checks.iter().all(|check| check.ok);
    }
    let printed = cx.print(&view, |page| {
        for check in &view.checks {
            let (tone, word) = if check.ok { (Tone::Good, "ok ") } else { (Tone::Bad, "BAD") };
            page.toned(tone, format!("{word} {}: {}", check.name, check.found));
            if let Some(help) = &check.help {
                page.line(format!("    {help}"));
            }
        }
    })?;
    Ok(printed.exiting(if view.ok { Exit::Done } else { Exit::Finding }))
}
