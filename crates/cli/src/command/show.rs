//! `show`

use surefoot_operator::ShowView;

use super::{Context, OneRun, Printed};
use crate::error::CliError;
use crate::page::Page;
use crate::render;

/// Arguments of `show`.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    of: OneRun,
}

pub(crate) async fn run(cx: &Context<'_>, args: &ShowArgs) -> Result<Printed, CliError> {
    let view = cx.operator_for(args.of.run).await?.show(args.of.run).await?;
    cx.print(&view, |page| {
        render::show(page, &view);
        if view.children_next.is_some() {
            more_children(cx, page, &view);
        }
    })
}

/// What is not listed must not look as if it were not there: how many, in which states, and how to see them.
fn more_children(cx: &Context<'_>, page: &mut Page, view: &ShowView) {
    let states = view.children_by_state.iter().map(|(state, count)| format!("{state} {count}"));
    let states: Vec<String> = states.collect();
    let (listed, total, states) = (view.children.len(), view.children_total, states.join(", "));
    page.line(format!("the newest {listed} of {total} children are listed ({states})"));
    let list = cx.typed(&format!("runs --parent {}", view.run.id));
    page.line(format!("`{list}` lists them all, page by page; `--state failed` those that failed"));
}
