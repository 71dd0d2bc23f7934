//! `enable` and `disable`

use surefoot_kernel_core::WorkflowKey;
use surefoot_operator::Switch;

use super::{Context, Printed};
use crate::args::Verb;
use crate::error::CliError;

/// Arguments of `enable` and `disable`.
#[derive(Debug, clap::Args)]
pub(crate) struct SwitchArgs {
    /// The workflow's key.
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    /// One activation, as `workflows --json` names it; without it, all of the workflow.
    #[arg(value_name = "ACTIVATION")]
    activation: Option<String>,
    #[command(flatten)]
    verb: Verb,
}

pub(crate) async fn run(
    cx: &Context<'_>,
    args: SwitchArgs,
    enabled: bool,
) -> Result<Printed, CliError> {
    let name = if enabled { "enable" } else { "disable" };
    let confirmation = args.verb.confirmation(name)?;
    let operator = cx.operator().await?;
    let app = cx.app(&operator).await?;
    let scope = cx.scope_in(&operator, &app).await?;
    let of = args.activation.as_ref().map_or_else(String::new, |it| format!("activation {it} of "));
    confirmation.obtain(name, &format!("{of}workflow {} in {app}/{scope}", args.workflow))?;
    let switch = Switch {
        app,
        scope,
        workflow: WorkflowKey::from(args.workflow),
        activation: args.activation,
        enabled,
        why: args.verb.reason,
    };
    let view = operator.switch(switch).await?;
    cx.print(&view, |page| {
        let word = if enabled { "enabled" } else { "disabled" };
        if view.changed.is_empty() {
            page.line(format!("{} was {word} already, nothing was changed", view.workflow));
        } else {
            page.line(format!("{word}: {} of {}", view.changed.join(", "), view.workflow));
        }
    })
}
