//! `activate`

use surefoot_kernel_core::WorkflowKey;
use surefoot_operator::ActivateVersion;

use super::{Context, Printed};
use crate::args::Verb;
use crate::error::CliError;

/// Arguments of `activate`.
#[derive(Debug, clap::Args)]
pub(crate) struct ActivateArgs {
    /// The workflow's key.
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    /// Which version becomes live.
    #[arg(value_name = "VERSION")]
    chosen: u64,
    /// The version that you saw live.
    #[arg(long = "revision", value_name = "N")]
    seen: Option<u64>,
    #[command(flatten)]
    verb: Verb,
}

pub(crate) async fn run(cx: &Context<'_>, args: ActivateArgs) -> Result<Printed, CliError> {
    let confirmation = args.verb.confirmation("activate")?;
    let operator = cx.operator().await?;
    let app = cx.app(&operator).await?;
    let scope = cx.scope_in(&operator, &app).await?;
    let what = format!(
        "version {} of workflow {} in {app}/{scope} becomes live",
        args.chosen, args.workflow
    );
    confirmation.obtain("activate", &what)?;
    let activate = ActivateVersion {
        app,
        scope,
        workflow: WorkflowKey::from(args.workflow),
        revision: args.chosen,
        seen: args.seen,
        why: args.verb.reason,
    };
    let activated = operator.activate(activate).await?;
    cx.print(&activated, |page| {
        page.line(format!("{} version {} is live", activated.workflow, activated.revision));
    })
}
