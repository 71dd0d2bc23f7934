//! Dead letters.

use clap::{Args, Subcommand};
use serde_json::json;
use surefoot_sync_core::{Key, Resource, WorkId};

use super::{confirmed, desk, print_changed};
use crate::args::Verb;
use crate::broker::Broker;
use crate::command::{Context, Printed};
use crate::error::CliError;
use crate::render::{Table, at, or_dash};

#[derive(Debug, Subcommand)]
pub(super) enum DeadCommand {
    /// List dead letters, the oldest first.
    List {
        /// Of this resource only, as in `jobs:thumbnails`.
        #[arg(value_name = "RESOURCE")]
        resource: Option<Resource>,
        /// At most so many.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
    },
    /// Show one with what was sent.
    Show {
        #[command(flatten)]
        letter: Letter,
    },
    /// Send it once more, with all its attempts.
    Redrive {
        #[command(flatten)]
        letter: Letter,
        /// The key that it is sent under; its own, if none is given.
        #[arg(long, value_name = "KEY")]
        key: Option<Key>,
        #[command(flatten)]
        verb: Verb,
    },
    /// Remove it for ever.
    Discard {
        #[command(flatten)]
        letter: Letter,
        #[command(flatten)]
        verb: Verb,
    },
}

/// One dead letter.
#[derive(Debug, Args)]
pub(super) struct Letter {
    /// Where it is, as in `jobs:thumbnails`.
    #[arg(value_name = "RESOURCE")]
    resource: Resource,
    /// Its id.
    #[arg(value_name = "ID", value_parser = work_id)]
    id: WorkId,
}

#[expect(clippy::unnecessary_wraps, reason = "the signature that clap asks for")]
fn work_id(text: &str) -> Result<WorkId, String> {
    Ok(WorkId::new(text))
}

impl Letter {
    fn said(&self, what: &str) -> String {
        format!("dead letter {} of {} {what}", self.id, self.resource)
    }
}

pub(super) async fn run(
    cx: &Context<'_>,
    broker: &Broker,
    command: DeadCommand,
) -> Result<Printed, CliError> {
    match command {
        DeadCommand::List { resource, limit } => {
            list(cx, broker, resource.as_ref(), limit.into()).await
        }
        DeadCommand::Show { letter } => show(cx, broker, &letter).await,
        DeadCommand::Redrive { letter, key, verb } => {
            let what = letter.said("is sent once more");
            let (desk, by) = confirmed(cx, broker, ("redrive", &verb), &what).await?;
            print_changed(cx, &desk.redrive((&letter.resource, &letter.id), key, &by).await?)
        }
        DeadCommand::Discard { letter, verb } => {
            let what = letter.said("is removed for ever");
            let (desk, by) = confirmed(cx, broker, ("discard", &verb), &what).await?;
            print_changed(cx, &desk.discard((&letter.resource, &letter.id), &by).await?)
        }
    }
}

async fn list(
    cx: &Context<'_>,
    broker: &Broker,
    resource: Option<&Resource>,
    limit: usize,
) -> Result<Printed, CliError> {
    let letters = desk(broker).await?.dead(resource, limit).await?;
    cx.print(&json!({ "dead": letters }), |page| {
        let mut table = Table::new(&["RESOURCE", "ID", "KEY", "ATTEMPTS", "SINCE", "REASON"]);
        for letter in &letters {
            table.row(&[
                letter.resource.clone(),
                letter.id.clone(),
                or_dash(letter.key.as_ref()),
                letter.attempts.to_string(),
                at(letter.since.into()),
                letter.reason.chars().take(100).collect(),
            ]);
        }
        table.print(page);
    })
}

async fn show(cx: &Context<'_>, broker: &Broker, letter: &Letter) -> Result<Printed, CliError> {
    let letter = desk(broker).await?.dead_show(&letter.resource, &letter.id).await?;
    cx.print(&letter, |page| {
        page.line(format!("dead letter {} of {}", letter.id, letter.resource));
        page.line(format!("key {}", or_dash(letter.key.as_ref())));
        page.line(format!("given up at {}, after {} attempts", letter.since, letter.attempts));
        page.line(format!("reason: {}", letter.reason));
        page.line(format!("data: {}", letter.data));
    })
}
