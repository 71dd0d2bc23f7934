//! `show`

use super::{Context, OneRun, Printed};
use crate::error::CliError;
use crate::render;

/// Arguments of `show`.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    of: OneRun,
}

pub(crate) async fn run(cx: &Context<'_>, args: &ShowArgs) -> Result<Printed, CliError> {
    let view = cx.operator_for(args.of.run).await?.show(args.of.run).await?;
    cx.print(&view, |page| render::show(page, &view))
}
