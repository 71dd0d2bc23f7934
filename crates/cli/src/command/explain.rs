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
    let mut view = cx.operator().await?.explain(args.of.run).await?;
    // The commands work as they stand: on the store that was named here.
    if let Some(store) = cx.named_store() {
        for action in &mut view.legal_actions {
            action.command =
                action.command.replacen("surefoot", &format!("surefoot --store {store}"), 1);
        }
    }
    cx.print(&view, |page| render::explanation(page, &view))
}
