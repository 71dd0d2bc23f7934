//! `diff`

use surefoot_kernel_core::plan::{ActionUse, Change};
use surefoot_kernel_core::{Amount, VersionId, WorkflowKey};
use surefoot_operator::{DiffView, WhichVersion};

use super::{Context, Printed};
use crate::Exit;
use crate::error::CliError;
use crate::page::Page;
use crate::render::{Table, counted};

/// Arguments of `diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// The earlier version: its id, or `WORKFLOW@VERSION`.
    #[arg(value_name = "A")]
    before: String,
    /// The later version.
    #[arg(value_name = "B")]
    after: String,
}

/// Exit code 0 also where they differ: to differ is no fault.
pub(crate) async fn run(cx: &Context<'_>, args: &DiffArgs) -> Result<Printed, CliError> {
    let operator = cx.operator().await?;
    let mut which = Vec::with_capacity(2);
    for text in [&args.before, &args.after] {
        which.push(match text.rsplit_once('@') {
            Some((workflow, revision)) => {
                let revision = number(revision)?;
                let app = cx.app(&operator).await?;
                let scope = cx.scope_in(&operator, &app).await?;
                let workflow = WorkflowKey::from(workflow);
                WhichVersion::Revision { app, scope, workflow, revision }
            }
            None => WhichVersion::Id(id(text)?),
        });
    }
    let [before, after] = which.try_into().map_err(|_| usage(&args.before))?;
    let view = operator.diff(before, after).await?;
    Ok(cx.print(&view, |page| print(page, &view))?.exiting(Exit::Done))
}

fn number(text: &str) -> Result<u64, CliError> {
    text.parse().map_err(|_| usage(text))
}

fn id(text: &str) -> Result<VersionId, CliError> {
    text.parse().map_err(|_| usage(text))
}

fn usage(text: &str) -> CliError {
    CliError::Usage(format!("`{text}` names no version: write its id, or `WORKFLOW@VERSION`"))
}

fn print(page: &mut Page, view: &DiffView) {
    let diff = &view.diff;
    if view.is_empty() {
        page.line("the two do the same");
        return;
    }
    if !diff.steps.is_empty() {
        let mut table = Table::new(&["CHANGE", "DOES", "BEFORE", "AFTER", "WHAT"]);
        for step in &diff.steps {
            let place = |place: &Option<String>| place.clone().unwrap_or_else(|| "-".to_owned());
            table.row(&[
                word(step.change).to_owned(),
                step.does.clone(),
                place(&step.before),
                place(&step.after),
                step.fields.join(", "),
            ]);
        }
        table.print(page);
    }
    for action in &diff.actions {
        let (before, after) = (used(action.before.as_ref()), used(action.after.as_ref()));
        page.line(format!("action {}: {before} -> {after}", action.action));
    }
    let cap = |cap: Option<Amount>| cap.map_or_else(|| "no cap".to_owned(), |cap| cap.to_string());
    for change in &view.budget {
        let (before, after) = (cap(change.before), cap(change.after));
        page.line(format!("budget {}: {before} -> {after}", change.dimension));
    }
    for other in &diff.other {
        page.line(format!("{}: {}", other.what, word(other.change)));
    }
}

fn used(of: Option<&ActionUse>) -> String {
    let Some(of) = of else { return "not used".to_owned() };
    let settle = of
        .settle_after
        .map_or_else(String::new, |span| format!(", settles after {} s", span.get() / 1_000_000));
    let hash = of.hash.as_ref().and_then(|hash| hash.get(..8)).unwrap_or("-");
    let (steps, attempts) = (of.steps as u64, u64::from(of.attempts));
    let (steps, attempts) = (counted(steps, "step"), counted(attempts, "attempt"));
    format!("{} ({steps}, {attempts}{settle}, schema {hash})", of.class)
}

const fn word(change: Change) -> &'static str {
    match change {
        Change::Added => "added",
        Change::Removed => "removed",
        Change::Changed => "changed",
        Change::Moved => "moved",
    }
}
