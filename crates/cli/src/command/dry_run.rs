//! `dry-run`

use std::time::{Duration, Instant};

use serde_json::Value;
use surefoot_kernel_core::{Event, RunId, START_EVENT};
use surefoot_operator::{AskDryRun, BillView, Operator, OperatorError};
use surefoot_worker::SystemIds;

use super::{Context, Printed};
use crate::error::CliError;
use crate::input::json_of;
use crate::{Exit, render};

/// How often the dry run is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long other dry runs that were taken up may go on.
const GRACE: Duration = Duration::from_secs(5);

/// Arguments of `dry-run`.
#[derive(Debug, clap::Args)]
pub(crate) struct DryRunArgs {
    /// The workflow's key.
    workflow: String,
    /// Which of its revisions; by default the live one, else the newest.
    #[arg(long, value_name = "N")]
    revision: Option<u64>,
    /// The type of the event that would occur; by default the workflow is started with `--data` as its inputs.
    #[arg(long, value_name = "TYPE")]
    event: Option<String>,
    /// The event's data: JSON, or the path of a file with JSON.
    #[arg(long, value_name = "JSON or FILE")]
    data: Option<String>,
    /// What every step may read as `context`: JSON, or the path of a file with JSON.
    #[arg(long, value_name = "JSON or FILE")]
    context: Option<String>,
    /// Seconds to wait for the bill: where the application's module is not built into this program, a dry-run worker of the
    /// application makes it.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    wait: u64,
}

pub(crate) async fn run(cx: &Context<'_>, args: DryRunArgs) -> Result<Printed, CliError> {
    let json =
        |what, given: Option<&String>| given.map_or(Ok(Value::Null), |given| json_of(what, given));
    let data = json("`--data`", args.data.as_ref())?;
    let kind = args.event.unwrap_or_else(|| START_EVENT.to_owned());
    let event = Event::new(kind, data).context(json("`--context`", args.context.as_ref())?);
    event.clone().check().map_err(OperatorError::from)?;
    let (operator, app, worker) = cx.operator_previewing().await?;
    let scope = cx.scope_in(&operator, &app).await?;
    let workflow = args.workflow.into();
    let ask = AskDryRun { app, scope, workflow, revision: args.revision, event };
    let run = operator.dry_run(&SystemIds, ask).await?;
    // Another worker may be faster: whoever it is, the bill is the same.
    let running = match worker {
        Some(worker) => Some(worker.start().await?),
        None => None,
    };
    let view = bill(&operator, run, Duration::from_secs(args.wait)).await;
    if let Some(running) = running {
        running.stop(GRACE).await;
    }
    let view = view?;
    // A bill with gaps, or none, is a finding.
    let is_whole = view.bill.as_ref().is_some_and(|bill| bill.code.is_none());
    let printed = cx.print(&view, |page| render::bill(page, &view, |command| cx.typed(command)))?;
    Ok(if is_whole { printed } else { printed.exiting(Exit::Finding) })
}

/// The dry run once it is over, or as it is when the time is.
pub(super) async fn bill(
    operator: &Operator,
    run: RunId,
    wait: Duration,
) -> Result<BillView, CliError> {
    let since = Instant::now();
    loop {
        let view = operator.bill(run).await?;
        let is_over = view.run.state.is_terminal() || view.run.error.is_some();
        if is_over || since.elapsed() >= wait {
            return Ok(view);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
