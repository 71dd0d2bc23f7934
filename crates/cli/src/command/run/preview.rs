//! What a workflow would do, on a store that is gone afterwards.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use surefoot_kernel_core::{Event, WorkflowKey};
use surefoot_language::{Module, On, Previews};
use surefoot_operator::{AskDryRun, Operator, OperatorError};
use surefoot_store_sqlite::{SqliteStore, SqliteTx};
use surefoot_worker::{DryRunWorker, Kernel, Publication, SystemIds};

use super::needs::Place;
use crate::command::dry_run::bill;
use crate::command::{Context, Printed};
use crate::error::CliError;
use crate::{Exit, render};

/// How long a preview may take.
const WAIT: Duration = Duration::from_secs(60);

pub(super) async fn preview(
    cx: &Context<'_>,
    scratch: SqliteStore,
    module: &Module<On<SqliteTx>>,
    Place { app, scope }: Place,
    workflow: WorkflowKey,
    source: String,
    inputs: Value,
) -> Result<Printed, CliError> {
    let event = Event::start(workflow.clone(), inputs);
    event.clone().check().map_err(OperatorError::from)?;
    let kernel = Kernel::new(app.clone(), scratch.clone());
    let publication = Publication::new(workflow.clone(), source).draft();
    kernel.scope(scope.clone()).publish(module.manifest(), publication).await?;
    let operator = Operator::new(scratch.clone(), cx.actor());
    let ask = AskDryRun { app: app.clone(), scope, workflow, revision: None, event };
    let run = operator.dry_run(&SystemIds, ask).await?;
    let previews = Previews::of::<SqliteTx, On<SqliteTx>>(module);
    let worker = DryRunWorker::new(app, Arc::new(scratch.clone()), Arc::new(scratch), previews);
    let running = worker.start().await?;
    let view = bill(&operator, run, WAIT).await;
    running.stop(Duration::ZERO).await;
    let view = view?;
    let is_whole = view.bill.as_ref().is_some_and(|bill| bill.code.is_none());
    let printed = cx.print(&view, |page| render::preview(page, &view))?;
    Ok(if is_whole { printed } else { printed.exiting(Exit::Finding) })
}
