//! The runs of a case: the one that the event started, and its children, with their steps under one name each.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use surefoot_kernel_core::{EffectKey, Fact, Run, RunId, StepCharge, StepKey};

use super::provider::Entry;

/// One run of a tree.
#[derive(Debug)]
pub(super) struct Member {
    /// Where it stands below the root: nothing for the root, else the step of its parent and its index, with a slash
    /// behind it, `steps.0[1]/`.
    place: String,
    pub(super) run: Run,
    facts: Vec<Fact>,
}

/// All runs, each parent before its children.
#[derive(Debug, Default)]
pub(super) struct Tree(Vec<Member>);

impl Tree {
    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.0.iter().map(|member| &member.run)
    }

    /// Adds a run whose parent is there already.
    pub(super) fn add(&mut self, run: Run, facts: Vec<Fact>) {
        let place = run.origin.parent.as_ref().map(|parent| {
            let above = self.member(parent.run).map_or("", |member| member.place.as_str());
            format!("{above}{}[{}]/", parent.step, parent.index)
        });
        self.0.push(Member { place: place.unwrap_or_default(), run, facts });
    }

    fn member(&self, run: RunId) -> Option<&Member> {
        self.0.iter().find(|member| member.run.id == run)
    }

    /// Where the runs stand.
    pub(super) fn places(&self) -> BTreeSet<&str> {
        self.0.iter().map(|member| member.place.as_str()).collect()
    }

    /// A step of one run, under its name in the tree.
    pub(super) fn name(&self, run: RunId, step: &StepKey) -> StepKey {
        self.member(run).map_or_else(|| step.clone(), |member| member.name(step))
    }

    /// A line of the log, its step under its name in the tree.
    pub(super) fn named(&self, entry: Entry) -> Entry {
        let step = entry.run.map_or_else(|| entry.step.clone(), |run| self.name(run, &entry.step));
        Entry { step, ..entry }
    }

    fn facts(&self) -> impl Iterator<Item = (&Member, &Fact)> {
        self.0.iter().flat_map(|member| member.facts.iter().map(move |fact| (member, fact)))
    }

    /// Recorded outcomes, run by run.
    pub(super) fn completed(&self) -> impl Iterator<Item = (StepKey, &Value)> {
        self.facts().filter_map(|(member, fact)| {
            let Fact::StepCompleted { step, output, .. } = fact else { return None };
            Some((member.name(step), output))
        })
    }

    pub(super) fn outputs(&self) -> BTreeMap<StepKey, Value> {
        self.completed().map(|(step, output)| (step, output.clone())).collect()
    }

    /// The steps whose outcomes are recorded.
    pub(super) fn recorded(&self) -> BTreeSet<StepKey> {
        self.completed().map(|(step, _)| step).collect()
    }

    /// The effect key of each step with an outcome.
    pub(super) fn effect_keys(&self) -> BTreeMap<EffectKey, StepKey> {
        let key = |(member, fact): (&Member, &Fact)| {
            let Fact::StepCompleted { step, .. } = fact else { return None };
            Some((member.run.effect_key(step), member.name(step)))
        };
        self.facts().filter_map(key).collect()
    }

    /// The ambiguous steps whose calls were marked.
    pub(super) fn marked(&self) -> BTreeSet<StepKey> {
        let mark = |(member, fact): (&Member, &Fact)| {
            let Fact::CallMarked { step, .. } = fact else { return None };
            Some(member.name(step))
        };
        self.facts().filter_map(mark).collect()
    }

    /// What each step charged, by its name.
    pub(super) fn charges(&self) -> Vec<StepCharge> {
        let charge = |(member, fact): (&Member, &Fact)| {
            let Fact::Charged(charge) = fact else { return None };
            Some(StepCharge { step: member.name(&charge.step), ..charge.clone() })
        };
        self.facts().filter_map(charge).collect()
    }
}

impl Member {
    fn name(&self, step: &StepKey) -> StepKey {
        StepKey::from(format!("{}{step}", self.place))
    }
}
