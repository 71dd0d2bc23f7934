//! One run in detail.

use serde_json::Value;
use surefoot_kernel_core::Mode;
use surefoot_operator::{RunView, ShowView};

use super::explanation::budget;
use super::{Table, at, or_dash};
use crate::page::Page;

pub(crate) fn show(page: &mut Page, view: &ShowView) {
    let run = &view.run;
    page.line(format!("run       {}", run.id));
    page.line(format!(
        "state     {} (revision {}, attempt {})",
        run.state, run.revision, run.attempt
    ));
    if run.mode == Mode::DryRun {
        page.line("mode      dry run: nothing is done");
    }
    page.line(format!(
        "workflow  {} version {} in {}/{}",
        run.workflow, run.version, run.app, run.scope
    ));
    if let Some(event) = &view.event {
        let kind = event.kind.as_deref().unwrap_or("unknown type");
        page.line(format!("event     {} ({kind}, key {})", event.id, or_dash(event.key.as_ref())));
        if !event.tags.is_empty() {
            page.line(format!("tags      {}", event.tags.join(" ")));
        }
        page.line(format!("trigger   {}", or_dash(event.trigger.as_ref())));
    }
    page.line(format!("created   {}", at(run.created_at)));
    page.line(format!("started   {}", or_dash(run.started_at.map(at))));
    page.line(format!("finished  {}", or_dash(run.finished_at.map(at))));
    if let Some(parent) = run.parent {
        page.line(format!("parent    {parent}"));
    }
    if let Some(error) = &run.error {
        page.line(format!("error     {}: {}", error.code, error.message));
    }
    if let Some(message) = &view.result_message {
        page.line(format!("message   {message}"));
    }
    value(page, "inputs   ", &view.inputs);
    value(page, "result   ", &view.result);
    if let Some(unreadable) = &view.unreadable {
        page.line(format!("unreadable {unreadable}"));
    }
    if !view.budget.is_empty() {
        page.heading("Budget of its tree of runs");
        budget(page, &view.budget);
    }
    steps(page, view);
    if !view.children.is_empty() {
        page.heading("Children");
        runs(page, &view.children, false);
    }
}

fn value(page: &mut Page, name: &str, value: &Value) {
    if !value.is_null() {
        page.line(format!("{name} {value}"));
    }
}

fn steps(page: &mut Page, view: &ShowView) {
    if view.steps.is_empty() {
        return;
    }
    page.heading("Steps");
    let mut table =
        Table::new(&["STEP", "ACTION", "CLASS", "STATE", "EFFECT", "FINISHED", "ERROR"]);
    for step in &view.steps {
        table.row(&[
            step.key.to_string(),
            step.action.clone(),
            or_dash(step.class),
            step.state.as_str().to_owned(),
            or_dash(step.effect_state.map(surefoot_kernel_core::EffectState::as_str)),
            or_dash(step.finished_at.map(at)),
            or_dash(step.error.as_ref().map(|error| &error.code)),
        ]);
    }
    table.print(page);
    if view.steps_omitted > 0 {
        page.line(format!("{} more steps are not listed", view.steps_omitted));
    }
}

/// A dry run among the others must not look like one of them.
fn workflow(run: &RunView) -> String {
    match run.mode {
        Mode::Execute => run.workflow.to_string(),
        Mode::DryRun => format!("{} (dry run)", run.workflow),
    }
}

/// Runs as a table; with their parents where children stand among others.
pub(crate) fn runs(page: &mut Page, runs: &[RunView], with_parent: bool) {
    let mut headings =
        vec!["RUN", "WORKFLOW", "VERSION", "SCOPE", "STATE", "REV", "CREATED", "ERROR"];
    headings.extend(with_parent.then_some("PARENT"));
    let mut table = Table::new(&headings);
    for run in runs {
        let mut cells = vec![
            run.id.to_string(),
            workflow(run),
            run.version.to_string(),
            run.scope.to_string(),
            run.state.to_string(),
            run.revision.to_string(),
            at(run.created_at),
            or_dash(run.error.as_ref().map(|error| &error.code)),
        ];
        cells.extend(with_parent.then(|| or_dash(run.parent)));
        table.row(&cells);
    }
    table.print(page);
}
