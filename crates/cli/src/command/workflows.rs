//! `workflows`

use super::{Context, Printed};
use crate::error::CliError;
use crate::render::{Table, or_dash};

/// Arguments of `workflows`.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkflowsArgs {}

pub(crate) async fn run(cx: &Context<'_>, _: &WorkflowsArgs) -> Result<Printed, CliError> {
    let operator = cx.operator().await?;
    let app = cx.app(&operator).await?;
    let view = operator.workflows(&app, cx.named_scope().as_ref()).await?;
    cx.print(&view, |page| {
        let mut table = Table::new(&["WORKFLOW", "SCOPE", "LIVE", "LATEST", "STARTS ON"]);
        for row in &view.workflows {
            let starts = row.activations.iter().map(|it| {
                let off = if it.enabled { "" } else { " (off)" };
                format!("{}{off}", it.event)
            });
            table.row(&[
                row.workflow.to_string(),
                row.scope.to_string(),
                or_dash(row.active),
                row.latest.to_string(),
                starts.collect::<Vec<_>>().join(", "),
            ]);
        }
        table.print(page);
    })
}
