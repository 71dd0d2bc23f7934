//! `explain`

use super::{Context, OneRun, Printed};
use crate::error::CliError;
use crate::render;

/// Arguments of `explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    of: OneRun,
}

pub(crate) async fn run(cx: &Context<'_>, args: &ExplainArgs) -> Result<Printed, CliError> {
    let mut view = cx.operator_for(args.of.run).await?.explain(args.of.run).await?;
    // The commands work as they stand: on the store that was named here.
    for action in &mut view.legal_actions {
        action.command = cx.on_this_store(std::mem::take(&mut action.command));
    }
    let children = cx.typed(&format!("runs --parent {}", view.run));
    cx.print(&view, |page| render::explanation(page, &view, &children))
}
