//! `health`

use surefoot_kernel_core::{Mode, shell_word};
use surefoot_operator::AppHealthView;

use super::{Context, Printed};
use crate::Exit;
use crate::error::CliError;
use crate::page::{Page, Tone};
use crate::render::{Table, age};

/// Arguments of `health`.
#[derive(Debug, clap::Args)]
pub(crate) struct HealthArgs {}

pub(crate) async fn run(cx: &Context<'_>, _: &HealthArgs) -> Result<Printed, CliError> {
    cx.refuse_scope(
        "health is told of an application as a whole; `runs` and `effects` take a scope",
    )?;
    let operator = cx.operator().await?;
    let view = operator.health(cx.named_app(), Some(cx.wall())).await?;
    let printed = cx.print(&view, |page| {
        if view.apps.is_empty() {
            page.line("the store holds no app yet");
        }
        for (index, app) in view.apps.iter().enumerate() {
            if index > 0 {
                page.blank();
            }
            one(page, app);
        }
        let has_several = view.apps.len() > 1;
        for app in &view.apps {
            let of_app = if has_several {
                format!(" --app {}", shell_word(app.app.as_str()))
            } else {
                String::new()
            };
            for (list, what) in lists(app) {
                page.line(format!("`{}` lists {what}", cx.typed(&format!("{list}{of_app}"))));
            }
        }
    })?;
    Ok(printed.exiting(if view.ok { Exit::Done } else { Exit::Finding }))
}

/// What to type to see what was counted: the same runs and events.
fn lists(app: &AppHealthView) -> Vec<(&'static str, &'static str)> {
    let has = |state: &str| app.runs.get(state).is_some_and(|count| *count > 0);
    let lists = [
        (
            has("needs_attention"),
            ("runs --state needs_attention --children", "the runs that wait for a person"),
        ),
        (has("failed"), ("runs --state failed --children", "the runs that failed")),
        (
            app.events.dispatch_error.is_some(),
            ("events --status retrying", "the events whose dispatch fails and is tried again"),
        ),
        (
            app.events.dead_lettered > 0,
            (
                "events --status dead_lettered",
                "the events whose dispatch failed for good; `redrive` has their runs created",
            ),
        ),
    ];
    lists.into_iter().filter(|(is_there, _)| *is_there).map(|(_, list)| list).collect()
}

fn one(page: &mut Page, app: &AppHealthView) {
    let (tone, word) = if app.ok { (Tone::Good, "ok") } else { (Tone::Bad, "RED") };
    page.toned(tone, format!("{}: {word}", app.app));
    for red in &app.red {
        page.toned(Tone::Bad, format!("- {red}"));
    }
    for note in &app.notes {
        page.line(format!("- note: {note}"));
    }
    let runs = app.runs.iter().map(|(state, count)| format!("{state} {count}"));
    page.line(format!("runs      {}", runs.collect::<Vec<_>>().join(", ")));
    page.line(format!("start lag {}", age(app.start_lag_ms)));
    let oldest =
        app.oldest_unsettled_ms.map_or_else(String::new, |ms| format!(", oldest {}", age(ms)));
    let mut effects = format!("effects   {} unexplained{oldest}", app.unsettled_effects);
    for (count, what) in
        [(app.outputs_missing, "without an output"), (app.effects_given_up, "given up")]
    {
        if count > 0 {
            effects += &format!(", {count} {what}");
        }
    }
    page.line(effects);
    page.line(format!(
        "events    {} pending, {} dead-lettered, {} unmatched",
        app.events.pending, app.events.dead_lettered, app.events.unmatched
    ));
    if app.workers.is_empty() {
        page.line("workers   none");
        return;
    }
    let mut table = Table::new(&["WORKER", "SESSION", "SEEN", "SLOTS", "BUSY", "STUCK"]);
    for worker in &app.workers {
        let late = if worker.live { "" } else { " (late)" };
        table.row(&[
            match worker.mode {
                Mode::Execute => worker.name.clone(),
                Mode::DryRun => format!("{} (dry runs)", worker.name),
            },
            worker.session.to_string(),
            format!("{} ago{late}", age(worker.seen_ms)),
            worker.slots.to_string(),
            worker.busy.to_string(),
            worker.stuck.to_string(),
        ]);
    }
    table.print(page);
}
