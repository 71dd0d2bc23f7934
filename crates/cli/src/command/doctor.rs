//! `doctor`

use super::{Context, Printed};
use crate::Exit;
use crate::error::CliError;
use crate::page::Tone;

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {}

pub(crate) async fn run(cx: &Context<'_>, _: &DoctorArgs) -> Result<Printed, CliError> {
    cx.refuse_scope("the store is looked at as a whole")?;
    let operator = cx.operator().await?;
    let view = operator.doctor_of(cx.named_app(), cx.wall()).await?;
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
