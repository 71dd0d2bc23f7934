//! `versions`

use surefoot_kernel_core::{Amounts, WorkflowKey};

use super::{Context, Printed};
use crate::error::CliError;
use crate::render::{Table, at};

/// Arguments of `versions`.
#[derive(Debug, clap::Args)]
pub(crate) struct VersionsArgs {
    /// The workflow's key.
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
}

pub(crate) async fn run(cx: &Context<'_>, args: VersionsArgs) -> Result<Printed, CliError> {
    let operator = cx.operator().await?;
    let app = cx.app(&operator).await?;
    let scope = cx.scope_in(&operator, &app).await?;
    let view = operator.versions(&app, &scope, &WorkflowKey::from(args.workflow)).await?;
    cx.print(&view, |page| {
        let mut table =
            Table::new(&["VERSION", "LIVE", "CREATED", "AUTHOR", "MODULE", "BUDGET", "ID"]);
        for row in &view.versions {
            table.row(&[
                row.revision.to_string(),
                if row.active { "yes" } else { "-" }.to_owned(),
                at(row.created_at),
                row.author.clone(),
                row.module.clone(),
                caps(&row.budget),
                row.id.to_string(),
            ]);
        }
        table.print(page);
    })
}

/// As `publish --budget` takes them.
fn caps(budget: &Amounts) -> String {
    let caps = budget.iter().map(|(dimension, cap)| format!("{dimension}={cap}"));
    let caps = caps.collect::<Vec<_>>().join(", ");
    if caps.is_empty() { "-".to_owned() } else { caps }
}
