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

pub(crate) async fn run(cx: &Context<'_>, args: &DoctorArgs) -> Result<Printed, CliError> {
    cx.refuse_scope("the store is looked at as a whole")?;
    let operator = cx.operator().await?;
    let mut view = operator.doctor_of(cx.named_app(), cx.wall()).await?;
    if args.broker.namespace.is_some() {
        let facts = broker::open(&args.broker).await?.facts().await?;
        view.checks.extend(facts.into_iter().map(check));
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
