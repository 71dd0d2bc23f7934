//! `retry`

use surefoot_kernel_core::{Code, RunFilter, RunId, WorkflowKey};
use surefoot_operator::Retry;

use super::{Context, Printed};
use crate::Exit;
use crate::args::{Part, Verb};
use crate::confirm::Confirmation;
use crate::error::CliError;
use crate::input::instant_of;
use crate::render::{Table, or_dash};

/// Arguments of `retry`.
#[derive(Debug, clap::Args)]
pub(crate) struct RetryArgs {
    /// The run's id; or `--failed` for all failed runs.
    #[arg(value_name = "RUN", conflicts_with = "failed")]
    run: Option<RunId>,
    /// The revision that you looked at; `explain` prints it with each command.
    #[arg(long = "revision", value_name = "N", conflicts_with = "failed")]
    seen: Option<u64>,
    /// All failed runs that fit, children too, one page of them, with a verdict each: children before their parents. One
    /// that would end in the same way again is refused.
    #[arg(long)]
    failed: bool,
    /// With `--failed`: only of this workflow.
    #[arg(long, requires = "failed")]
    workflow: Option<String>,
    /// With `--failed`: only those that failed with this code.
    #[arg(long, requires = "failed")]
    code: Option<String>,
    /// With `--failed`: only created since; an instant, or how long ago, like `2h`.
    #[arg(long, requires = "failed")]
    since: Option<String>,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    verb: Verb,
}

pub(crate) async fn run(cx: &Context<'_>, args: RetryArgs) -> Result<Printed, CliError> {
    let confirmation = args.verb.confirmation("retry")?;
    if args.failed {
        return all(cx, confirmation, args).await;
    }
    let (Some(run), Some(seen)) = (args.run, args.seen) else {
        let usage = "`retry` needs a RUN with the `--revision` that you looked at, or `--failed` for all that failed";
        return Err(CliError::Usage(usage.to_owned()));
    };
    let operator = cx.operator_for(run).await?;
    cx.confirm(&operator, ("retry", confirmation), run).await?;
    let retry = Retry { run, seen, why: args.verb.reason };
    cx.print_done(&operator.retry(retry).await?)
}

async fn all(
    cx: &Context<'_>,
    confirmation: Confirmation,
    args: RetryArgs,
) -> Result<Printed, CliError> {
    let since = args.since.as_deref().map(|text| instant_of(text, cx.wall())).transpose()?;
    let operator = cx.operator().await?;
    let app = cx.app(&operator).await?;
    let limit = args.part.limit;
    let place = cx.named_scope().map_or_else(|| app.to_string(), |scope| format!("{app}/{scope}"));
    confirmation.obtain(
        "retry",
        &format!("at most {limit} failed runs of {place}, children too, are retried"),
    )?;
    let code = args.code.map(Code::from);
    let filter = RunFilter {
        app: Some(app),
        scope: cx.named_scope(),
        workflow: args.workflow.map(WorkflowKey::from),
        since,
        limit,
        cursor: args.part.cursor,
        ..RunFilter::default()
    };
    let view = operator.retry_failed(filter, code.as_ref(), &args.verb.reason).await?;
    let printed = cx.print(&view, |page| {
        let mut table = Table::new(&["RUN", "STATE", "REFUSED"]);
        for row in &view.verdicts {
            let refused = or_dash(row.refused.as_ref());
            table.row(&[row.run.to_string(), row.state.to_string(), refused]);
        }
        table.print(page);
        if let Some(next) = &view.next {
            page.line(format!("there are more: add `--cursor {next}`"));
        }
    })?;
    let is_refused = view.verdicts.iter().any(|verdict| verdict.refused.is_some());
    Ok(printed.exiting(if is_refused { Exit::Finding } else { Exit::Done }))
}
