//! Schedules of a set.

use clap::{Args, Subcommand};
use serde_json::json;
use surefoot_kernel_core::Timestamp;
use surefoot_sync_core::{Desk, Key, ResourceId, ScheduleView};

use super::{confirmed, desk, print_changed};
use crate::args::Verb;
use crate::broker::Broker;
use crate::command::{Context, Printed};
use crate::error::CliError;
use crate::render::{Table, at, or_dash};

/// Which set.
#[derive(Debug, Args)]
pub(super) struct SetArgs {
    /// The set of schedules; where there is one, that one.
    #[arg(long, value_name = "SET", global = true)]
    set: Option<ResourceId>,
}

#[derive(Debug, Subcommand)]
pub(super) enum SchedulesCommand {
    /// List the schedules of a set.
    List,
    /// Show one schedule with its next times.
    Next {
        /// Its id.
        #[arg(value_name = "SCHEDULE")]
        id: Key,
        /// How many times.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
        count: u16,
    },
    /// Run no slots from now on; what runs is finished.
    Pause(One),
    /// Run the slots that come from now on; for those that passed, see `backfill`.
    Resume(One),
    /// Run it once now, beside its slots.
    Run {
        #[command(flatten)]
        one: One,
        /// The same request is one run, however often it is made; one is made up if none is given.
        #[arg(long, value_name = "ID")]
        request: Option<Key>,
    },
    /// Run the slots of a time that is over, each once.
    Backfill {
        #[command(flatten)]
        one: One,
        /// From here on: RFC 3339, as in `2026-11-29T00:00:00Z`.
        #[arg(long, value_name = "TIME", value_parser = time)]
        from: Timestamp,
        /// Up to here, included.
        #[arg(long, value_name = "TIME", value_parser = time)]
        until: Timestamp,
    },
}

/// A schedule, and why something is done to it.
#[derive(Debug, Args)]
pub(super) struct One {
    /// Its id.
    #[arg(value_name = "SCHEDULE")]
    id: Key,
    #[command(flatten)]
    verb: Verb,
}

fn time(text: &str) -> Result<Timestamp, String> {
    let rule = "write it with its offset, like 2026-11-29T00:00:00Z";
    text.parse().map_err(|_| rule.to_owned())
}

pub(super) async fn run(
    cx: &Context<'_>,
    broker: &Broker,
    SetArgs { set }: SetArgs,
    command: SchedulesCommand,
) -> Result<Printed, CliError> {
    match command {
        SchedulesCommand::List => list(cx, &desk(broker).await?, set).await,
        SchedulesCommand::Next { id, count } => {
            let desk = desk(broker).await?;
            let set = desk.schedule_set(set).await?;
            let schedule = desk.schedule(&set, &id, usize::from(count)).await?;
            show(cx, &schedule)
        }
        SchedulesCommand::Pause(one) => {
            let what = format!("{} runs no slots from now on", one.id);
            let (desk, by) = confirmed(cx, broker, ("pause", &one.verb), &what).await?;
            let set = desk.schedule_set(set).await?;
            print_changed(cx, &desk.pause_schedule(&set, &one.id, &by).await?)
        }
        SchedulesCommand::Resume(one) => {
            let what = format!("{} runs its slots again", one.id);
            let (desk, by) = confirmed(cx, broker, ("resume", &one.verb), &what).await?;
            let set = desk.schedule_set(set).await?;
            print_changed(cx, &desk.resume_schedule(&set, &one.id, &by).await?)
        }
        SchedulesCommand::Run { one, request } => {
            let request = match request {
                Some(request) => request,
                None => Key::new(format!("{} {}", cx.wall(), std::process::id()))?,
            };
            let what = format!("{} runs now, by request `{request}`", one.id);
            let (desk, by) = confirmed(cx, broker, ("run", &one.verb), &what).await?;
            let set = desk.schedule_set(set).await?;
            print_changed(cx, &desk.run_schedule(&set, (&one.id, &request), &by).await?)
        }
        SchedulesCommand::Backfill { one, from, until } => {
            let what = format!("{} runs its slots from {from} to {until}", one.id);
            let (desk, by) = confirmed(cx, broker, ("backfill", &one.verb), &what).await?;
            let set = desk.schedule_set(set).await?;
            print_changed(cx, &desk.backfill_schedule(&set, (&one.id, from, until), &by).await?)
        }
    }
}

async fn list(cx: &Context<'_>, desk: &Desk, set: Option<ResourceId>) -> Result<Printed, CliError> {
    let set = desk.schedule_set(set).await?;
    let schedules = desk.schedules(&set).await?;
    cx.print(&json!({ "schedules": schedules }), |page| {
        let mut table = Table::new(&["SCHEDULE", "CRON", "ZONE", "NEXT", "RUNS", "LAST", "STATE"]);
        for schedule in &schedules {
            table.row(&[
                schedule.id.clone(),
                schedule.cron.clone(),
                schedule.timezone.clone(),
                or_dash(schedule.next.first().map(|next| at((*next).into()))),
                schedule.runs.to_string(),
                or_dash(schedule.last.as_ref()).chars().take(60).collect(),
                state(schedule),
            ]);
        }
        table.print(page);
    })
}

fn state(schedule: &ScheduleView) -> String {
    match (&schedule.paused, &schedule.current) {
        (Some(pause), _) => format!("paused by {}: {}", pause.by, pause.reason),
        (None, Some(run)) => format!("runs, attempt {}", run.attempt),
        (None, None) => "waits".to_owned(),
    }
}

fn show(cx: &Context<'_>, schedule: &ScheduleView) -> Result<Printed, CliError> {
    cx.print(schedule, |page| {
        page.line(format!("schedule {} of set {}", schedule.id, schedule.set));
        page.line(format!("{} in {}: {}", schedule.cron, schedule.timezone, state(schedule)));
        if let Some(owner) = &schedule.owner {
            page.line(format!("kept by {owner}"));
        }
        if let Some(last) = &schedule.last {
            page.line(format!("{} runs, the last one {last}", schedule.runs));
        }
        for next in &schedule.next {
            page.line(next.to_string());
        }
    })
}
