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
    let view = cx.operator().await?.explain(args.of.run).await?;
    cx.print(&view, |page| render::explanation(page, &view))
}
