//! What is not as the effect classes promise.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use surefoot_kernel_core::{EffectClass, Run, RunId, RunState, StepCharge, StepKey};

use super::case::Seen;
use super::plan::Trouble;
use super::provider::{Did, Entry};

/// What the undisturbed run came to.
#[derive(Debug)]
pub(super) struct Expected {
    /// Where its runs stand.
    places: BTreeSet<String>,
    outputs: BTreeMap<StepKey, Value>,
    /// Steps with a class, in the order of their calls.
    pub(super) steps: Vec<(StepKey, EffectClass)>,
    /// What each step charged.
    charged: Vec<StepCharge>,
}

impl Expected {
    pub(super) fn of(seen: &Seen) -> Self {
        let mut steps: Vec<(StepKey, EffectClass)> = Vec::new();
        for entry in &seen.log {
            if steps.iter().all(|(step, _)| *step != entry.step) {
                steps.push((entry.step.clone(), entry.class));
            }
        }
        let tree = &seen.tree;
        let places = tree.places().into_iter().map(str::to_owned).collect();
        Self { places, outputs: tree.outputs(), steps, charged: tree.charges() }
    }
}

/// How often an action did something for a step.
pub(super) fn count(log: &[Entry], step: &StepKey, did: &Did) -> usize {
    log.iter().filter(|entry| entry.step == *step && entry.did == *did).count()
}

/// Judges a case.
pub(super) fn judge(seen: &Seen, expected: &Expected, trouble: Trouble) -> Vec<String> {
    let mut wrong = Vec::new();
    judge_end(seen, expected, &mut wrong);
    judge_charges(seen, expected, &mut wrong);
    judge_keys(seen, &mut wrong);
    judge_writes(seen, expected, &mut wrong);
    judge_ambiguous(seen, expected, trouble, &mut wrong);
    judge_repeats(seen, expected, trouble, &mut wrong);
    judge_fence(seen, &mut wrong);
    wrong
}

fn judge_end(seen: &Seen, expected: &Expected, wrong: &mut Vec<String>) {
    let places: BTreeSet<String> = seen.tree.places().into_iter().map(str::to_owned).collect();
    if places != expected.places || seen.tree.runs().count() != places.len() {
        let runs: Vec<&Run> = seen.tree.runs().collect();
        wrong.push(format!("the runs are {runs:?}, undisturbed at {:?}", expected.places));
    }
    for run in seen.tree.runs().filter(|run| run.state() != RunState::Succeeded) {
        wrong.push(format!("a run is not succeeded: {run:?}"));
    }
    let outputs = seen.tree.outputs();
    if outputs != expected.outputs {
        wrong.push(format!("the outputs are {outputs:?}, undisturbed {:?}", expected.outputs));
    }
    if seen.tree.completed().count() != outputs.len() {
        wrong.push(format!("an outcome is recorded twice: {:?}", seen.tree));
    }
}

/// Each step pays once, whatever happens between its charge and its outcome.
fn judge_charges(seen: &Seen, expected: &Expected, wrong: &mut Vec<String>) {
    let charged = seen.tree.charges();
    if charged != expected.charged {
        wrong.push(format!("charged were {charged:?}, undisturbed {:?}", expected.charged));
    }
}

fn judge_keys(seen: &Seen, wrong: &mut Vec<String>) {
    let keys = seen.tree.effect_keys();
    for entry in &seen.log {
        let step = entry.key.as_ref().map(|key| keys.get(key));
        if step.is_some_and(|step| step != Some(&entry.step)) {
            wrong.push(format!("the key is not that of the step: {entry:?}"));
        }
    }
}

/// Writes are there exactly once where the outcome is, and nowhere else.
fn judge_writes(seen: &Seen, expected: &Expected, wrong: &mut Vec<String>) {
    let recorded = seen.tree.recorded();
    for (step, class) in &expected.steps {
        if *class != EffectClass::Transactional {
            continue;
        }
        let is_there = |entry: &&Entry| match &entry.did {
            Did::Wrote(row) => entry.step == *step && seen.rows.contains(row),
            Did::Called | Did::CarriedOut | Did::Asked | Did::PassedFence(_) => false,
        };
        let there = seen.log.iter().filter(is_there).count();
        if there != usize::from(recorded.contains(step)) {
            wrong.push(format!("the writes of {step} are there {there} times"));
        }
    }
}

fn judge_ambiguous(seen: &Seen, expected: &Expected, trouble: Trouble, wrong: &mut Vec<String>) {
    let marked_before = seen.before.tree.marked();
    let recorded_before = seen.before.tree.recorded();
    let (before, after) = seen.log.split_at(seen.before.log.min(seen.log.len()));
    for (step, class) in &expected.steps {
        if *class != EffectClass::Ambiguous {
            continue;
        }
        let called = count(&seen.log, step, &Did::Called);
        if called != 1 {
            wrong.push(format!("{step} is ambiguous and was called {called} times"));
        }
        let was_open = marked_before.contains(step) && !recorded_before.contains(step);
        let is_attended = seen.attention.as_ref() == Some(step);
        if was_open && trouble.kind.is_death() {
            let knows = count(before, step, &Did::CarriedOut) > 0;
            if count(after, step, &Did::Asked) == 0 {
                wrong.push(format!("nobody asked what became of {step}"));
            }
            if is_attended == knows {
                wrong.push(format!("a person was asked about {step}: {is_attended}"));
            }
        } else if is_attended && count(before, step, &Did::CarriedOut) > 0 {
            wrong.push(format!("a person was asked about {step}, which the provider knows"));
        } else if is_attended && !trouble.kind.is_theft() {
            wrong.push(format!("a person was asked about {step}, and nothing was in doubt"));
        }
    }
}

/// What is recorded is not called again.
fn judge_repeats(seen: &Seen, expected: &Expected, trouble: Trouble, wrong: &mut Vec<String>) {
    let recorded_before = seen.before.tree.recorded();
    let (_, after) = seen.log.split_at(seen.before.log.min(seen.log.len()));
    for (step, _) in &expected.steps {
        let again = count(after, step, &Did::Called);
        if recorded_before.contains(step) && again > 0 && !trouble.kind.is_theft() {
            wrong.push(format!("the outcome of {step} was recorded, and it was called again"));
        }
    }
}

/// Once the fence of a run let a later generation through, it lets no earlier one through.
fn judge_fence(seen: &Seen, wrong: &mut Vec<String>) {
    let mut latest: BTreeMap<Option<RunId>, u64> = BTreeMap::new();
    for entry in &seen.log {
        let Did::PassedFence(generation) = &entry.did else { continue };
        let latest = latest.entry(entry.run).or_default();
        if generation < latest {
            wrong.push(format!("the fence let a stale worker through: {entry:?}"));
        }
        *latest = (*latest).max(*generation);
    }
}
