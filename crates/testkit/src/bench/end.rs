//! Where a run came to rest, for assertions.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;
use surefoot_kernel_core::payload::from_stored;
use surefoot_kernel_core::{
    Amount, Budget, EffectState, ExplainInput, Explanation, Fact, Run, RunDetail, RunId, RunState,
    Shown, StepKey, StepState, TxStore, explain, shown_steps,
};

use super::fail;

/// A run that rests, and everything that is known of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct End {
    /// Where it rests: ended, before a person, or waiting.
    pub state: RunState,
    /// The row.
    pub run: Run,
    explanation: Explanation,
    steps: Vec<Shown>,
    outputs: BTreeMap<StepKey, Value>,
    budget: Budget,
}

impl End {
    pub(super) async fn read<S: TxStore>(store: &S, run: RunId) -> Self {
        let detail = store.run_detail(run).await;
        let detail = detail.unwrap_or_else(|wrong| fail(&format!("{run} is not read: {wrong}")));
        let detail: RunDetail = detail.unwrap_or_else(|| fail(&format!("{run} is gone")));
        let (journal, unreadable) = match detail.journal {
            Ok(journal) => (journal, None),
            Err(wrong) => (Vec::new(), Some(wrong.to_string())),
        };
        let sessions = store.session_list(&detail.run.origin.app).await.unwrap_or_default();
        let plan = from_stored(&detail.plan).ok();
        let input = ExplainInput {
            run: &detail.run,
            plan: plan.as_ref(),
            invocation: &detail.invocation,
            journal: &journal,
            unreadable: unreadable.as_deref(),
            sessions: &sessions,
            is_signaled: None,
            budget: &detail.budget,
            children: &detail.children,
            group: detail.group.as_ref(),
            now: detail.now,
        };
        let explanation = explain(&input);
        let (steps, _) = shown_steps(&input, usize::MAX);
        let facts = journal.into_iter().flat_map(|entry| entry.facts);
        let completed = |fact| {
            let Fact::StepCompleted { step, output, .. } = fact else { return None };
            Some((step, output))
        };
        let outputs = facts.filter_map(completed).collect();
        let budget = detail.budget;
        Self { state: detail.run.state(), run: detail.run, explanation, steps, outputs, budget }
    }

    /// Why it rests where it does, what happened and what did not. Displayed as text.
    #[must_use]
    pub fn explain(&self) -> &Explanation {
        &self.explanation
    }

    /// What the tree of the run has charged in this dimension so far; nothing, if it never charged.
    #[must_use]
    pub fn charged(&self, dimension: &str) -> Amount {
        self.budget.counter(dimension).used
    }

    /// The one step that the run came to with this action.
    ///
    /// # Panics
    /// If there is none, or more than one: see [`End::steps`].
    #[must_use]
    #[track_caller]
    pub fn step(&self, action: &str) -> StepEnd<'_> {
        let mut steps = self.steps(action);
        match (steps.pop(), steps.len()) {
            (Some(step), 0) => step,
            (None, _) => {
                fail(&format!("the run did not come to `{action}`:\n{}", self.explanation))
            }
            (Some(_), others) => {
                fail(&format!("the run came to `{action}` {} times", others.saturating_add(1)))
            }
        }
    }

    /// Every step that the run came to with this action, in order.
    #[must_use]
    pub fn steps(&self, action: &str) -> Vec<StepEnd<'_>> {
        let with = self.steps.iter().filter(|step| step.action == action);
        with.map(|shown| StepEnd { shown, output: self.outputs.get(&shown.key) }).collect()
    }
}

/// One step of a run that rests.
#[derive(Debug, Clone, Copy)]
pub struct StepEnd<'e> {
    shown: &'e Shown,
    output: Option<&'e Value>,
}

impl StepEnd<'_> {
    /// Its key.
    #[must_use]
    pub fn key(&self) -> &StepKey {
        &self.shown.key
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> StepState {
        self.shown.state
    }

    /// What became of its effect, where that is recorded.
    #[must_use]
    pub fn effect_state(&self) -> Option<EffectState> {
        self.shown.effect_state
    }

    /// Its output.
    ///
    /// # Panics
    /// If it has none, or one of another shape.
    #[must_use]
    #[track_caller]
    pub fn output<T: DeserializeOwned>(&self) -> T {
        let (key, state) = (&self.shown.key, self.shown.state.as_str());
        let output = self.output.unwrap_or_else(|| fail(&format!("{key} has no output: {state}")));
        T::deserialize(output).unwrap_or_else(|wrong| {
            fail(&format!("the output of {key} is of another shape: {wrong}: {output}"))
        })
    }
}
