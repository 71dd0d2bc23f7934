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
    /// How its runs ended, by where they stand.
    states: BTreeMap<String, RunState>,
    outputs: BTreeMap<StepKey, Value>,
    /// Steps with a class, in the order of their calls.
    pub(super) steps: Vec<(StepKey, EffectClass)>,
    /// The steps that were carried out outside.
    carried_out: BTreeSet<StepKey>,
    /// The steps that a person had a word about.
    attended: BTreeSet<StepKey>,
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
        let those = |is_so: fn(&Did) -> bool| {
            let entries = seen.log.iter().filter(|entry| is_so(&entry.did));
            entries.map(|entry| entry.step.clone()).collect()
        };
        let tree = &seen.tree;
        Self {
            states: tree.states(),
            outputs: tree.outputs(),
            steps,
            carried_out: those(|did| *did == Did::CarriedOut),
            attended: those(|did| matches!(did, Did::Attended(_))),
            charged: tree.charges(),
        }
    }
}

/// Whether a person had a word about a step.
pub(super) fn is_attended(log: &[Entry], step: &StepKey) -> bool {
    log.iter().any(|entry| entry.step == *step && matches!(entry.did, Did::Attended(_)))
}

/// How often an action did something for a step.
pub(super) fn count(log: &[Entry], step: &StepKey, did: &Did) -> usize {
    log.iter().filter(|entry| entry.step == *step && entry.did == *did).count()
}

/// Judges a case.
pub(super) fn judge(seen: &Seen, expected: &Expected, trouble: Trouble) -> Vec<String> {
    let mut wrong = Vec::new();
    if seen.is_canceled {
        judge_canceled(seen, expected, trouble, &mut wrong);
    } else {
        judge_end(seen, expected, &mut wrong);
    }
    if seen.tree.completed().count() != seen.tree.outputs().len() {
        wrong.push(format!("an outcome is recorded twice: {:?}", seen.tree));
    }
    for entry in &seen.strays {
        wrong.push(format!("the key is not that of the step: {entry:?}"));
    }
    judge_writes(seen, expected, &mut wrong);
    judge_ambiguous(seen, expected, trouble, &mut wrong);
    judge_repeats(seen, expected, trouble, &mut wrong);
    judge_fence(seen, &mut wrong);
    wrong
}

/// All is as undisturbed. Each step pays once, whatever happens between its charge and its outcome.
fn judge_end(seen: &Seen, expected: &Expected, wrong: &mut Vec<String>) {
    let states = seen.tree.states();
    if states != expected.states || seen.tree.runs().count() != states.len() {
        let runs: Vec<&Run> = seen.tree.runs().collect();
        wrong.push(format!("the runs are {runs:?}, undisturbed {:?}", expected.states));
    }
    let outputs = seen.tree.outputs();
    if outputs != expected.outputs {
        wrong.push(format!("the outputs are {outputs:?}, undisturbed {:?}", expected.outputs));
    }
    let charged = seen.tree.charges();
    if charged != expected.charged {
        wrong.push(format!("charged were {charged:?}, undisturbed {:?}", expected.charged));
    }
}

/// The run is canceled, and what there is of it is part of the undisturbed run.
fn judge_canceled(seen: &Seen, expected: &Expected, trouble: Trouble, wrong: &mut Vec<String>) {
    let states = seen.tree.states();
    if states.get("") != Some(&RunState::Canceled) {
        wrong.push(format!("the run is not canceled: {:?}", seen.tree));
    }
    let is_foreign = |(place, state): (&String, &RunState)| {
        let undisturbed = expected.states.get(place);
        undisturbed.is_none() || (*state != RunState::Canceled && undisturbed != Some(state))
    };
    if states.iter().any(is_foreign) || seen.tree.runs().count() != states.len() {
        wrong.push(format!("the runs are {states:?}, undisturbed {:?}", expected.states));
    }
    for (step, output) in seen.tree.outputs() {
        if expected.outputs.get(&step) != Some(&output) {
            wrong.push(format!("the output of {step} is {output}, and undisturbed another one"));
        }
    }
    let charged = seen.tree.charges();
    let is_new = |(nth, charge): (usize, &StepCharge)| {
        let earlier = charged.get(..nth).unwrap_or_default();
        earlier.iter().any(|other| other.step == charge.step) || !expected.charged.contains(charge)
    };
    if charged.iter().enumerate().any(is_new) {
        wrong.push(format!("charged were {charged:?}, undisturbed {:?}", expected.charged));
    }
    let (before, after) = seen.log.split_at(seen.before.log.min(seen.log.len()));
    let is_begun = |(step, _): &&(StepKey, EffectClass)| {
        count(before, step, &Did::Called) == 0 && count(after, step, &Did::Called) > 0
    };
    let begun: Vec<_> = expected.steps.iter().filter(is_begun).collect();
    // The call that the worker may make was decided, and its facts stored, when the request came.
    if begun.len() > usize::from(!trouble.kind.is_death()) {
        wrong.push(format!("the run is canceled, and {begun:?} began"));
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
            Did::Called | Did::CarriedOut | Did::Asked | Did::PassedFence(_) | Did::Attended(_) => {
                false
            }
        };
        let there = seen.log.iter().filter(is_there).count();
        if there != usize::from(recorded.contains(step)) {
            wrong.push(format!("the writes of {step} are there {there} times"));
        }
    }
}

fn judge_ambiguous(seen: &Seen, expected: &Expected, trouble: Trouble, wrong: &mut Vec<String>) {
    let explained = seen.tree.explained();
    for (step, class) in &expected.steps {
        if *class != EffectClass::Ambiguous {
            continue;
        }
        let called = count(&seen.log, step, &Did::Called);
        let carried_out = count(&seen.log, step, &Did::CarriedOut);
        let may = |entry: &&Entry| entry.step == *step && entry.did.lets_it_be_called_again();
        let may_be_called = seen.log.iter().filter(may).count().saturating_add(1);
        if carried_out > 1 || called > may_be_called {
            wrong.push(format!("{step} is ambiguous and was called {called} times"));
        }
        let is_missing = carried_out == 0 && expected.carried_out.contains(step);
        if is_missing && !seen.is_canceled {
            wrong.push(format!("{step} was not carried out"));
        }
        if carried_out > 0 && !explained.contains(step) {
            wrong.push(format!("{step} was carried out, and it is not recorded"));
        }
        if !expected.attended.contains(step) {
            judge_attention(seen, step, trouble, wrong);
        }
    }
}

/// A person is asked where nobody else can know, and nowhere else.
fn judge_attention(seen: &Seen, step: &StepKey, trouble: Trouble, wrong: &mut Vec<String>) {
    let (before, after) = seen.log.split_at(seen.before.log.min(seen.log.len()));
    let is_marked = seen.before.tree.marked().contains(step);
    let was_open = is_marked && !seen.before.tree.recorded().contains(step);
    let is_attended = is_attended(&seen.log, step);
    let knows = count(before, step, &Did::CarriedOut) > 0;
    if was_open && trouble.kind.is_death() {
        if count(after, step, &Did::Asked) == 0 {
            wrong.push(format!("nobody asked what became of {step}"));
        }
        if is_attended == knows {
            wrong.push(format!("a person was asked about {step}: {is_attended}"));
        }
    } else if is_attended && knows {
        wrong.push(format!("a person was asked about {step}, which the provider knows"));
    } else if is_attended && !trouble.kind.is_theft() {
        wrong.push(format!("a person was asked about {step}, and nothing was in doubt"));
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
