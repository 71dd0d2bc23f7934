//! `redrive`

use surefoot_kernel_core::EventId;

use super::{Context, Printed};
use crate::args::Verb;
use crate::error::CliError;
use crate::render::counted;

/// Arguments of `redrive`.
#[derive(Debug, clap::Args)]
pub(crate) struct RedriveArgs {
    /// The event's id.
    #[arg(value_name = "EVENT")]
    event: EventId,
    #[command(flatten)]
    verb: Verb,
}

pub(crate) async fn run(cx: &Context<'_>, args: RedriveArgs) -> Result<Printed, CliError> {
    let confirmation = args.verb.confirmation("redrive")?;
    let operator = cx.operator().await?;
    confirmation.obtain("redrive", &format!("event {} gets its runs after all", args.event))?;
    let view = operator.redrive(args.event, &args.verb.reason).await?;
    cx.print(&view, |page| {
        let runs = counted(u64::from(view.deliveries), "run");
        page.line(format!("event {}: {runs} to be created", view.event));
        for workflow in &view.dropped {
            page.line(format!("workflow {workflow} is gone: its delivery was dropped"));
        }
    })
}
