//! `events`

use surefoot_kernel_core::{EventFilter, EventStatus};

use super::{Context, Printed};
use crate::args::Part;
use crate::error::CliError;
use crate::render::{Table, at, or_dash};

/// Arguments of `events`.
#[derive(Debug, clap::Args)]
pub(crate) struct EventsArgs {
    /// Only of this type.
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only in this status: `pending`, `dispatched`, `unmatched`, `retrying` or `dead_lettered`.
    #[arg(long, value_parser = status)]
    status: Option<EventStatus>,
    #[command(flatten)]
    part: Part,
}

pub(crate) async fn run(cx: &Context<'_>, args: EventsArgs) -> Result<Printed, CliError> {
    let operator = cx.operator().await?;
    let filter = EventFilter {
        app: Some(cx.app(&operator).await?),
        scope: cx.named_scope(),
        kind: args.kind,
        status: args.status,
        limit: args.part.limit,
        cursor: args.part.cursor,
    };
    let view = operator.events(filter).await?;
    cx.print(&view, |page| {
        let mut table =
            Table::new(&["EVENT", "TYPE", "KEY", "SCOPE", "STATUS", "RUNS", "RECORDED", "ERROR"]);
        for row in &view.events {
            table.row(&[
                row.id.to_string(),
                row.kind.clone(),
                or_dash(row.key.as_ref()),
                row.scope.to_string(),
                format!("{}{}", row.status, if row.expired { " (emptied)" } else { "" }),
                row.runs.len().to_string(),
                at(row.recorded_at),
                or_dash(row.error.as_ref()),
            ]);
        }
        table.print(page);
        if let Some(next) = &view.next {
            page.line(format!("there are more: add `--cursor {next}`"));
        }
    })
}

fn status(text: &str) -> Result<EventStatus, String> {
    let known = EventStatus::ALL.iter().copied().find(|status| status.as_str() == text);
    known.ok_or_else(|| {
        let all: Vec<&str> = EventStatus::ALL.iter().map(|status| status.as_str()).collect();
        format!("the statuses are {}", all.join(", "))
    })
}
