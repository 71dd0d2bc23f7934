//! The runs of a case: the one that the event started, and its children, with their steps under one name each.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use surefoot_kernel_core::{Fact, Run, RunId, RunState, StepCharge, StepKey};

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

    /// The steps of which is recorded what became of their effect: by their outcome, or by the output that could not be
    /// kept.
    pub(super) fn explained(&self) -> BTreeSet<StepKey> {
        let refused = |(member, fact): (&Member, &Fact)| {
            let Fact::OutputRefused { step, .. } = fact else { return None };
            Some(member.name(step))
        };
        self.recorded().into_iter().chain(self.facts().filter_map(refused)).collect()
    }

    /// Whether an action was given another key than that of its run and step.
    pub(super) fn is_stray(&self, entry: &Entry) -> bool {
        let (Some(run), Some(key)) = (entry.run, &entry.key) else { return false };
        self.member(run).is_none_or(|member| member.run.effect_key(&entry.step) != *key)
    }

    /// How each run ended, by its place.
    pub(super) fn states(&self) -> BTreeMap<String, RunState> {
        self.0.iter().map(|member| (member.place.clone(), member.run.state())).collect()
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
