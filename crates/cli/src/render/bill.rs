//! A bill of effects on one screen.

use surefoot_kernel_core::Bill;
use surefoot_operator::BillView;

use super::{Table, or_dash};
use crate::page::{Page, Tone};

/// `typed` says how a command is typed to act on the same store.
pub(crate) fn bill(page: &mut Page, view: &BillView, typed: impl Fn(&str) -> String) {
    let run = &view.run;
    page.line(format!("dry run   {}", run.id));
    let place = format!("{}/{}", run.app, run.scope);
    page.line(format!("workflow  {} version {} in {place}", run.workflow, run.version));
    page.line(format!("state     {}", run.state));
    if let Some(error) = &run.error {
        page.line(format!("error     {}: {}", error.code, error.message));
    }
    let Some(bill) = &view.bill else {
        if !run.state.is_terminal() {
            page.line("No dry-run worker of the application has taken it up yet: start one, then");
            page.line(format!("    {}", typed(&format!("show {}", run.id))));
        }
        return;
    };
    all_of(page, view, bill);
}

/// The same of a preview that is stored nowhere.
pub(crate) fn preview(page: &mut Page, view: &BillView) {
    page.line(format!("workflow  {}; nothing is sent, nothing is stored", view.run.workflow));
    if let Some(error) = &view.run.error {
        page.line(format!("error     {}: {}", error.code, error.message));
    }
    match &view.bill {
        Some(bill) => all_of(page, view, bill),
        None => page.toned(Tone::Bad, "there is no bill of its effects"),
    }
}

fn all_of(page: &mut Page, view: &BillView, bill: &Bill) {
    let tone = if bill.code.is_none() { Tone::Good } else { Tone::Bad };
    page.toned(tone, bill.headline());
    effects(page, bill);
    costs(page, view, bill);
    issues(page, bill);
}

fn effects(page: &mut Page, bill: &Bill) {
    if bill.effects.is_empty() {
        return;
    }
    page.heading("Effects");
    let mut table = Table::new(&["STEP", "ACTION", "CLASS", "SURE", "WHAT WOULD HAPPEN"]);
    for effect in &bill.effects {
        table.row(&[
            effect.step.to_string(),
            effect.action.clone(),
            effect.class.to_string(),
            if effect.is_sure { "yes" } else { "perhaps" }.to_owned(),
            or_dash(effect.summary.as_ref()),
        ]);
    }
    table.print(page);
    let classes = bill.by_class.iter().map(|(class, count)| format!("{count} {class}"));
    page.line(classes.collect::<Vec<_>>().join(", "));
}

fn costs(page: &mut Page, view: &BillView, bill: &Bill) {
    if bill.costs.is_empty() {
        return;
    }
    page.heading("Cost");
    for cost in &bill.costs {
        let line = view.limits.iter().find(|line| line.dimension == cost.dimension);
        let limit = line.and_then(|line| line.limit);
        let limit = limit.map_or_else(String::new, |limit| format!(", limit {limit}"));
        let (dimension, sure, all) = (&cost.dimension, cost.sure, cost.all);
        page.line(format!("- {dimension}: {sure} for sure, {all} at most as listed{limit}"));
    }
    if !bill.is_cost_complete {
        page.line("The cost of some effects is not known.");
    }
}

fn issues(page: &mut Page, bill: &Bill) {
    if !bill.issues.is_empty() {
        page.heading("Issues");
    }
    for issue in &bill.issues {
        let code = issue.code.as_ref().map_or_else(String::new, |code| format!("{code}: "));
        page.line(format!("- {}: {code}{}", issue.step, issue.message));
    }
    if let Some(end) = &bill.ends {
        let how =
            end.code.as_ref().map_or_else(|| "succeed".to_owned(), |it| format!("fail with {it}"));
        let said = end.message.as_ref().map_or_else(String::new, |said| format!(": {said}"));
        page.line(format!("The run would {how} at {}{said}", end.step));
    }
}
