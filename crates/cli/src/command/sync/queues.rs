//! Queues: how much there is, and whether anything of it is handed out.

use clap::Args;
use serde_json::json;
use surefoot_sync_core::{Desk, Resource};

use super::{confirmed, print_changed};
use crate::args::Verb;
use crate::broker::Broker;
use crate::command::{Context, Printed};
use crate::error::CliError;
use crate::render::{Table, age, or_dash};

/// Arguments of `sync pause` and `sync resume`.
#[derive(Debug, Args)]
pub(super) struct PauseArgs {
    /// As `sync queues` shows it: `jobs:thumbnails`.
    #[arg(value_name = "RESOURCE")]
    resource: Resource,
    #[command(flatten)]
    verb: Verb,
}

pub(super) async fn list(cx: &Context<'_>, desk: &Desk) -> Result<Printed, CliError> {
    let queues = desk.queues().await?;
    cx.print(&json!({ "queues": queues }), |page| {
        let headings = ["RESOURCE", "WAITING", "HELD", "DEAD", "OLDEST", "BYTES", "STATE"];
        let mut table = Table::new(&headings);
        for queue in &queues {
            table.row(&[
                queue.resource.clone(),
                queue.waiting.to_string(),
                queue.held.to_string(),
                queue.dead.to_string(),
                or_dash(queue.oldest_age_ms.map(age)),
                queue.bytes.to_string(),
                if queue.paused { "paused" } else { "open" }.to_owned(),
            ]);
        }
        table.print(page);
    })
}

pub(super) async fn pause(
    cx: &Context<'_>,
    broker: &Broker,
    args: &PauseArgs,
) -> Result<Printed, CliError> {
    let what = format!("{} hands out no more work, to no process", args.resource);
    let (desk, by) = confirmed(cx, broker, ("pause", &args.verb), &what).await?;
    print_changed(cx, &desk.pause_queue(&args.resource, &by).await?)
}

pub(super) async fn resume(
    cx: &Context<'_>,
    broker: &Broker,
    args: &PauseArgs,
) -> Result<Printed, CliError> {
    let what = format!("{} hands out work again", args.resource);
    let (desk, by) = confirmed(cx, broker, ("resume", &args.verb), &what).await?;
    print_changed(cx, &desk.resume_queue(&args.resource, &by).await?)
}
