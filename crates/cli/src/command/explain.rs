//! `explain`

use surefoot_kernel_core::{Explanation, LegalAction, ReasonKind};

use super::{Context, OneRun, Printed};
use crate::builtin::MODULE;
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
    if is_left_alone(&view) {
        view.legal_actions.push(LegalAction {
            verb: "resume",
            what: None,
            command: cx.typed(&format!("run --resume {}", view.run)),
            why: "it is a run of ready-made actions, and no `surefoot run` works on it".to_owned(),
        });
    }
    let children = cx.typed(&format!("runs --parent {}", view.run));
    cx.print(&view, |page| render::explanation(page, &view, &children))
}

/// Whether it lacks a worker, and `run` is one.
fn is_left_alone(view: &Explanation) -> bool {
    let module = format!("module `{MODULE}`");
    view.why_not_moving.iter().any(|reason| {
        matches!(reason.kind, ReasonKind::NoWorker | ReasonKind::MissingModule)
            && reason.text.contains(&module)
    })
}
