//! `runs`

use surefoot_kernel_core::{EventId, Mode, RunFilter, RunId, RunState, WorkflowKey};
use surefoot_operator::Operator;

use super::{Context, Printed};
use crate::args::Part;
use crate::error::CliError;
use crate::input::instant_of;
use crate::render;

/// Arguments of `runs`.
#[derive(Debug, clap::Args)]
pub(crate) struct RunsArgs {
    /// Only of this workflow.
    #[arg(long)]
    workflow: Option<String>,
    /// Only in these states, separated by commas.
    #[arg(long = "state", value_name = "STATE", value_delimiter = ',')]
    states: Vec<RunState>,
    /// Only of this mode: `execute` or `dry_run`.
    #[arg(long, value_parser = mode)]
    mode: Option<Mode>,
    /// Only created since: an instant, or how long ago, like `2h`.
    #[arg(long)]
    since: Option<String>,
    /// Children of this run.
    #[arg(long, value_name = "RUN")]
    parent: Option<RunId>,
    /// Children too, beside the runs that have no parent; without it, children are left out unless `--parent` asks for them.
    #[arg(long, conflicts_with = "parent")]
    children: bool,
    /// Only started by this event.
    #[arg(long, value_name = "EVENT")]
    event: Option<EventId>,
    /// Only started by an event with this tag.
    #[arg(long)]
    tag: Option<String>,
    #[command(flatten)]
    part: Part,
}

pub(crate) async fn run(cx: &Context<'_>, args: RunsArgs) -> Result<Printed, CliError> {
    let since = args.since.as_deref().map(|text| instant_of(text, cx.wall())).transpose()?;
    let operator = cx.operator().await?;
    let filter = RunFilter {
        app: Some(cx.app(&operator).await?),
        scope: cx.named_scope(),
        workflow: args.workflow.map(WorkflowKey::from),
        states: args.states,
        mode: args.mode,
        since,
        parent: args.parent,
        children: args.children,
        event: args.event,
        tag: args.tag,
        limit: args.part.limit,
        cursor: args.part.cursor,
    };
    let view = operator.runs(filter.clone()).await?;
    let has_hidden = !cx.is_json() && hides(&operator, &filter).await?;
    cx.print(&view, |page| {
        render::runs(page, &view.runs, filter.children);
        if has_hidden {
            page.line("children in these states are left out: add `--children`");
        }
        if let Some(next) = &view.next {
            page.line(format!("there are more: add `--cursor {next}`"));
        }
    })
}

/// Whether somebody who looks for runs in some states would have to look for children too.
async fn hides(operator: &Operator, filter: &RunFilter) -> Result<bool, CliError> {
    if filter.states.is_empty() || filter.children || filter.parent.is_some() {
        return Ok(false);
    }
    let all = operator.runs(RunFilter { children: true, ..filter.clone() }).await?;
    Ok(all.runs.iter().any(|run| run.parent.is_some()))
}

fn mode(text: &str) -> Result<Mode, String> {
    let known = [Mode::Execute, Mode::DryRun].into_iter().find(|mode| mode.as_str() == text);
    known.ok_or_else(|| "the modes are execute, dry_run".to_owned())
}
