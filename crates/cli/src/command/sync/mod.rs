//! `sync`: what stands on the coordination server.

mod dead;
mod queues;
mod schedules;

use clap::{Args, Subcommand};
use serde_json::json;
use surefoot_sync_core::{By, Changed, Desk};

use super::{Context, Printed};
use crate::args::Verb;
use crate::broker::{self, Broker};
use crate::error::{CliError, looked_for};
use crate::render::Table;

/// Arguments of `sync`.
#[derive(Debug, Args)]
pub(crate) struct SyncArgs {
    #[command(flatten)]
    broker: Broker,
    #[command(subcommand)]
    command: SyncCommand,
}

#[derive(Debug, Subcommand)]
enum SyncCommand {
    /// List jobs, queues and groups: how much waits, how old the oldest is, whether it is paused.
    Queues,
    /// Hand out no more work of jobs, a queue or a group; what is held is finished.
    Pause(queues::PauseArgs),
    /// Hand out work again.
    Resume(queues::PauseArgs),
    /// What was given up: list, show, redrive, discard.
    Dead {
        #[command(subcommand)]
        command: dead::DeadCommand,
    },
    /// Schedules: list, next, pause, resume, run, backfill.
    Schedules {
        #[command(flatten)]
        set: schedules::SetArgs,
        #[command(subcommand)]
        command: schedules::SchedulesCommand,
    },
    /// Who changed what, and why, newest first.
    Audit {
        /// At most so many.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
    },
}

pub(crate) async fn run(cx: &Context<'_>, args: SyncArgs) -> Result<Printed, CliError> {
    cx.refuse_scope("the server's resources are named by themselves")?;
    let broker = args.broker.clone();
    let done = carry_out(cx, args).await;
    done.map_err(|error| looked_for(error, || broker.place()))
}

async fn carry_out(cx: &Context<'_>, args: SyncArgs) -> Result<Printed, CliError> {
    match args.command {
        SyncCommand::Queues => queues::list(cx, &desk(&args.broker).await?).await,
        SyncCommand::Pause(pause) => queues::pause(cx, &args.broker, &pause).await,
        SyncCommand::Resume(resume) => queues::resume(cx, &args.broker, &resume).await,
        SyncCommand::Dead { command } => dead::run(cx, &args.broker, command).await,
        SyncCommand::Schedules { set, command } => {
            schedules::run(cx, &args.broker, set, command).await
        }
        SyncCommand::Audit { limit } => audit(cx, &desk(&args.broker).await?, limit.into()).await,
    }
}

async fn desk(broker: &Broker) -> Result<Desk, CliError> {
    Ok(Desk::new(broker::open(broker).await?))
}

/// In whose name, and why; and the server, once somebody has said yes.
async fn confirmed(
    cx: &Context<'_>,
    broker: &Broker,
    (name, verb): (&'static str, &Verb),
    what: &str,
) -> Result<(Desk, By), CliError> {
    let confirmation = verb.confirmation(name)?;
    let desk = desk(broker).await?;
    confirmation.obtain(name, what)?;
    Ok((desk, By { actor: cx.actor(), reason: verb.reason.clone() }))
}

fn print_changed(cx: &Context<'_>, changed: &Changed) -> Result<Printed, CliError> {
    cx.print(changed, |page| {
        let word = if changed.changed { "done" } else { "nothing was changed" };
        page.line(format!("{word}: {}", changed.message));
    })
}

async fn audit(cx: &Context<'_>, desk: &Desk, limit: usize) -> Result<Printed, CliError> {
    let notes = desk.notes(limit).await?;
    cx.print(&json!({ "audit": notes }), |page| {
        let mut table = Table::new(&["AT", "WHO", "VERB", "RESOURCE", "WHAT", "WHY"]);
        for note in &notes {
            table.row(&[
                crate::render::at(note.at.into()),
                note.actor.clone(),
                note.verb.clone(),
                note.resource.clone(),
                crate::render::or_dash(note.subject.as_ref()),
                note.reason.clone(),
            ]);
        }
        table.print(page);
    })
}
