//! An explanation on one screen: where it stands, why, what happened, what to type.

use surefoot_kernel_core::{BudgetLine, ChildrenNote, EffectNote, Explanation, RunState, Shown};

use super::{Table, or_dash};
use crate::page::{Page, Tone};

/// `children` is what to type to see its children.
pub(crate) fn explanation(page: &mut Page, it: &Explanation, children: &str) {
    page.toned(tone_of(it.state), &it.headline);
    page.toned(
        Tone::Dim,
        format!("run {}, {}, revision {}, read {}", it.run, it.state, it.revision, it.read_at),
    );
    page.heading("Why it stands here");
    for reason in &it.why_not_moving {
        let until = reason.until.map_or_else(String::new, |until| format!(" (until {until})"));
        page.line(format!("- {}{until}", reason.text));
    }
    if !it.steps.is_empty() {
        page.heading("Steps");
        steps(page, &it.steps);
        if it.steps_omitted > 0 {
            page.line(format!("{} more steps are not listed", it.steps_omitted));
        }
    }
    for (heading, notes) in [
        ("Happened", &it.effects.happened),
        ("May have happened", &it.effects.may_have_happened),
        ("Did not start", &it.effects.not_started),
    ] {
        effects(page, heading, notes);
    }
    if !it.budget.is_empty() {
        page.heading("Budget of its tree of runs");
        budget(page, &it.budget);
    }
    if !it.would_repeat.is_empty() {
        page.heading("A worker that takes it now");
        for repeat in &it.would_repeat {
            page.line(format!("- {} (`{}`): {}", repeat.step, repeat.action, repeat.what));
        }
    }
    page.heading("What you may do");
    let states = children_to_look_at(it);
    if it.legal_actions.is_empty() && states.is_empty() {
        page.line("Nothing: it has ended.");
    }
    for action in &it.legal_actions {
        page.line(format!("{}: {}", action.verb, action.why));
        page.line(format!("    {}", action.command));
    }
    if !states.is_empty() {
        page.line("runs: look at its children that have not ended, or failed");
        page.line(format!("    {children} --state {}", states.join(",")));
    }
}

/// The states of those children of which something may depend on somebody.
fn children_to_look_at(it: &Explanation) -> Vec<&'static str> {
    let any = |count: fn(&ChildrenNote) -> u32| it.children.iter().any(|note| count(note) > 0);
    let open = [RunState::NeedsAttention, RunState::Waiting, RunState::Queued, RunState::Running];
    let open = if any(|note| note.open) { &open[..] } else { &[] };
    let failed = any(|note| note.failed).then_some(RunState::Failed);
    open.iter().copied().chain(failed).map(RunState::as_str).collect()
}

/// Used and limit, by dimension.
pub(super) fn budget(page: &mut Page, lines: &[BudgetLine]) {
    for line in lines {
        let limit = line.limit.map_or_else(|| "no limit".to_owned(), |limit| format!("of {limit}"));
        page.line(format!("- {}: {} used, {limit}", line.dimension, line.used));
    }
}

const fn tone_of(state: RunState) -> Tone {
    match state {
        RunState::Succeeded => Tone::Good,
        RunState::Failed | RunState::NeedsAttention => Tone::Bad,
        RunState::Queued | RunState::Running | RunState::Waiting | RunState::Canceled => {
            Tone::Strong
        }
    }
}

fn steps(page: &mut Page, steps: &[Shown]) {
    let mut table = Table::new(&["STEP", "ACTION", "CLASS", "STATE", "EFFECT", ""]);
    for step in steps {
        let mut note = step.why.clone().unwrap_or_default();
        if let Some(error) = &step.error {
            note = format!("{}: {}", error.code, error.message);
        }
        if let Some(loops) = step.iterations {
            note = format!("{} of {} iterations. {note}", loops.completed, loops.total);
        }
        table.row(&[
            step.key.to_string(),
            step.action.clone(),
            or_dash(step.class),
            step.state.as_str().to_owned(),
            or_dash(step.effect_state.map(surefoot_kernel_core::EffectState::as_str)),
            note,
        ]);
    }
    table.print(page);
}

fn effects(page: &mut Page, heading: &str, notes: &[EffectNote]) {
    if notes.is_empty() {
        return;
    }
    page.heading(heading);
    for note in notes {
        let times = if note.count == 1 { String::new() } else { format!(" {} times", note.count) };
        page.line(format!(
            "- {} (`{}`, {}){times}: {}",
            note.step, note.action, note.class, note.why
        ));
        if let Some(key) = &note.effect_key {
            page.toned(Tone::Dim, format!("    effect key {key}"));
        }
    }
}
