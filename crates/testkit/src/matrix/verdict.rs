//! What is not as the effect classes promise.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use surefoot_kernel_core::{EffectClass, Fact, RunState, StepCharge, StepKey};

use super::case::Seen;
use super::plan::Trouble;
use super::provider::{Did, Entry};

/// What the undisturbed run came to.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) outputs: BTreeMap<StepKey, Value>,
    /// Steps with a class, in the order of their outcomes.
    pub(super) steps: Vec<(StepKey, EffectClass)>,
    /// What each step charged.
    pub(super) charged: Vec<StepCharge>,
}

impl Expected {
    pub(super) fn of(seen: &Seen) -> Self {
        let classes: BTreeMap<&StepKey, EffectClass> =
            seen.log.iter().map(|entry| (&entry.step, entry.class)).collect();
        let outputs = outputs(&seen.facts);
        let completed = seen.facts.iter().filter_map(completed);
        let steps = completed
            .filter_map(|(step, _)| classes.get(step).map(|class| (step.clone(), *class)))
            .collect();
        Self { outputs, steps, charged: charges(&seen.facts) }
    }
}

fn completed(fact: &Fact) -> Option<(&StepKey, &Value)> {
    if let Fact::StepCompleted { step, output, .. } = fact { Some((step, output)) } else { None }
}

fn mark(fact: &Fact) -> Option<&StepKey> {
    if let Fact::CallMarked { step, .. } = fact { Some(step) } else { None }
}

fn charges(facts: &[Fact]) -> Vec<StepCharge> {
    let charge =
        |fact: &Fact| if let Fact::Charged(charge) = fact { Some(charge.clone()) } else { None };
    facts.iter().filter_map(charge).collect()
}

fn outputs(facts: &[Fact]) -> BTreeMap<StepKey, Value> {
    let completed = facts.iter().filter_map(completed);
    completed.map(|(step, output)| (step.clone(), output.clone())).collect()
}

/// The steps whose outcomes are recorded.
pub(super) fn recorded(facts: &[Fact]) -> BTreeSet<&StepKey> {
    facts.iter().filter_map(completed).map(|(step, _)| step).collect()
}

/// The ambiguous steps whose calls were marked.
pub(super) fn marked(facts: &[Fact]) -> BTreeSet<&StepKey> {
    facts.iter().filter_map(mark).collect()
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
    if seen.runs != 1 {
        wrong.push(format!("one event has {} runs", seen.runs));
    }
    if seen.run.state() != RunState::Succeeded {
        wrong.push(format!("the run is not succeeded: {:?}", seen.run.phase));
    }
    let outputs = outputs(&seen.facts);
    if outputs != expected.outputs {
        wrong.push(format!("the outputs are {outputs:?}, undisturbed {:?}", expected.outputs));
    }
    let recorded = seen.facts.iter().filter_map(completed).count();
    if recorded != outputs.len() {
        wrong.push(format!("an outcome is recorded twice: {:?}", seen.facts));
    }
}

/// Each step pays once, whatever happens between its charge and its outcome.
fn judge_charges(seen: &Seen, expected: &Expected, wrong: &mut Vec<String>) {
    let charged = charges(&seen.facts);
    if charged != expected.charged {
        wrong.push(format!("charged were {charged:?}, undisturbed {:?}", expected.charged));
    }
}

fn judge_keys(seen: &Seen, wrong: &mut Vec<String>) {
    for entry in &seen.log {
        let other = entry.key.as_ref().filter(|key| **key != seen.run.effect_key(&entry.step));
        if other.is_some() {
            wrong.push(format!("the key is not that of the step: {entry:?}"));
        }
    }
}

/// Writes are there exactly once where the outcome is, and nowhere else.
fn judge_writes(seen: &Seen, expected: &Expected, wrong: &mut Vec<String>) {
    let recorded = recorded(&seen.facts);
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
    let marked_before = marked(&seen.before.facts);
    let recorded_before = recorded(&seen.before.facts);
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
    let recorded_before = recorded(&seen.before.facts);
    let (_, after) = seen.log.split_at(seen.before.log.min(seen.log.len()));
    for (step, _) in &expected.steps {
        let again = count(after, step, &Did::Called);
        if recorded_before.contains(step) && again > 0 && !trouble.kind.is_theft() {
            wrong.push(format!("the outcome of {step} was recorded, and it was called again"));
        }
    }
}

/// Once the fence let a later generation through, it lets no earlier one through.
fn judge_fence(seen: &Seen, wrong: &mut Vec<String>) {
    let mut latest = 0;
    for entry in &seen.log {
        let Did::PassedFence(generation) = &entry.did else { continue };
        if *generation < latest {
            wrong.push(format!("the fence let a stale worker through: {entry:?}"));
        }
        latest = latest.max(*generation);
    }
}
